//! The failures seen in the field, by name.
//!
//! Each name stands for a report of somebody whose run was spoiled by it: a test asks for
//! `hostile::origin_script("cl-short-rst", base)` and asserts what its client makes of it. The
//! names are stable. [`origin`](fn@origin), [`early`], [`http_proxy`] and [`socks_proxy`] are
//! handlers over the tables: an origin answers `/b/NAME`, a proxy goes by the first label of the
//! target's host (`p407.test`).
//!
//! ```
//! use longhaul::lab::{Origin, hostile};
//!
//! let origin = Origin::builder().on_head(hostile::early).handler(hostile::origin).start()?;
//! let url = origin.url("/b/cl-short-rst");
//! # let _ = url;
//! # Ok::<(), longhaul::Error>(())
//! ```

mod coding;

use std::time::Duration;

use super::received::Received;
use super::script::{Reply, Script};
use super::socks_wire::SocksRequest;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The pace of everything that drips.
const DRIP: Duration = Duration::from_millis(50);

/// Every name that [`origin_script`] knows.
pub const ORIGIN: &[&str] = &[
    "ok",
    "stale-fin-after-1",
    "stale-rst-after-1",
    "fin-idle-50ms",
    "408-on-idle",
    "never-answer",
    "drip-head",
    "drip-body",
    "cl-short-fin",
    "cl-hold",
    "cl-short-rst",
    "close-delim-fin",
    "close-delim-rst",
    "fin",
    "rst",
    "html",
    "chunk-ext-short",
    "chunk-ext-long",
    "chunk-zero-padded",
    "chunk-lf-only",
    "chunk-plus",
    "chunk-neg",
    "chunk-huge",
    "chunk-hex",
    "chunk-short-fin",
    "chunk-short-rst",
    "chunk-hold",
    "chunk-trailer",
    "304-cl",
    "no-reason",
    "http09",
    "icy",
    "http2-line",
    "lf-only",
    "leading-crlf",
    "leading-junk",
    "status-999",
    "status-099",
    "status-1000",
    "fold",
    "space-before-colon",
    "space-in-name",
    "no-colon",
    "empty-name",
    "latin1-value",
    "nul-value",
    "headers-100",
    "headers-150",
    "head-60k",
    "head-70k",
    "head-endless",
    "100-unsolicited",
    "100-with-headers",
    "103-then-200",
    "103-then-big-burst",
    "100-endless",
    "gz",
    "gz-trail-garbage",
    "gz-trail-zero",
    "gz-empty-body",
    "gz-204",
    "gz-304",
    "gz-upper",
    "gz-x",
    "gz-list",
    "gz-twice",
    "gz-members",
    "gz-cut",
    "gz-bomb",
    "deflate-zlib",
    "deflate-raw",
    "ce-many",
    "ce-unknown",
    "r-abs",
    "r-schemerel",
    "r-query",
    "r-empty",
    "r-frag",
    "r-space",
    "r-utf8",
    "r-latin1",
    "r-dotdot",
    "r-brace",
    "r-badpct",
    "r-backslash",
    "r-noloc",
    "r-300",
    "r-mailto",
    "r-ftp",
    "r-socks",
    "r-badip",
    "r-badport",
    "r-301",
    "r-303",
    "r-307",
    "r-308",
    "r-loop",
    "r-endless-body",
    "r-short-cl",
    "r-badgz",
    "503-ra-2",
    "429-ra-0",
    "429-ra-float",
    "429-ra-past",
    "429-ra-1m0s",
    "429-ra-huge",
    "429-ra-neg",
    "403-challenge",
    "early-413-close",
    "early-413-rst",
    "slow-reader",
];

/// Every name that [`http_proxy_script`] knows.
pub const HTTP_PROXY: &[&str] = &[
    "ok",
    "ok10",
    "p200cl",
    "p200cl5",
    "plf",
    "pnoreason",
    "psplit",
    "pdrip",
    "p100",
    "p2xx",
    "p407",
    "p407big",
    "p403",
    "p429",
    "p502",
    "p503",
    "p504",
    "p302",
    "phang",
    "pfin",
    "prst",
    "phtml",
    "pendless",
];

