//! The other side of the demo: an origin that plays the faults which URLs name, and the proxies in
//! front of it. All of it is the library's `lab`, on the loopback address.

use super::pages::{Fault, Page, body};
use flate2::Compression;
use flate2::read::GzEncoder;
use longhaul::lab::{Ca, HttpProxy, Origin, Received, Reply, Script, SocksProxy};
use longhaul::{Error, secs};
use std::collections::HashMap;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// How many host names the pages are spread over; the proxies know where they lead, nobody else.
const HOSTS: u32 = 8;

/// The page that says where a request came from, for the check of the exits.
const ADDRESS_PAGE: &str = "/address";

/// The one account of all three proxies.
const USER: &str = "demo";
const PASSWORD: &str = "p@ss:word";
const PASSWORD_IN_URLS: &str = "p%40ss%3Aword";

/// An origin on a plain and on a TLS port, two HTTP proxies and one SOCKS proxy.
pub(super) struct Servers {
    ca: Ca,
    plain: Origin,
    _tls: Origin,
    http: [HttpProxy; 2],
    socks: SocksProxy,
}

impl Servers {
    /// Starts all of them on free ports.
    ///
    /// # Errors
    /// Those of listening on the loopback address.
    pub(super) fn start() -> Result<Self, Error> {
        let ca = Ca::new()?;
        let requests = Arc::new(Requests::default());
        let origin = || {
            let requests = Arc::clone(&requests);
            Origin::builder().keep(0).handler(move |request| requests.answer(request))
        };
        let (plain, tls) = (origin().start()?, origin().tls(&ca).start()?);
        let names = names(plain.address(), tls.address());
        let http = |number| {
            let proxy = HttpProxy::builder().keep(0).credentials(USER, PASSWORD).names(&names);
            proxy.exits(exit(number)).start()
        };
        let http = [http(2)?, http(3)?];
        let socks = SocksProxy::builder().keep(0).credentials(USER, PASSWORD).names(&names);
        let socks = socks.exits(exit(4)).start()?;
        Ok(Self { ca, plain, _tls: tls, http, socks })
    }

    /// The URL of a page.
    pub(super) fn url(page: &Page) -> String {
        let scheme = if page.is_tls() { "https" } else { "http" };
        format!("{scheme}://{}{page}", host(page.index % HOSTS))
    }

    /// The proxies, as a user would give them.
    pub(super) fn proxies(&self) -> Vec<String> {
        let http = self.http.iter().map(|proxy| ("http", proxy.address()));
        let all = http.chain([("socks5h", self.socks.address())]);
        all.map(|(scheme, address)| format!("{scheme}://{USER}:{PASSWORD_IN_URLS}@{address}"))
            .collect()
    }

    /// Where the exits are asked for before the run; nowhere, where the proxies have none of their
    /// own.
    pub(super) fn address_page(&self) -> Option<String> {
        exit(2).map(|_| self.plain.url(ADDRESS_PAGE))
    }

    /// The root that the TLS port's certificates hang from.
    pub(super) fn certificate(&self) -> String {
        self.ca.pem()
    }
}

/// The address that a proxy leaves by. Linux alone has all of 127.0.0.0/8 without being told.
fn exit(number: u8) -> Option<IpAddr> {
    cfg!(target_os = "linux").then(|| Ipv4Addr::new(127, 0, 0, number).into())
}

fn host(number: u32) -> String {
    format!("site-{number}.test")
}

fn names(plain: SocketAddr, tls: SocketAddr) -> HashMap<String, SocketAddr> {
    (0..HOSTS)
        .map(host)
        .flat_map(|host| [(format!("{host}:80"), plain), (format!("{host}:443"), tls)])
        .collect()
}

/// What both ports of the origin know.
#[derive(Default)]
struct Requests {
    /// How often each page was asked for.
    counts: Mutex<HashMap<u32, u32>>,
    /// Bodies. Making them anew for each request would be the hardest work of
    /// the demo, and on a busy machine a fine page would look like a silent one.
    bodies: Mutex<HashMap<Form, Arc<[u8]>>>,
}

/// What the bytes of a body depend on.
#[derive(PartialEq, Eq, Hash)]
struct Form {
    bytes: usize,
    gzip: bool,
}

