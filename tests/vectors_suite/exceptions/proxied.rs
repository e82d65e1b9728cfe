//! The servers of the scenarios with a proxy, in the order of the generator.

use std::time::Duration;

use longhaul::lab::{
    ClosedPort, HttpProxy, HttpProxyBuilder, Issued, Origin, Script, SilentPort, SocksProxy,
};
use longhaul::secs;

use super::scene::{After, CERTIFICATES, OK, Peer, SHORT, Scene, says, script};

const PLAIN: &str = "http://target.invalid/p";
const SECURE: &str = "https://target.invalid/p";

/// Where the tunnels lead that are opened.
const TUNNEL: &str = "https://localhost:9/p";

const TUNNEL_OPENS: &str = "HTTP/1.1 200 OK\r\n\r\n";
const WANTS_LOGIN: &str =
    "HTTP/1.1 407 Auth\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n";
const BAD_GATEWAY: &str = "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n";

pub(super) fn scene(name: &str) -> Option<Scene> {
    unreachable(name)
        .or_else(|| answering(name))
        .or_else(|| tunnelled(name))
        .or_else(|| over_tls(name))
        .or_else(|| misspelled(name))
        .or_else(|| socks(name))
}

fn through(url: &str, proxy: HttpProxyBuilder) -> Scene {
    Scene::new(url).through("http", "", Peer::Http(proxy.start().unwrap()))
}

fn unreachable(name: &str) -> Option<Scene> {
    let closed =
        |url, scheme| Scene::new(url).through(scheme, "", Peer::Closed(ClosedPort::new().unwrap()));
    let silent = |url, scheme| {
        let port = Peer::Silent(SilentPort::new().unwrap());
        Scene::new(url).through(scheme, "", port).connect(SHORT)
    };
    Some(match name {
        "proxy_refused_http" => closed(PLAIN, "http"),
        "proxy_refused_https" => closed(SECURE, "http"),
        "proxy_connect_timeout_http" => silent(PLAIN, "http"),
        "proxy_connect_timeout_https" => silent(SECURE, "http"),
        "socks_connect_timeout" => silent(PLAIN, "socks5h"),
        "socks_refused" => closed(PLAIN, "socks5h"),
        _ => return None,
    })
}

