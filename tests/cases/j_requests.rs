//! Section J: what a request says of its URL and in its fields; its credentials are in
//! `j_credentials`.

use crate::g_choosing::in_environment;
use crate::roads::{NoNames, Road, World, ca, each, recipe};
use longhaul::ProxyUrl;
use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::lab::{HttpProxy, Origin, Received, Reply, Script, SocksProxy};
use std::sync::Arc;

fn ok() -> World {
    World::new(Origin::builder().handler(|_| Reply::ok("ok")))
}

/// The lines of a request as they stood on the wire.
fn head(request: &Received) -> Vec<String> {
    let text: String = request.head.iter().map(|byte| char::from(*byte)).collect();
    text.trim_end().split("\r\n").map(str::to_owned).collect()
}

#[test]
fn c130_what_is_sent_of_a_url_as_people_write_it() {
    let table = [
        // What stands behind the authority, and the target of the request line.
        ("/b/ok", "/b/ok"),
        ("", "/"),
        ("?q", "/?q"),
        ("/a b", "/a%20b"),
        ("/?q=a b", "/?q=a%20b"),
        ("/?q=caf\u{e9}", "/?q=caf%C3%A9"),
        ("/caf\u{e9}/\u{65e5}", "/caf%C3%A9/%E6%97%A5"),
        ("/%zz", "/%25zz"),
        ("/100%", "/100%25"),
        ("/?a=%zz&b=%41", "/?a=%25zz&b=%2541"),
        ("/%41%7e%2F", "/A~%2F"),
        ("/%e9", "/%E9"),
        ("/[", "/%5B"),
        ("/{}", "/%7B%7D"),
        ("/|", "/%7C"),
        ("/?q=[{|}]^`\"<>", "/?q=%5B%7B%7C%7D%5D%5E%60%22%3C%3E"),
        ("/a\\b", "/a%5Cb"),
        ("\\a", "/%5Ca"),
        ("/a\tb", "/a%09b"),
        ("/a\nb", "/a%0Ab"),
        ("/a\r\nX-Evil: 1", "/a%0D%0AX-Evil:%201"),
        ("/?q=\0\u{7f}", "/?q=%00%7F"),
        ("/a/../b/./c", "/b/c"),
        ("/../../a", "/a"),
        ("/a//b", "/a//b"),
        ("//a", "//a"),
        ("/;p=1?q=1;r=2", "/;p=1?q=1;r=2"),
        ("/?q=http://x/?y#z", "/?q=http://x/?y"),
        ("/a?b?c", "/a?b?c"),
        ("/#top", "/"),
        ("#top", "/"),
        ("/?", "/"),
        ("/:80@x", "/:80@x"),
        ("/\u{202e}\u{200b}", "/%E2%80%AE%E2%80%8B"),
    ];
    each(Road::ALL, ok, |world, road| {
        let session = world.session(road);
        for (rest, target) in table {
            let base = world.url(road, "/");
            for blanks in [("", ""), (" ", "\n"), ("\t\r\n ", " \t\u{a0}\u{3000}")] {
                let url = format!("{}{}{rest}{}", blanks.0, base.trim_end_matches('/'), blanks.1);
                let response = session.get(url).send().unwrap();
                let last = world.origin(road).log().pop().unwrap();
                assert_eq!(last.target, target, "{rest:?}");
                // What was sent is what is shown.
                let shown = response.url();
                let query = shown.query().map(|query| format!("?{query}")).unwrap_or_default();
                assert_eq!(format!("{}{query}", shown.path()), target);
                assert!(last.header("X-Evil").is_none());
            }
        }
    });
}