/// Every name that [`socks_script`] knows.
pub const SOCKS: &[&str] = &[
    "ok", "atyp0", "rsv", "domain", "v6", "early", "drip", "err1", "err2", "err3", "err4", "err5",
    "err6", "err7", "err8", "fin", "rst", "hang", "html",
];

/// What an origin does under this name.
///
/// `base` is the origin's own URL without a path, `http://127.0.0.1:8080`: some redirects need
/// it. The scripts of [`is_early`] names belong into
/// [`OriginBuilder::on_head`](super::OriginBuilder::on_head).
pub fn origin_script(name: &str, base: &str) -> Option<Script> {
    framing(name)
        .or_else(|| head(name))
        .or_else(|| coding::script(name))
        .or_else(|| redirect(name, base))
        .or_else(|| throttle(name))
        .or_else(|| upload(name))
}

/// Whether the behaviour needs the request's body unread.
pub fn is_early(name: &str) -> bool {
    upload(name).is_some()
}

/// A handler for an [`Origin`](super::Origin): `/b/NAME` by the table, everything else 404.
pub fn origin(request: &Received) -> Script {
    named(request)
        .and_then(|name| origin_script(name, &base(request)))
        .unwrap_or_else(|| Reply::new(404).body("no such behaviour\n").into())
}

/// A handler for [`OriginBuilder::on_head`](super::OriginBuilder::on_head) beside
/// [`origin`](fn@origin).
pub fn early(request: &Received) -> Option<Script> {
    named(request).and_then(upload)
}

/// A handler for an [`HttpProxy`](super::HttpProxy): CONNECT by the first label of the host.
pub fn http_proxy(request: &Received) -> Option<Script> {
    if request.method != "CONNECT" {
        return None;
    }
    http_proxy_script(label(request.host()))
}

/// A handler for a [`SocksProxy`](super::SocksProxy): by the first label of the host.
pub fn socks_proxy(request: &SocksRequest) -> Option<Script> {
    (request.version == 5).then(|| socks_script(label(&request.host)))?
}