fn answering(name: &str) -> Option<Scene> {
    let says = |url, bytes: &str, after| {
        let script = script(bytes, after);
        through(url, HttpProxy::builder().handler(move |_| Some(script.clone())))
    };
    Some(match name {
        "proxy_407_plain" => says(PLAIN, WANTS_LOGIN, After::Keep),
        "proxy_407_connect" => says(SECURE, WANTS_LOGIN, After::Keep),
        "proxy_403_connect" => {
            says(SECURE, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", After::Keep)
        }
        "proxy_502_connect" => says(SECURE, BAD_GATEWAY, After::Keep),
        "proxy_502_plain" => says(PLAIN, BAD_GATEWAY, After::Keep),
        "proxy_201_connect" => {
            says(SECURE, "HTTP/1.1 201 Created\r\n\r\n", After::Hold).connect(SHORT)
        }
        "proxy_silent_plain" => says(PLAIN, "", After::Hold).read(SHORT),
        "proxy_silent_connect" => says(SECURE, "", After::Hold).connect(SHORT),
        "proxy_garbage_plain" => says(PLAIN, "garbage\r\n\r\n", After::Close),
        "proxy_garbage_connect" => says(SECURE, "garbage\r\n\r\n", After::Close),
        "proxy_close_plain" => says(PLAIN, "", After::Close),
        "proxy_close_connect" => says(SECURE, "", After::Close),
        "proxy_reset_connect" => says(SECURE, "", After::Reset),
        "proxy_connect_ok_then_silent" => says(SECURE, TUNNEL_OPENS, After::Hold).connect(SHORT),
        "proxy_connect_ok_then_close" => says(SECURE, TUNNEL_OPENS, After::Close),
        "proxy_connect_ok_then_plaintext" => {
            says(SECURE, &TUNNEL_OPENS.repeat(2), After::Hold).connect(SHORT)
        }
        "proxy_connect_half_headers_silent" => {
            says(SECURE, "HTTP/1.1 200 OK\r\nX-A", After::Hold).connect(SHORT)
        }
        "proxy_schemeless_ok" => {
            let mut scene = says(PLAIN, OK, After::Close);
            scene.proxy = scene.proxy.map(|url| url.replace("http://", ""));
            scene
        }
        _ => return None,
    })
}

/// A tunnel to an origin that holds this certificate and plays this on each request.
fn tunnel(issued: &Issued, bytes: &str, after: After) -> Scene {
    let origin = says(bytes, after).certificate(issued).start().unwrap();
    tunnel_to(origin, HttpProxy::builder())
}

fn tunnel_to(origin: Origin, proxy: HttpProxyBuilder) -> Scene {
    through(TUNNEL, proxy.name("localhost:9", origin.address())).behind(Peer::Origin(origin))
}

fn tunnelled(name: &str) -> Option<Scene> {
    let held = &*CERTIFICATES;
    let nope = "HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n";
    Some(match name {
        "proxy_tunnel_ok" => tunnel(&held.good, OK, After::Close),
        "proxy_tunnel_target_silent" => tunnel(&held.good, "", After::Hold).read(SHORT),
        "proxy_tunnel_target_closes" => tunnel(&held.good, "", After::Close),
        "proxy_tunnel_target_407" => tunnel(&held.good, nope, After::Close),
        "proxy_tunnel_bad_cert" => tunnel(&held.untrusted, OK, After::Close),
        "proxy_tunnel_each_phase_slow_but_ok" => {
            // Each just within the timeout that requests arms for it.
            let nearly = Duration::mul_f64;
            let (connect, read) = (SHORT, SHORT);
            let answer = Script::new().pause(nearly(read, 0.9)).then_send(OK).fin();
            let origin = Origin::builder()
                .certificate(&held.good)
                .on_accept(move |_| Some(Script::new().pause(nearly(connect, 0.9))))
                .handler(move |_| answer.clone());
            let opens = Script::new().pause(nearly(connect, 0.9)).then_send(TUNNEL_OPENS).tunnel();
            let proxy = HttpProxy::builder().handler(move |_| Some(opens.clone()));
            tunnel_to(origin.start().unwrap(), proxy).connect(connect)
        }
        _ => return None,
    })
}

fn over_tls(name: &str) -> Option<Scene> {
    let greets = |url, script: Script| {
        let proxy = HttpProxy::builder().on_accept(move |_| Some(script.clone()));
        Scene::new(url).through("https", "", Peer::Http(proxy.start().unwrap()))
    };
    let refusal = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    Some(match name {
        "proxy_tls_proxy_on_plain_port" => {
            let script = Script::new().recv().then_send(refusal).pause(secs(0.05)).close();
            greets(SECURE, script)
        }
        "proxy_tls_proxy_silent" => greets(SECURE, Script::new().hold()).connect(SHORT),
        "proxy_tls_proxy_silent_http_target" => greets(PLAIN, Script::new().hold()).connect(SHORT),
        _ => return None,
    })
}

fn misspelled(name: &str) -> Option<Scene> {
    let proxy = match name {
        "proxy_unknown_scheme" => "foo://127.0.0.1:1",
        "proxy_no_host" => "http://",
        "proxy_bad_port" => "http://127.0.0.1:99999",
        _ => return None,
    };
    Some(Scene { proxy: Some(proxy.to_owned()), ..Scene::new(PLAIN) })
}

/// A proxy of which each answer waits for a message of the client.
fn talks(answers: &[&[u8]]) -> Script {
    answers.iter().fold(Script::new(), |script, answer| script.recv().then_send(answer))
}

fn socks(name: &str) -> Option<Scene> {
    let greets = |userinfo, script: Script| {
        let proxy = SocksProxy::builder().on_accept(move |_| Some(script.clone()));
        Scene::new(PLAIN).through("socks5h", userinfo, Peer::Socks(proxy.start().unwrap()))
    };
    let refuses =
        |code: u8| greets("", talks(&[&[5, 0], &[5, code, 0, 1, 0, 0, 0, 0, 0, 0]]).fin());
    let opens = |after| {
        let origin = match after {
            Some(after) => says("", after),
            None => says(OK, After::Close),
        };
        let origin = origin.start().unwrap();
        let proxy = SocksProxy::builder().elsewhere(origin.address()).start().unwrap();
        Scene::new(PLAIN).through("socks5h", "", Peer::Socks(proxy)).behind(Peer::Origin(origin))
    };
    let secure = |scene: Scene| Scene { url: SECURE.to_owned(), ..scene };
    Some(match name {
        "socks_silent" => greets("", Script::new().hold()).connect(SHORT),
        "socks_silent_after_method" => greets("", talks(&[&[5, 0]]).hold()).connect(SHORT),
        "socks_close_at_accept" => greets("", Script::new().recv().fin()),
        "socks_http_server_answers" => {
            greets("", talks(&[b"HTTP/1.1 400 Bad Request\r\n\r\n"]).fin())
        }
        "socks_no_acceptable_method" => greets("", talks(&[&[5, 255]]).recv().hold()),
        "socks_auth_rejected" => greets("u:p@", talks(&[&[5, 2], &[1, 1]]).fin()),
        "socks_auth_required_none_given" => greets("", talks(&[&[5, 2]]).recv().hold()),
        "socks_reply_1_general" => refuses(1),
        "socks_reply_2_not_allowed" => refuses(2),
        "socks_reply_3_net_unreachable" => refuses(3),
        "socks_reply_4_host_unreachable" => refuses(4),
        "socks_reply_5_conn_refused" => refuses(5),
        "socks_reply_6_ttl" => refuses(6),
        "socks_reply_99" => refuses(99),
        "socks_ok" => opens(None),
        "socks_ok_then_silent" => opens(Some(After::Hold)).read(SHORT),
        "socks_ok_then_close" => opens(Some(After::Close)),
        "socks_https_reply_5" => secure(refuses(5)),
        "socks_https_silent" => secure(greets("", Script::new().hold()).connect(SHORT)),
        "socks4_rejected" => {
            let script = talks(&[&[0, 91, 0, 0, 0, 0, 0, 0]]).fin();
            let proxy = SocksProxy::builder().on_accept(move |_| Some(script.clone()));
            Scene::new(PLAIN).through("socks4a", "", Peer::Socks(proxy.start().unwrap()))
        }
        _ => return None,
    })
}