impl Requests {
    fn answer(&self, request: &Received) -> Script {
        if request.path == ADDRESS_PAGE {
            return Reply::ok(request.peer.ip().to_string()).into();
        }
        let Ok(page) = request.path.parse::<Page>() else {
            return Reply::new(404).body("no page of the demo\n").into();
        };
        let number = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry(page.index).or_default();
            *count = count.saturating_add(1);
            *count
        };
        if page.fails(number) { self.misbehave(&page) } else { self.fine(&page).into() }
    }

    fn misbehave(&self, page: &Page) -> Script {
        let refusal = |status: u16| Reply::new(status).header("Server", "demo").body("no\n");
        match page.fault {
            Fault::Fine => self.fine(page).into(),
            Fault::Slow => slow(&self.fine(page).render(false)),
            Fault::Busy => refusal(503).header("Retry-After", "1").into(),
            Fault::Throttled => refusal(429).header("Retry-After", "1").into(),
            Fault::Broken => refusal(500).into(),
            Fault::Reset => Script::new().rst(),
            Fault::Silent => Script::new().hold(),
            Fault::Truncated => {
                let mut bytes = self.fine(page).render(false);
                bytes.truncate(bytes.len().saturating_sub(10));
                Script::send(bytes).fin()
            }
            Fault::Refused => refusal(403).header("Set-Cookie", "seen=1").into(),
            Fault::Missing => refusal(404).into(),
            Fault::Gone => refusal(410).into(),
        }
    }

    /// The page as it should be.
    fn fine(&self, page: &Page) -> Reply {
        let body = {
            let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
            let made =
                bodies.entry(Form { bytes: page.bytes, gzip: page.gzip }).or_insert_with(|| {
                    let body = body(page.bytes);
                    if page.gzip { compressed(&body) } else { body }.into()
                });
            Arc::clone(made)
        };
        let reply = Reply::ok([]).header("Content-Type", "text/html; charset=utf-8");
        let reply = if page.gzip { reply.header("Content-Encoding", "gzip") } else { reply };
        reply.shared_body(body)
    }
}

/// `body` as gzip.
fn compressed(body: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    // Neither side can fail: the one is a slice, the other grows as it must.
    let _ = GzEncoder::new(body, Compression::fast()).read_to_end(&mut coded);
    coded
}

/// The same bytes in five pieces, with a twentieth of a second between them.
fn slow(bytes: &[u8]) -> Script {
    let size = bytes.len().div_ceil(5).max(1);
    bytes
        .chunks(size)
        .fold(Script::new(), |script, piece| script.then_send(piece).pause(secs(0.05)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::pages::Times;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use std::io::Write;
    use std::net::TcpStream;

    /// What comes back through the first HTTP proxy, up to the end of the connection.
    fn ask(servers: &Servers, url: &str, credentials: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(servers.http[0].address()).unwrap();
        let host = url.split('/').nth(2).unwrap();
        let login = STANDARD.encode(credentials);
        write!(
            stream,
            "GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Proxy-Connection: close\r\nProxy-Authorization: Basic {login}\r\n\r\n"
        )
        .unwrap();
        let mut answer = Vec::new();
        // A reset is an answer too.
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    fn status(answer: &[u8]) -> String {
        String::from_utf8_lossy(answer.get(9..12).unwrap_or_default()).into_owned()
    }

    fn page(index: u32, fault: Fault, times: Times) -> Page {
        // Never a multiple of three, which would ask for TLS.
        Page { index: index * 3 + 1, fault, times, gzip: false, bytes: 500 }
    }

    #[test]
    fn pages_do_what_their_urls_say() {
        let servers = Servers::start().unwrap();
        let right = format!("{USER}:{PASSWORD}");
        for (index, fault, times, wanted) in [
            (1, Fault::Fine, Times::Always, ["200", "200"]),
            (2, Fault::Slow, Times::Always, ["200", "200"]),
            (3, Fault::Busy, Times::Exactly(1), ["503", "200"]),
            (4, Fault::Throttled, Times::Exactly(1), ["429", "200"]),
            (5, Fault::Broken, Times::Always, ["500", "500"]),
            (6, Fault::Refused, Times::Always, ["403", "403"]),
            (7, Fault::Missing, Times::Always, ["404", "404"]),
            (8, Fault::Gone, Times::Always, ["410", "410"]),
        ] {
            let page = page(index, fault, times);
            let url = Servers::url(&page);
            let answers = [ask(&servers, &url, &right), ask(&servers, &url, &right)];
            assert_eq!(answers.each_ref().map(|answer| status(answer)), wanted, "{url}");
            if wanted[1] == "200" {
                assert!(answers[1].ends_with(&body(page.bytes)), "{url}");
            }
            let asks_for_a_wait = answers[0].windows(14).any(|bytes| bytes == b"Retry-After: 1");
            assert_eq!(asks_for_a_wait, matches!(wanted[0], "503" | "429"), "{url}");
        }
        let torn = page(9, Fault::Truncated, Times::Always);
        let answer = ask(&servers, &Servers::url(&torn), &right);
        assert!(answer.ends_with(&body(torn.bytes)[..490]), "{}", answer.len());
        let url = Servers::url(&page(10, Fault::Fine, Times::Always));
        assert_eq!(status(&ask(&servers, &url, "demo:wrong")), "407");
    }

    #[test]
    fn the_proxies_are_spelt_as_users_spell_them() {
        let servers = Servers::start().unwrap();
        let proxies = servers.proxies();
        assert_eq!(proxies.len(), 3);
        for proxy in proxies {
            let parsed: longhaul::ProxyUrl = proxy.parse().unwrap();
            let login = Some((USER.as_bytes(), PASSWORD.as_bytes()));
            assert_eq!(parsed.credentials(), login, "{parsed}");
        }
    }
}