#[test]
fn c130_through_a_proxy_that_forwards_it_is_the_same() {
    let proxy = HttpProxy::builder()
        .elsewhere(Origin::builder().start().unwrap().address())
        .handler(|_| Some(Script::from(Reply::ok("proxy"))))
        .start()
        .unwrap();
    let session = recipe().proxies(proxy.url().parse::<ProxyUrl>().unwrap()).build().unwrap();
    for (url, target) in [
        (" HTTP://Site.TEST/a b?q=caf\u{e9}#x\n", "http://site.test/a%20b?q=caf%C3%A9"),
        ("http://site.test:80?[", "http://site.test/?%5B"),
        ("http://site.test:8080/%zz", "http://site.test:8080/%25zz"),
        ("http://u:p@site.test/\\", "http://site.test/%5C"),
        ("http://b\u{fc}cher.test/", "http://xn--bcher-kva.test/"),
        ("http://[2001:DB8::0:1]/", "http://[2001:db8::1]/"),
        ("http://127.1/", "http://127.0.0.1/"),
    ] {
        session.get(url).send().unwrap();
        let last = proxy.log().pop().unwrap();
        assert_eq!(last.target, target);
        let authority = target.trim_start_matches("http://").split('/').next();
        assert_eq!(last.header("Host"), authority, "{url}");
    }
}

#[test]
fn c130_what_is_no_url_is_told_before_anything_is_dialled() {
    use ErrorKind::{InvalidScheme, InvalidUrl, MissingScheme};
    let names = Arc::new(NoNames::default());
    let session = recipe().resolver(names.clone()).build().unwrap();
    for (url, kind, words) in [
        ("", MissingScheme, ""),
        ("   ", MissingScheme, ""),
        ("example.test/x", MissingScheme, "https://example.test/x"),
        ("//example.test/", MissingScheme, "https://example.test/"),
        ("/only/a/path", MissingScheme, ""),
        ("example.test:80/x", InvalidScheme, "http:// or https://"),
        ("htp://example.test/", InvalidScheme, "htp"),
        ("file:///etc/passwd", InvalidScheme, ""),
        ("javascript:alert(1)", InvalidScheme, ""),
        ("h\u{ff54}tp://example.test/", InvalidScheme, ""),
        ("http:example.test", InvalidUrl, "//"),
        ("http:/example.test", InvalidUrl, "//"),
        ("http://", InvalidUrl, "host"),
        ("http:///x", InvalidUrl, "host"),
        ("http://?q", InvalidUrl, "host"),
        ("http://:80/", InvalidUrl, "host"),
        ("http://user:s3cret@/", InvalidUrl, "host"),
        ("http://exa mple.test/", InvalidUrl, "white space"),
        ("http://exa\tmple.test/", InvalidUrl, "white space"),
        ("http://example.test :80/", InvalidUrl, "white space"),
        ("http://exam<ple.test/", InvalidUrl, ""),
        ("http://exam%ple.test/", InvalidUrl, ""),
        ("http://a%20b.test/", InvalidUrl, ""),
        ("http://example.test:port/", InvalidUrl, "port"),
        ("http://example.test:99999/", InvalidUrl, "port"),
        ("http://example.test:-1/", InvalidUrl, "port"),
        ("http://example.test:0/", InvalidUrl, "port 0"),
        ("http://[::1/", InvalidUrl, ""),
        ("http://::1/", InvalidUrl, ""),
        ("http://[::1%25eth0]/", InvalidUrl, ""),
        ("http://256.1.1.1/", InvalidUrl, ""),
        ("http://1.2.3.4.5/", InvalidUrl, ""),
        ("http://0x100000000/", InvalidUrl, ""),
    ] {
        let error = session.get(url).send().unwrap_err();
        assert_eq!((error.kind(), error.phase()), (kind, Phase::Prepare), "{url:?}: {error}");
        assert_eq!(error.fault(), Fault::Local, "{url:?}");
        assert!(error.to_string().contains(words), "{url:?}: {error}");
        assert!(!error.to_string().contains("s3cret") && !error.to_string().contains('\t'));
    }
    assert!(names.asked().is_empty());
}