/// What an HTTP proxy answers to a CONNECT under this name.
pub fn http_proxy_script(name: &str) -> Option<Script> {
    let forbidden = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    Some(match name {
        "ok" => Script::send("HTTP/1.1 200 Connection established\r\n\r\n").tunnel(),
        "ok10" => Script::send("HTTP/1.0 200 OK\r\n\r\n").tunnel(),
        "p200cl" => Script::send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").tunnel(),
        "p200cl5" => Script::send(
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .tunnel(),
        "plf" => Script::send("HTTP/1.1 200 OK\n\n").tunnel(),
        "pnoreason" => Script::send("HTTP/1.1 200\r\n\r\n").tunnel(),
        "psplit" => {
            let pause = Duration::from_millis(100);
            Script::send("HTTP/1.1 200")
                .pause(pause)
                .then_send(" OK\r\n")
                .pause(pause)
                .then_send("\r\n")
                .tunnel()
        }
        "pdrip" => {
            let pad = "a".repeat(300);
            Script::new().drip(format!("HTTP/1.1 200 OK\r\nX-Pad: {pad}\r\n\r\n"), DRIP).tunnel()
        }
        "p100" => Script::send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").tunnel(),
        "p2xx" => Script::send("HTTP/1.1 299 Somehow\r\n\r\n").tunnel(),
        "p407" => Script::send(
            "HTTP/1.1 407 Proxy Authentication Required\r\n\
             Proxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 4\r\n\r\nnope",
        ),
        "p407big" => Script::send(
            "HTTP/1.1 407 Auth\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\
             Content-Length: 100000\r\n\r\n",
        )
        .then_send("n".repeat(100_000)),
        "p403" => forbidden.into(),
        "p429" => "HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n".into(),
        "p502" => {
            "HTTP/1.1 502 Bad Gateway\r\nX-Err: exit-node\r\nContent-Length: 3\r\n\r\nbad".into()
        }
        "p503" => "HTTP/1.1 503 No exit\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n".into(),
        "p504" => "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n".into(),
        "p302" => Script::send(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/login\r\nContent-Length: 0\r\n\r\n",
        ),
        "phang" => Script::new().hold(),
        "pfin" => Script::new().fin(),
        "prst" => Script::new().rst(),
        "phtml" => Script::send("<html>not http</html>").fin(),
        "pendless" => Script::send("HTTP/1.1 200 OK\r\n")
            .repeat(format!("X: {}\r\n", "a".repeat(8000)), 100, Duration::ZERO)
            .hold(),
        _ => return None,
    })
}

/// What a SOCKS 5 proxy answers to a request under this name, in place of its reply.
pub fn socks_script(name: &str) -> Option<Script> {
    const GRANTED: [u8; 10] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let refused = |code: u8| Script::send([5, code, 0, 1, 0, 0, 0, 0, 0, 0]).fin();
    Some(match name {
        "ok" => Script::send(GRANTED).tunnel(),
        "atyp0" => Script::send([5, 0, 0, 0, 0, 0, 0, 0, 0, 0]).tunnel(),
        "rsv" => Script::send([5, 0, 0xff, 1, 0, 0, 0, 0, 0, 0]).tunnel(),
        "domain" => Script::send(b"\x05\x00\x00\x03\x09exit.test\x00\x50").tunnel(),
        "v6" => {
            let mut reply = vec![5, 0, 0, 4];
            reply.extend([0; 18]);
            Script::send(reply).tunnel()
        }
        // The target speaks first: its bytes arrive together with the reply.
        "early" => Script::send([&GRANTED[..], OK.as_bytes()].concat()).hold(),
        "drip" => Script::new().drip(GRANTED, Duration::from_millis(400)).tunnel(),
        "err1" => refused(1),
        "err2" => refused(2),
        "err3" => refused(3),
        "err4" => refused(4),
        "err5" => refused(5),
        "err6" => refused(6),
        "err7" => refused(7),
        "err8" => refused(8),
        "fin" => Script::new().fin(),
        "rst" => Script::new().rst(),
        "hang" => Script::new().hold(),
        "html" => Script::send("HTTP/1.1 400 Bad Request\r\n\r\n").fin(),
        _ => return None,
    })
}

fn named(request: &Received) -> Option<&str> {
    request.path.strip_prefix("/b/")
}

fn label(host: &str) -> &str {
    host.split('.').next().unwrap_or_default()
}

fn base(request: &Received) -> String {
    let scheme = if request.tls { "https" } else { "http" };
    format!("{scheme}://{}", request.authority())
}

/// Ends, silences, and the length of bodies.
fn framing(name: &str) -> Option<Script> {
    let short = Duration::from_millis(50);
    let torn = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc";
    let open = "HTTP/1.1 200 OK\r\n\r\nabc";
    let chunk = |rest: &str| Script::send(format!("{CHUNKED}{rest}"));
    Some(match name {
        "ok" => Reply::ok("ok").into(),
        "stale-fin-after-1" => Script::send(OK).next_request().fin(),
        "stale-rst-after-1" => Script::send(OK).next_request().rst(),
        "fin-idle-50ms" => Script::send(OK).pause(short).fin(),
        "408-on-idle" => Script::send(OK)
            .pause(short)
            .then_send(
                "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            )
            .fin(),
        "never-answer" => Script::new().hold(),
        "drip-head" => {
            let head = format!("HTTP/1.1 200 OK\r\nX-Pad: {}\r\n", "a".repeat(400));
            Script::new().drip(format!("{head}Content-Length: 2\r\n\r\nok"), DRIP)
        }
        "drip-body" => Script::send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            .drip("x".repeat(1000), DRIP),
        "cl-short-fin" => Script::send(torn).fin(),
        "cl-hold" => Script::send(torn).hold(),
        "cl-short-rst" => Script::send(torn).pause(short).rst(),
        "close-delim-fin" => Script::send(open).fin(),
        "close-delim-rst" => Script::send(open).pause(Duration::from_millis(100)).rst(),
        "fin" => Script::new().fin(),
        "rst" => Script::new().rst(),
        "html" => Script::send("<html>not http</html>").fin(),
        "chunk-ext-short" => chunk("5;a=b\r\nhello\r\n0\r\n\r\n"),
        "chunk-ext-long" => chunk("5;name=\"value-of-an-extension\"\r\nhello\r\n0\r\n\r\n"),
        "chunk-zero-padded" => chunk("000000000000000000000005\r\nhello\r\n0\r\n\r\n"),
        "chunk-lf-only" => chunk("5\nhello\n0\n\n").fin(),
        "chunk-plus" => chunk("+5\r\nhello\r\n0\r\n\r\n"),
        "chunk-neg" => chunk("-5\r\nhello\r\n0\r\n\r\n"),
        "chunk-huge" => chunk("FFFFFFFFFFFFFFFF\r\nhello\r\n").fin(),
        "chunk-hex" => chunk("0x5\r\nhello\r\n0\r\n\r\n"),
        "chunk-short-fin" => chunk("5\r\nhello\r\n").fin(),
        "chunk-short-rst" => chunk("5\r\nhello\r\n").pause(short).rst(),
        "chunk-hold" => chunk("5\r\nhello\r\n").hold(),
        "chunk-trailer" => chunk("5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"),
        "304-cl" => Script::send("HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n")
            .next_request()
            .then_send(OK),
        _ => return None,
    })
}

/// Status lines and header lines as they should not be, and interim responses.
fn head(name: &str) -> Option<Script> {
    let line = |line: &str| Script::send(format!("{line}\r\nContent-Length: 2\r\n\r\nok"));
    let field = |field: &str| {
        Script::send(format!("HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: 2\r\n\r\nok"))
    };
    let fields = |count: usize| {
        let fields: String = (0..count).map(|number| format!("X-{number}: v\r\n")).collect();
        Script::send(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok"))
    };
    Some(match name {
        "no-reason" => line("HTTP/1.1 200"),
        "http09" => Script::send("<html>old</html>").fin(),
        "icy" => line("ICY 200 OK").fin(),
        "http2-line" => line("HTTP/2 200 OK").fin(),
        "lf-only" => Script::send("HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
        "leading-crlf" => Script::send(format!("\r\n\r\n{OK}")),
        "leading-junk" => Script::send(format!("junk\r\n{OK}")).fin(),
        "status-999" => line("HTTP/1.1 999 Blocked"),
        "status-099" => line("HTTP/1.1 099 Odd").fin(),
        "status-1000" => line("HTTP/1.1 1000 Odd").fin(),
        "fold" => field("X-Fold: a\r\n b"),
        "space-before-colon" => field("X-A : 1"),
        "space-in-name" => field("PHP Warning: x"),
        "no-colon" => field("nocolonhere"),
        "empty-name" => field(": v"),
        "latin1-value" => Reply::ok("ok").header("X-N", b"caf\xe9").into(),
        "nul-value" => field("X-N: a\0b").fin(),
        "headers-100" => fields(99),
        "headers-150" => fields(149),
        "head-60k" => field(&format!("X-Big: {}", "a".repeat(60_000))),
        "head-70k" => field(&format!("X-Big: {}", "a".repeat(70_000))),
        "head-endless" => Script::send("HTTP/1.1 200 OK\r\n")
            .repeat(format!("X: {}\r\n", "a".repeat(8000)), 400, Duration::ZERO)
            .hold(),
        "100-unsolicited" => Script::send(format!("HTTP/1.1 100 Continue\r\n\r\n{OK}")),
        "100-with-headers" => {
            Script::send(format!("HTTP/1.1 100 Continue\r\nServer: x\r\n\r\n{OK}"))
        }
        "103-then-200" => {
            Script::send(format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{OK}"))
        }
        "103-then-big-burst" => Script::send(format!(
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n{}",
            "z".repeat(200_000)
        )),
        "100-endless" => {
            Script::new().repeat("HTTP/1.1 100 Continue\r\n\r\n", 1_000, Duration::ZERO).hold()
        }
        _ => return None,
    })
}

/// Places to go to, good and bad.
fn redirect(name: &str, base: &str) -> Option<Script> {
    let authority = base.split_once("://").map_or(base, |(_, authority)| authority);
    let found = |location: &str| Reply::redirect(302, location).into();
    Some(match name {
        "r-abs" => found(&format!("{base}/b/ok")),
        "r-schemerel" => found(&format!("//{authority}/b/ok")),
        "r-query" => found("?x=1"),
        "r-empty" => found(""),
        "r-frag" => found("/b/ok#frag"),
        "r-space" => found("/b/ok?q=a b"),
        "r-utf8" => found("/b/ok?q=caf\u{e9}"),
        "r-latin1" => Reply::redirect(302, b"/b/ok?q=caf\xe9").into(),
        "r-dotdot" => found("../../../../b/ok"),
        "r-brace" => found("/b/ok?q={a}|^\"<>"),
        "r-badpct" => found("/b/ok?q=%zz"),
        "r-backslash" => found("\\b\\ok"),
        "r-noloc" => Reply::new(302).body("no location").into(),
        "r-300" => Reply::new(300).body("pick one").into(),
        "r-mailto" => found("mailto:a@example.com"),
        "r-ftp" => found("ftp://127.0.0.1/x"),
        "r-socks" => found(&format!("socks5://{authority}/b/ok")),
        "r-badip" => found("http://256.1.1.1/"),
        "r-badport" => found("http://127.0.0.1:99999/"),
        "r-301" => Reply::redirect(301, "/b/ok").into(),
        "r-303" => Reply::redirect(303, "/b/ok").into(),
        "r-307" => Reply::redirect(307, "/b/ok").into(),
        "r-308" => Reply::redirect(308, "/b/ok").into(),
        "r-loop" => found("/b/r-loop"),
        "r-endless-body" => Script::send("HTTP/1.1 302 Found\r\nLocation: /b/ok\r\n\r\n")
            .repeat("x".repeat(4096), 200, DRIP)
            .fin(),
        "r-short-cl" => Script::send(
            "HTTP/1.1 302 Found\r\nLocation: /b/ok\r\nContent-Length: 50\r\n\r\n0123456789",
        )
        .hold(),
        "r-badgz" => {
            Reply::redirect(302, "/b/ok").header("Content-Encoding", "gzip").body("nope").into()
        }
        _ => return None,
    })
}

/// Servers that want to be left alone for a while, or for good.
fn throttle(name: &str) -> Option<Script> {
    let slow = |status, wait: &str| {
        Script::from(Reply::new(status).reason("Slow").header("Retry-After", wait))
    };
    Some(match name {
        "503-ra-2" => slow(503, "2"),
        "429-ra-0" => slow(429, "0"),
        "429-ra-float" => slow(429, "0.5"),
        "429-ra-past" => slow(429, "Wed, 21 Oct 2015 07:28:00 GMT"),
        "429-ra-1m0s" => slow(429, "1m0s"),
        "429-ra-huge" => slow(429, "99999999999999999999999999"),
        "429-ra-neg" => slow(429, "-5"),
        "403-challenge" => Reply::new(403)
            .header("Server", "cloud")
            .header("Cf-Ray", "8f0000000000abcd-FRA")
            .header("Content-Type", "text/html; charset=utf-8")
            .header("Set-Cookie", "challenge=1; Path=/")
            .body("<html><title>Just a moment...</title></html>")
            .into(),
        _ => return None,
    })
}

/// What happens while a request body is still on its way.
fn upload(name: &str) -> Option<Script> {
    let large = "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig";
    Some(match name {
        "early-413-close" => Script::send(large).close(),
        "early-413-rst" => Script::send(large).pause(Duration::from_millis(50)).rst(),
        "slow-reader" => Script::new().sip(2048, DRIP).then_send(OK),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_script_and_no_other_has_one() {
        for name in ORIGIN {
            let script = origin_script(name, "http://127.0.0.1:1").unwrap();
            assert!(!script.steps().is_empty(), "{name}");
        }
        for name in HTTP_PROXY {
            assert!(http_proxy_script(name).is_some(), "{name}");
        }
        for name in SOCKS {
            assert!(socks_script(name).is_some(), "{name}");
        }
        assert_eq!(origin_script("nothing", ""), None);
        assert_eq!(http_proxy_script(""), None);
        assert_eq!(socks_script("nothing"), None);
        let early: Vec<_> = ORIGIN.iter().copied().filter(|name| is_early(name)).collect();
        assert_eq!(early, ["early-413-close", "early-413-rst", "slow-reader"]);
    }

    #[test]
    fn names_are_distinct() {
        for names in [ORIGIN, HTTP_PROXY, SOCKS] {
            let mut sorted = names.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), names.len());
        }
    }
}