/// Hosts as people write them, and the A-labels that everybody must see.
const HOSTS: &[(&str, &str)] = &[
    ("ex\u{e4}mple.test", "xn--exmple-cua.test"),
    ("EX\u{c4}MPLE.TEST", "xn--exmple-cua.test"),
    ("XN--EXMPLE-CUA.test", "xn--exmple-cua.test"),
    ("fa\u{df}.de", "xn--fa-hia.de"),
    ("\u{65e5}\u{672c}.test", "xn--wgv71a.test"),
    ("ex\u{e4}mple\u{3002}test", "xn--exmple-cua.test"),
    ("\u{ff45}xample.test", "example.test"),
    ("exa\u{ad}mple.test", "example.test"),
    ("%65xample.test", "example.test"),
    ("a_b.test", "a_b.test"),
    ("_dmarc.a--b.test", "_dmarc.a--b.test"),
    ("r3---sn.test", "r3---sn.test"),
    ("-a-.test", "-a-.test"),
    ("example.test.", "example.test."),
    ("\u{2665}.test", "xn--g6h.test"),
];

#[test]
fn c131_the_a_label_is_what_everybody_sees() {
    let plain = Origin::builder().handler(|_| Reply::ok("ok")).start().unwrap();
    let secure = Origin::builder().handler(|_| Reply::ok("ok")).tls(ca()).start().unwrap();
    let proxy = HttpProxy::builder().elsewhere(secure.address()).start().unwrap();
    let socks = SocksProxy::builder().elsewhere(plain.address()).start().unwrap();
    let root = tempfile::NamedTempFile::new().unwrap();
    ca().write_pem(root.path()).unwrap();
    // A session each, so that no kept connection saves asking.
    let through = |url: String| {
        let url: ProxyUrl = url.parse().unwrap();
        recipe().extra_roots(root.path()).proxies(url).build().unwrap()
    };
    let names = Arc::new(NoNames::default());
    let asking = recipe().resolver(names.clone()).build().unwrap();
    for (host, label) in HOSTS {
        // A certificate is not made for every name that may stand in a URL.
        if !label.ends_with('.') && !label.starts_with(['-', '_']) && !label.contains('_') {
            through(proxy.url()).get(format!("https://{host}/")).send().unwrap();
            assert_eq!(proxy.log().pop().unwrap().target, format!("{label}:443"), "CONNECT {host}");
            let last = secure.log().pop().unwrap();
            assert_eq!(last.sni.as_deref(), Some(*label), "SNI of {host}");
            assert_eq!(last.header("Host"), Some(*label), "{host}");
        }
        let socksed = through(socks.url("socks5h"));
        let response = socksed.get(format!("http://{host}/")).send().unwrap();
        assert_eq!(response.url().host_str(), Some(*label));
        assert_eq!(plain.log().pop().unwrap().header("Host"), Some(*label), "{host}");
        assert_eq!(socks.log().pop().unwrap().host, *label, "SOCKS {host}");
        // What the resolver is asked.
        let error = asking.get(format!("http://{host}/")).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NameNotFound);
        assert_eq!(names.asked().pop().as_deref(), Some(*label));
    }
}

#[test]
fn c131_cookies_redirects_and_netrc_know_one_name_in_both_spellings() {
    let site = Origin::builder()
        .handler(|request: &Received| match request.path.as_str() {
            "/set" => Reply::redirect(302, "//xn--exmple-cua.test/end")
                .header("Set-Cookie", "a=1; Path=/; Domain=xn--exmple-cua.test"),
            _ => Reply::ok("ok"),
        })
        .start()
        .unwrap();
    let proxy = HttpProxy::builder().elsewhere(site.address()).start().unwrap();
    let session = recipe().proxies(proxy.url().parse::<ProxyUrl>().unwrap()).build().unwrap();
    let url = "http://EX\u{c4}MPLE.test/set";
    session.get(url).basic_auth("u", "p").send().unwrap();
    let last = site.log().pop().unwrap();
    assert_eq!(last.header("Cookie"), Some("a=1"));
    assert!(last.header("Authorization").is_some(), "the same origin");
}

#[test]
fn c131_no_proxy_knows_one_name_in_both_spellings() {
    let proxy = HttpProxy::builder()
        .elsewhere(Origin::builder().handler(|_| Reply::ok("ok")).start().unwrap().address())
        .handler(|_| Some(Script::from(Reply::ok("proxy"))))
        .start()
        .unwrap();
    for (no_proxy, url, direct) in [
        ("ex\u{e4}mple.test", "http://ex\u{e4}mple.test/", true),
        ("xn--exmple-cua.test", "http://EX\u{c4}MPLE.test/", true),
        ("EX\u{c4}MPLE.TEST", "http://xn--exmple-cua.test/", true),
        (".ex\u{e4}mple.test", "http://a.xn--exmple-cua.test/", true),
        ("example.test", "http://ex\u{e4}mple.test/", false),
    ] {
        let variables = [("HTTP_PROXY", &*proxy.url()), ("NO_PROXY", no_proxy)];
        let result = in_environment(url, true, &variables);
        let wanted = if direct { "name_not_found" } else { "200 proxy" };
        assert!(result.starts_with(wanted), "{no_proxy}, {url}: {result}");
    }
}

#[test]
fn c131_bad_labels_are_no_host() {
    let names = Arc::new(NoNames::default());
    let session = recipe().resolver(names.clone()).build().unwrap();
    let label = "x".repeat(64);
    let long = format!("{}test", "abcdefg.".repeat(32));
    for host in [
        "a..b",
        "a.test..",
        ".a.test",
        "..",
        "xn--\u{e4}.test",
        "xn--zzzzzzzzz99999.test",
        "xn--.test",
        "xn--a.test",
        "a\u{200d}b\u{fffd}.test",
        "\u{2460}\u{2488}a.test\u{2488}",
        &format!("{label}.test"),
        &format!("{}.test", "\u{e4}".repeat(60)),
        &long,
        "exa$mple.test^",
    ] {
        let result = session.get(format!("http://{host}/")).send();
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUrl, "{host}: {error}");
    }
    assert!(names.asked().is_empty(), "{:?}", names.asked());
}

#[test]
fn c137_the_head_of_a_request_line_by_line() {
    each(Road::ALL, ok, |world, road| {
        let url = world.url(road, "/x");
        let host = url.split('/').nth(2).unwrap().to_owned();
        let defaults = [
            "GET /x HTTP/1.1".to_owned(),
            format!("Host: {host}"),
            concat!("User-Agent: longhaul/", env!("CARGO_PKG_VERSION")).to_owned(),
            "Accept-Encoding: gzip, deflate, br, zstd".to_owned(),
            "Accept: */*".to_owned(),
            "Connection: keep-alive".to_owned(),
        ];
        let last = || head(&world.origin(road).log().pop().unwrap());
        let session = world.session(road);
        session.get(&url).send().unwrap();
        assert_eq!(last(), defaults);
        // The same again on the kept connection.
        session.get(&url).send().unwrap();
        assert_eq!(last(), defaults);
        assert_eq!(world.origin(road).log().pop().unwrap().request, 2);

        // A request's field takes the place of the session's, whatever the case; new ones follow.
        let session = world.recipe(road).header("X-One", "s").header("x-two", "s").build().unwrap();
        session
            .get(&url)
            .header("uSER-aGENT", "mine")
            .header("X-TWO", "r")
            .header("Z-Last", "z")
            .header("A-Last", "a")
            .remove_header("ACCEPT")
            .send()
            .unwrap();
        let wanted = [
            &defaults[0],
            &defaults[1],
            "uSER-aGENT: mine",
            &defaults[3],
            &defaults[5],
            "X-One: s",
            "X-TWO: r",
            "Z-Last: z",
            "A-Last: a",
        ];
        assert_eq!(last(), wanted);
        // What a request changed, it changed for itself.
        session.get(&url).send().unwrap();
        assert_eq!(last()[2..5], defaults[2..5]);

        // Nothing is left of what is removed, and nothing comes back by itself.
        let bare = ["User-Agent", "Accept-Encoding", "Accept", "Connection"]
            .iter()
            .fold(world.recipe(road), |recipe, name| recipe.without_header(name))
            .build()
            .unwrap();
        bare.get(&url).send().unwrap();
        assert_eq!(last(), defaults[..2]);
        session
            .get(&url)
            .remove_header("user-agent")
            .remove_header("x-one")
            .remove_header("X-Nowhere")
            .send()
            .unwrap();
        assert!(!last().iter().any(|line| line.starts_with("User-") || line.starts_with("X-One")));

        // Two values of one name are two lines where they are asked for, and one elsewhere.
        session
            .get(&url)
            .header("X-One", "1")
            .add_header("x-one", "2")
            .header("X-Two", "1")
            .header("x-two", "2")
            .send()
            .unwrap();
        let of = |name: &str| -> Vec<String> {
            last().into_iter().filter(|line| line.to_lowercase().starts_with(name)).collect()
        };
        assert_eq!(of("x-one"), ["X-One: 1", "x-one: 2"]);
        assert_eq!(of("x-two"), ["x-two: 2"]);
    });
}

#[test]
fn c137_values_arrive_as_they_were_given() {
    each(Road::FOUR, ok, |world, road| {
        let session = world.session(road);
        for value in
            [&b"caf\xc3\xa9"[..], b"caf\xe9", b"", b"a  b", b"a:b, c;d=\"e\"", b"\x80\xff", b"a\tb"]
        {
            session.get(world.url(road, "/")).header("X-V", value).send().unwrap();
            let last = world.origin(road).log().pop().unwrap();
            let line = [b"X-V: ", value, b"\r\n"].concat();
            let found = last.head.windows(line.len()).any(|window| window == line);
            assert!(found, "{}", String::from_utf8_lossy(&last.head));
        }
        // Nothing that ends a line or a name gets through, and nothing is sent.
        let before = world.origin(road).log().len();
        for (name, value) in [
            ("X-V", "a\r\nX-Evil: 1"),
            ("X-V", "a\n"),
            ("X-V", "a\0"),
            ("X V", "a"),
            ("X:", "a"),
            ("", "a"),
        ] {
            let error = session.get(world.url(road, "/")).header(name, value).send().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidHeader, "{name:?} {value:?}");
        }
        assert_eq!(world.origin(road).log().len(), before);
    });
}

#[test]
fn c137_framing_is_said_once_and_by_the_body() {
    each(Road::FOUR, ok, |world, road| {
        let session = world.session(road);
        let lines = |wanted: &str| -> Vec<String> {
            let all = head(&world.origin(road).log().pop().unwrap()).into_iter();
            all.filter(|line| line.to_lowercase().starts_with(wanted)).collect()
        };
        let url = world.url(road, "/");
        session
            .post(&url)
            .header("content-length", "999")
            .header("TRANSFER-ENCODING", "chunked")
            .body("four")
            .send()
            .unwrap();
        assert_eq!(lines("content-length"), ["Content-Length: 4"]);
        assert!(lines("transfer-encoding").is_empty());
        session.post(&url).send().unwrap();
        assert_eq!(lines("content-length"), ["Content-Length: 0"]);
        session.get(&url).header("Content-Length", "5").send().unwrap();
        assert!(lines("content-length").is_empty());
        // A media type of the user's is the only one.
        session.post(&url).form([("a", "b")]).header("content-TYPE", "x/y").send().unwrap();
        assert_eq!(lines("content-type"), ["content-TYPE: x/y"]);
        session.post(&url).json(&1).send().unwrap();
        assert_eq!(lines("content-type"), ["Content-Type: application/json"]);
        session.get(&url).header("host", "other.test").send().unwrap();
        assert_eq!(lines("host"), ["host: other.test"]);
    });
}

#[test]
fn c137_what_is_asked_to_be_coded_decides_what_is_undone() {
    // A coding that was never asked for is undone all the same, and none is added.
    let world = || {
        World::new(Origin::builder().handler(|request: &Received| {
            Reply::ok(request.headers_named("Accept-Encoding").collect::<Vec<_>>().join("|"))
        }))
    };
    each(Road::TWO, world, |world, road| {
        let session = world.recipe(road).header("accept-encoding", "identity").build().unwrap();
        let get = || session.get(world.url(road, "/"));
        assert_eq!(get().send().unwrap().text().unwrap(), "identity");
        let request = get().header("Accept-Encoding", "gzip;q=0.5, *;q=0");
        assert_eq!(request.send().unwrap().text().unwrap(), "gzip;q=0.5, *;q=0");
        assert_eq!(get().remove_header("Accept-Encoding").send().unwrap().text().unwrap(), "");
    });
}
