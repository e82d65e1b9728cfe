//! Section F: cookies come back byte for byte, to whom they belong, and to nobody else.

use crate::roads::{Always, NAME, Road, World, each, recipe};
use crate::said;
use longhaul::error::ErrorKind;
use longhaul::lab::{HttpProxy, Origin, Received, Reply, Script};
use longhaul::proxy::Rotation;
use longhaul::session::CookieJar;
use longhaul::time::{Clock, SimClock, SystemClock};
use longhaul::{ProxyPool, Retry, Session, secs};
use std::sync::Arc;

/// A site that sets these lines at `/set` (and at `/N`, the N-th alone), in one answer.
fn setting(lines: &[&[u8]]) -> World {
    let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.to_vec()).collect();
    World::new(Origin::builder().handler(move |request: &Received| {
        let number: Option<usize> = request.path.trim_start_matches('/').parse().ok();
        let wanted = |at: usize| request.path == "/set" || number == Some(at);
        let mut head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".to_vec();
        for (_, line) in lines.iter().enumerate().filter(|(at, _)| wanted(*at)) {
            head.extend_from_slice(b"Set-Cookie: ");
            head.extend_from_slice(line);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\nok");
        Script::send(head)
    }))
}

fn get(world: &World, road: Road, session: &Session, path: &str) {
    let response = session.get(world.url(road, path)).send().unwrap();
    assert_eq!(response.status(), 200, "{path}");
}

/// The bytes of the Cookie lines of the last request, as they stood on the wire.
fn cookies_of_last(origin: &Origin) -> Vec<Vec<u8>> {
    let last = origin.log().pop().unwrap();
    let lines = last.head.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| line.strip_suffix(b"\r")?.strip_prefix(b"Cookie: "));
    lines.map(<[u8]>::to_vec).collect()
}

/// What came back of a line, after it was set by `http://{host}/` or its https twin.
fn sent(from: &str, lines: &[&str], to: &str) -> Option<String> {
    let origin = |lines: Vec<String>| {
        Origin::builder().handler(move |request: &Received| {
            let reply = Reply::ok("ok");
            if request.path != "/set" {
                return reply;
            }
            lines.iter().fold(reply, |reply, line| reply.header("Set-Cookie", line))
        })
    };
    let site = origin(lines.iter().map(|line| (*line).to_owned()).collect());
    // Every name and every address is this site, so they decide alone.
    let site = site.address("0.0.0.0:0".parse().unwrap()).start().unwrap();
    let port = site.address().port();
    let session = recipe().resolver(Always::home()).build().unwrap();
    session.get(format!("http://{from}:{port}/set")).send().unwrap();
    session.get(format!("http://{to}:{port}/")).send().unwrap();
    site.log().pop().unwrap().header("Cookie").map(str::to_owned)
}

#[test]
fn c85_what_was_set_comes_back_byte_for_byte() {
    let table: &[(&[u8], &[u8])] = &[
        (b"a={\"k\":\"v w\",1}", b"a={\"k\":\"v w\",1}"),
        (b"b=\"x,y\"", b"b=\"x,y\""),
        (b"c[id]=1", b"c[id]=1"),
        (b"d=caf\xc3\xa9", b"d=caf\xc3\xa9"),
        (b"e=", b"e="),
        (b"=v", b"v"),
        (b"lonely", b"lonely"),
        // The siblings: other bytes, other places.
        (b"latin=caf\xe9", b"latin=caf\xe9"),
        (b"high=\x80\xff", b"high=\x80\xff"),
        (b"n\xc3\xa4me=1", b"n\xc3\xa4me=1"),
        (b"back=a\\\"b\\", b"back=a\\\"b\\"),
        (b"half=\"open", b"half=\"open"),
        (b"quoted=\"a;b\"", b"quoted=\"a"),
        (b"eq=a=b==", b"eq=a=b=="),
        (b"json%20=%7B%22a%22%3A1%7D", b"json%20=%7B%22a%22%3A1%7D"),
        (b"tab=a\tb", b"tab=a\tb"),
        (b"sp ace=a  b", b"sp ace=a  b"),
        (b"  trim \t=\t v ; Path=/", b"trim=v"),
        (b"(){}<>@:,/?=(){}<>@:,/?", b"(){}<>@:,/?=(){}<>@:,/?"),
        (b"$Version=1", b"$Version=1"),
        (b"Path=/x", b"Path=/x"),
        (b"Case=1", b"Case=1"),
        (b"case=2", b"case=2"),
        (b"comma=1, 2=3", b"comma=1, 2=3"),
        (b"date=Wed, 21 Oct 2015 07:28:00 GMT", b"date=Wed, 21 Oct 2015 07:28:00 GMT"),
        (b"long=", b"long="),
    ];
    let lines: Vec<&[u8]> = table.iter().map(|(line, _)| *line).collect();
    each(
        Road::ALL,
        || setting(&lines),
        |world, road| {
            // Each alone.
            for (number, (line, wanted)) in table.iter().enumerate() {
                let session = world.session(road);
                get(world, road, &session, &format!("/{number}"));
                get(world, road, &session, "/");
                let shown = String::from_utf8_lossy(line);
                assert_eq!(cookies_of_last(world.origin(road)), [wanted.to_vec()], "{shown}");
            }
            // And all together: one line, in the order of their setting.
            let session = world.session(road);
            get(world, road, &session, "/set");
            get(world, road, &session, "/");
            let all: Vec<&[u8]> = table.iter().map(|(_, wanted)| *wanted).collect();
            // `=v` and `lonely` are the same cookie, that without a name.
            let all: Vec<&[u8]> = all.into_iter().filter(|one| *one != b"lonely").collect();
            let all: Vec<&[u8]> =
                all.into_iter().map(|one| if one == b"v" { b"lonely" } else { one }).collect();
            assert_eq!(cookies_of_last(world.origin(road)), [all.join(&b"; "[..])]);
        },
    );
}

#[test]
fn c85_control_characters_and_giants_cost_themselves_alone() {
    let at_most = format!("m={}", "x".repeat(4095));
    let over = format!("o={}", "x".repeat(4096));
    let attribute = format!("p=1; Path=/{}", "x".repeat(1024));
    let lines: &[&[u8]] = &[
        b"a=1",
        b"nul=\0",
        b"bell=\x07x",
        b"del=\x7f",
        over.as_bytes(),
        at_most.as_bytes(),
        attribute.as_bytes(),
        b"; Path=/",
        b"",
        b"=",
        b" \t ",
        b"z=1",
    ];
    each(
        Road::FOUR,
        || setting(lines),
        |world, road| {
            let session = world.session(road);
            get(world, road, &session, "/set");
            get(world, road, &session, "/");
            let wanted = format!("a=1; {at_most}; p=1; z=1");
            assert_eq!(cookies_of_last(world.origin(road)), [wanted.into_bytes()]);
        },
    );
}

#[test]
fn c85_every_answer_may_set_them_whatever_else_it_is() {
    // A redirect, an error, a challenge, an answer that is retried, one whose body breaks off.
    let world = || {
        World::new(Origin::builder().handler(|request: &Received| {
            let name = request.path.trim_start_matches('/').to_owned();
            let set = |reply: Reply| reply.header("Set-Cookie", format!("{name}=1; Path=/"));
            match name.as_str() {
                "302" => set(Reply::redirect(302, "/end")).into(),
                "401" | "404" | "503" => set(Reply::new(name.parse().unwrap())).into(),
                "304" => set(Reply::new(304)).into(),
                "cut" => Script::send(
                    "HTTP/1.1 200 OK\r\nSet-Cookie: cut=1\r\nContent-Length: 9\r\n\r\nabc",
                )
                .fin(),
                // An interim response sets nothing.
                "103" => Script::send(
                    "HTTP/1.1 103 Early Hints\r\nSet-Cookie: early=1\r\n\r\n\
                     HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                ),
                _ => Script::from(Reply::ok("end")),
            }
        }))
    };
    each(Road::FOUR, world, |world, road| {
        let session = world.session(road);
        for name in ["302", "401", "404", "304", "503", "cut", "103"] {
            let _ = session.get(world.url(road, &format!("/{name}"))).send();
        }
        get(world, road, &session, "/end");
        let wanted = b"302=1; 401=1; 404=1; 304=1; 503=1; cut=1".to_vec();
        assert_eq!(cookies_of_last(world.origin(road)), [wanted]);
        // What a redirect sets is sent with the very next hop.
        let log = world.origin(road).log();
        assert_eq!(log[1].header("Cookie"), Some("302=1"));
    });
}

#[test]
fn c85_the_reply_of_a_proxy_sets_nothing() {
    let world = World::new(Origin::builder().handler(|_| Reply::ok("ok")));
    let proxy = HttpProxy::builder()
        .elsewhere(world.secure.address())
        .handler(|_| {
            Some(Script::send("HTTP/1.1 200 OK\r\nSet-Cookie: proxy=1; Path=/\r\n\r\n").tunnel())
        })
        .start()
        .unwrap();
    let session = world
        .recipe(Road::TlsTunnel)
        .proxies(proxy.url().parse::<longhaul::ProxyUrl>().unwrap())
        .build()
        .unwrap();
    for _ in 0..2 {
        get(&world, Road::TlsTunnel, &session, "/");
    }
    assert!(cookies_of_last(&world.secure).is_empty());
}

#[test]
fn c87_who_gets_a_cookie() {
    let host = "a.example.co.uk";
    for (from, line, to, wanted) in [
        // Public suffixes, also those of private registries and of single labels.
        (host, "x=1; Domain=co.uk", "b.example.co.uk", false),
        (host, "x=1; Domain=co.uk", host, false),
        (host, "x=1; Domain=uk", host, false),
        (host, "x=1; Domain=.uk", host, false),
        ("a.github.io", "x=1; Domain=github.io", "b.github.io", false),
        // Rules with a wildcard, and the exceptions to them.
        ("a.b.kawasaki.jp", "x=1; Domain=b.kawasaki.jp", "c.b.kawasaki.jp", false),
        ("a.city.kawasaki.jp", "x=1; Domain=city.kawasaki.jp", "b.city.kawasaki.jp", true),
        ("a.test", "x=1; Domain=test", "b.test", false),
        (host, "x=1; Domain=example.co.uk", "b.example.co.uk", true),
        (host, "x=1; Domain=example.co.uk", "example.co.uk", true),
        (host, "x=1; Domain=example.co.uk", "example.co.uk.evil.test", false),
        // Addresses: themselves, and no part of them.
        ("127.0.0.1", "x=1", "127.0.0.1", true),
        ("127.0.0.1", "x=1; Domain=127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "x=1; Domain=.127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "x=1; Domain=0.0.1", "127.0.0.1", false),
        ("127.0.0.1", "x=1; Domain=1", "127.0.0.1", false),
        ("127.0.0.1", "x=1; Domain=127.0.0.2", "127.0.0.2", false),
        ("127.0.0.1", "x=1", "127.1", true),
        ("127.0.0.1", "x=1", "2130706433", true),
        ("127.0.0.1", "x=1", "127.0.0.2", false),
        // Names without a dot.
        ("localhost", "x=1", "localhost", true),
        ("localhost", "x=1; Domain=localhost", "localhost", true),
        ("localhost", "x=1; Domain=.localhost", "localhost", true),
        ("localhost", "x=1; Domain=localhost", "sub.localhost", false),
        // Case and leading dots.
        ("a.EXAMPLE.test", "x=1; Domain=.EXAMPLE.test", "b.example.TEST", true),
        ("a.example.test", "x=1; domain=ExAmPlE.tEsT", "example.test", true),
        ("a.example.test", "x=1; Domain=..example.test", "a.example.test", false),
        // Above, beside, below, alike.
        ("example.test", "x=1; Domain=a.example.test", "a.example.test", false),
        ("a.example.test", "x=1; Domain=b.example.test", "b.example.test", false),
        ("badexample.test", "x=1; Domain=example.test", "example.test", false),
        ("example.test", "x=1; Domain=example.test", "badexample.test", false),
        ("example.test", "x=1", "a.example.test", false),
        ("a.example.test", "x=1", "example.test", false),
        ("example.test", "x=1; Domain=", "example.test", true),
        ("example.test", "x=1; Domain=", "a.example.test", false),
        ("example.test", "x=1; Domain", "example.test", true),
        ("example.test", "x=1; Domain=other.test; Domain=example.test", "a.example.test", true),
        ("example.test", "x=1; Domain=example.test; Domain=other.test", "example.test", false),
        ("example.test", "x=1; Domain=http://example.test/", "example.test", false),
        ("example.test", "x=1; Domain=example.test:80", "example.test", false),
        ("example.test", "x=1; Domain=exam ple.test", "example.test", false),
        // Labels of other alphabets, on either side in either spelling.
        ("bücher.test", "x=1", "xn--bcher-kva.test", true),
        ("a.bücher.test", "x=1; Domain=xn--bcher-kva.test", "b.bücher.test", true),
        ("a.example.公司.cn", "x=1; Domain=xn--55qx5d.cn", "b.example.公司.cn", false),
    ] {
        assert_eq!(sent(from, &[line], to).is_some(), wanted, "{from}: {line} to {to}");
    }
}

#[test]
fn c87_ports_and_schemes_of_a_host_share_its_cookies() {
    let world = World::new(Origin::builder().handler(|request: &Received| {
        let reply = Reply::ok("ok");
        match request.path.as_str() {
            "/open" => reply.header("Set-Cookie", "open=1; Path=/"),
            "/secure" => reply.header("Set-Cookie", "secure=1; Path=/; Secure; SameSite=Strict"),
            "/over" => reply.header("Set-Cookie", "secure=planted; Path=/"),
            "/host" => reply.header("Set-Cookie", "__Host-a=1; Path=/; Secure"),
            "/badhost" => reply
                .header("Set-Cookie", "__Host-b=1; Path=/; Secure; Domain=127.0.0.1")
                .header("Set-Cookie", "__Host-c=1; Secure")
                .header("Set-Cookie", "__secure-d=1")
                .header("Set-Cookie", "__HOST-e=1; Path=/")
                .header("Set-Cookie", "=__Host-f=1; Path=/"),
            _ => reply,
        }
    }));
    let session = world.session(Road::Tls);
    let go = |road, path| get(&world, road, &session, path);
    let last = |road| world.origin(road).log().pop().unwrap().header("Cookie").map(str::to_owned);
    go(Road::Plain, "/open");
    go(Road::Tls, "/");
    assert_eq!(last(Road::Tls).as_deref(), Some("open=1"), "another port and TLS");
    // Secure ones stay off plain http, and cannot be made or replaced from there. SameSite asks
    // about the page that a request comes from; here there is none.
    go(Road::Plain, "/secure");
    go(Road::Tls, "/");
    assert_eq!(last(Road::Tls).as_deref(), Some("open=1"));
    go(Road::Tls, "/secure");
    go(Road::Plain, "/over");
    assert_eq!(last(Road::Plain).as_deref(), Some("open=1"));
    go(Road::Tls, "/host");
    go(Road::Tls, "/badhost");
    go(Road::Plain, "/badhost");
    go(Road::Tls, "/");
    assert_eq!(last(Road::Tls).as_deref(), Some("open=1; secure=1; __Host-a=1"));
    go(Road::Plain, "/");
    assert_eq!(last(Road::Plain).as_deref(), Some("open=1"));
}

#[test]
fn c87_paths_decide_too() {
    let site = Origin::builder()
        .handler(|request: &Received| {
            let reply = Reply::ok("ok");
            if request.path != "/dir/set" {
                return reply;
            }
            [
                "a=1",
                "b=1; Path=/",
                "c=1; Path=/dir/",
                "d=1; Path=/other",
                "e=1; Path=dir",
                "f=1; Path=/d",
            ]
            .iter()
            .fold(reply, |reply, line| reply.header("Set-Cookie", line))
        })
        .start()
        .unwrap();
    let session = recipe().build().unwrap();
    session.get(site.url("/dir/set")).send().unwrap();
    for (path, wanted) in [
        ("/", Some("b=1")),
        ("/dir", Some("a=1; e=1; b=1")),
        ("/dir/", Some("c=1; a=1; e=1; b=1")),
        ("/dir/x", Some("c=1; a=1; e=1; b=1")),
        ("/dirx", Some("b=1")),
        ("/d", Some("f=1; b=1")),
        ("/other/x?q", Some("d=1; b=1")),
        ("/DIR/", Some("b=1")),
    ] {
        session.get(site.url(path)).send().unwrap();
        assert_eq!(site.log().pop().unwrap().header("Cookie"), wanted, "{path}");
    }
}

#[test]
fn c87_on_every_road_the_name_decides_and_not_the_proxy() {
    let lines: &[&[u8]] = &[
        b"host=1",
        b"dom=1; Domain=origin.test",
        b"suffix=1; Domain=test",
        b"other=1; Domain=proxy.test",
    ];
    each(
        Road::ALL,
        || setting(lines),
        |world, road| {
            let session = world.session(road);
            get(world, road, &session, "/set");
            get(world, road, &session, "/");
            let wanted = if road.is_direct() { "host=1" } else { "host=1; dom=1" };
            assert_eq!(cookies_of_last(world.origin(road)), [wanted.as_bytes()], "{NAME}");
        },
    );
}

#[test]
fn c88_a_cookie_field_of_the_users_takes_the_place_of_the_jars_and_ends_at_a_redirect() {
    let world = || {
        World::new(Origin::builder().handler(|request: &Received| match request.path.as_str() {
            "/set" => Reply::ok("ok").header("Set-Cookie", "a=1; Path=/"),
            "/go" => Reply::redirect(302, "/end"),
            "/go307" => Reply::redirect(307, "/end"),
            "/change" => Reply::redirect(302, "/end").header("Set-Cookie", "a=2; Path=/"),
            _ => Reply::ok("ok"),
        }))
    };
    each(Road::ALL, world, |world, road| {
        let session = world.session(road);
        get(world, road, &session, "/set");
        let lines = || {
            let log = world.origin(road).log();
            let lines: Vec<String> = log[log.len() - 2..]
                .iter()
                .map(|one| joined(one.headers_named("Cookie")))
                .collect();
            (lines[0].clone(), lines[1].clone())
        };
        let send = |path: &str, name: &str, value: &str| {
            session.get(world.url(road, path)).header(name, value).send().unwrap();
        };
        send("/", "Cookie", "b=2");
        assert_eq!(lines().1, "b=2");
        // Whatever its case, and also where it is empty.
        send("/", "cOOKIE", "b=3");
        assert_eq!(lines().1, "b=3");
        send("/", "Cookie", "");
        assert_eq!(lines().1, "");
        // The jar is neither asked nor changed by it.
        get(world, road, &session, "/");
        assert_eq!(lines().1, "a=1");
        for path in ["/go", "/go307"] {
            send(path, "Cookie", "b=2");
            assert_eq!(lines(), ("b=2".to_owned(), "a=1".to_owned()), "{path}");
        }
        send("/change", "Cookie", "b=2");
        assert_eq!(lines(), ("b=2".to_owned(), "a=2".to_owned()));
        // Two lines that the user asks for are two lines.
        let url = world.url(road, "/");
        session.get(url).header("Cookie", "b=2").add_header("Cookie", "c=3").send().unwrap();
        assert_eq!(lines().1, "b=2|c=3");
        // One of the session, and a request that leaves it out: the jar's again.
        let recipe = world.recipe(road).header("Cookie", "s=1");
        let mut jar = CookieJar::new();
        let host = url::Url::parse(&world.url(road, "/")).unwrap().host_str().unwrap().to_owned();
        jar.set("j", "1", &host, "/").unwrap();
        let session = recipe.cookies(jar).build().unwrap();
        session.get(world.url(road, "/")).send().unwrap();
        assert_eq!(lines().1, "s=1");
        session.get(world.url(road, "/")).remove_header("Cookie").send().unwrap();
        assert_eq!(lines().1, "j=1");
        session.get(world.url(road, "/go")).send().unwrap();
        assert_eq!(lines(), ("s=1".to_owned(), "j=1".to_owned()));
    });
}

#[test]
fn c88_each_hop_is_sent_what_is_its_own() {
    // From one host to another and back, with what each sets on the way.
    let site = Origin::builder()
        .handler(|request: &Received| {
            let port = request.header("Host").unwrap().rsplit(':').next().unwrap();
            let to = |host: &str, path: &str| {
                let reply = Reply::redirect(302, format!("http://{host}:{port}{path}"));
                reply.header("Set-Cookie", format!("hop{}=1; Path=/", &path[1..]))
            };
            match request.path.as_str() {
                "/1" => to("b.test", "/2"),
                "/2" => to("a.test", "/3"),
                "/3" => to("sub.a.test", "/4"),
                _ => Reply::ok("ok"),
            }
        })
        .start()
        .unwrap();
    let port = site.address().port();
    let session = recipe().resolver(Always::home()).build().unwrap();
    let url = format!("http://a.test:{port}/1");
    session.get(url).header("Cookie", "mine=1").send().unwrap();
    let sent: Vec<_> =
        site.log().iter().map(|one| one.header("Cookie").map(str::to_owned)).collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(sent, [some("mine=1"), None, some("hop2=1"), None]);
}

fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.collect::<Vec<_>>().join("|")
}

#[test]
fn c88_a_retry_sends_what_its_attempt_would_send_now() {
    // A 503 sets a cookie; the retry shows it, and a field of the user's stays as it is.
    let site = Origin::builder()
        .handler(|request: &Received| match request.header("Cookie") {
            None => Reply::new(503).header("Set-Cookie", "pass=1; Path=/"),
            Some(_) => Reply::ok("ok"),
        })
        .start()
        .unwrap();
    let clock = Arc::new(SimClock::default());
    let session = recipe().clock(clock).retry(Retry::long_run()).build().unwrap();
    let response = session.get(site.url("/")).send().unwrap();
    assert_eq!((response.status(), response.attempts().len()), (200, 2));
    assert_eq!(site.log()[1].header("Cookie"), Some("pass=1"));
    session.get(site.url("/")).header("Cookie", "mine=1").send().unwrap();
    assert_eq!(site.log()[2].header("Cookie"), Some("mine=1"));
}

#[test]
fn c90_a_jar_of_a_long_run_stays_small_and_keeps_what_is_used() {
    let mut jar = CookieJar::new();
    let at = |url: &str| url::Url::parse(url).unwrap();
    let store = |jar: &mut CookieJar, url: &url::Url, lines: &[&str], now| {
        let mut headers = http::HeaderMap::new();
        for line in lines {
            headers.append("set-cookie", line.parse().unwrap());
        }
        jar.store(url, &headers, now);
    };
    let now = SystemClock.wall();
    let used = at("http://used.test/");
    store(&mut jar, &used, &["login=1"], now);
    let lines = ["a=1", "b=2", "c=3; Max-Age=60", "d=4; Max-Age=1", "e=5; Domain=example.test"];
    let mut most = 0;
    for host in 0..20_000_u32 {
        // The fifth names another host, but for every tenth one.
        let url = match host % 10 {
            0 => at(&format!("http://h{host}.example.test/")),
            _ => at(&format!("http://h{host}.test/")),
        };
        store(&mut jar, &url, &lines, now);
        most = most.max(jar.len());
        if host % 100 == 0 {
            assert_eq!(jar.header(&used, now).as_deref(), Some(&b"login=1"[..]), "{host}");
        }
    }
    assert!((2000..=3000).contains(&most), "{most}");
    // The last one that came is there, the first one is gone.
    assert!(jar.header(&at("http://h19999.test/"), now).is_some());
    assert!(jar.header(&at("http://h1.test/"), now).is_none());
    // Of one domain there are 50 at most, however many hosts set them.
    let of_one = jar.iter().filter(|cookie| cookie.domain() == "example.test").count();
    assert!(of_one <= 50, "{of_one}");
    // What is over is never sent, and is gone with the next cookie of its site.
    let later = now + secs(120.0);
    let last = at("http://h19999.test/");
    assert_eq!(jar.header(&last, later).as_deref(), Some(&b"a=1; b=2"[..]));
    store(&mut jar, &last, &["f=6"], later);
    let of_last = jar.iter().filter(|cookie| cookie.domain() == "h19999.test").count();
    assert_eq!(of_last, 3);
}

#[test]
fn c90_one_site_that_floods_loses_its_own_cookies_only() {
    let world = World::new(Origin::builder().handler(|request: &Received| {
        let reply = Reply::ok("ok");
        match request.path.as_str() {
            path if path.starts_with("/flood") => (0..190).fold(reply, |reply, number| {
                let name = path.trim_start_matches("/flood");
                reply.header("Set-Cookie", format!("f{name}{number}=1; Path=/"))
            }),
            "/first" => reply.header("Set-Cookie", "first=1; Path=/"),
            _ => reply,
        }
    }));
    let port = world.plain.address().port();
    let session = recipe().resolver(Always::home()).build().unwrap();
    let go = |host: &str, path: &str| {
        session.get(format!("http://{host}:{port}{path}")).send().unwrap();
        world.plain.log().pop().unwrap().header("Cookie").unwrap_or_default().to_owned()
    };
    go("quiet.test", "/first");
    go("loud.test", "/first");
    for time in 1..=3 {
        go("loud.test", &format!("/flood{time}-"));
    }
    let loud = go("loud.test", "/");
    assert_eq!(loud.split("; ").count(), 50);
    assert!(loud.ends_with("f3-189=1"), "{loud}");
    assert_eq!(go("quiet.test", "/"), "first=1");
}

#[test]
fn c91_a_retry_through_another_exit_shows_no_cookie_of_the_first() {
    // The origin sets `id` by each exit and bans the first one.
    let site = Origin::builder()
        .handler(|request: &Received| {
            let exit = request.peer.ip().to_string();
            let set = format!("id={exit}; Path=/");
            match (exit.as_str(), request.path.as_str()) {
                ("127.0.0.2", "/banned") => Reply::new(503).header("Set-Cookie", set),
                _ => Reply::ok("ok").header("Set-Cookie", set),
            }
        })
        .start()
        .unwrap();
    let exit = |last: u8| {
        HttpProxy::builder()
            .elsewhere(site.address())
            .exits([[127, 0, 0, last].into()])
            .start()
            .unwrap()
    };
    let (two, three) = (exit(2), exit(3));
    for (always_connect, rotation) in
        [(false, Rotation::Retry), (true, Rotation::Retry), (false, Rotation::Request)]
    {
        let before = site.log().len();
        let pool = ProxyPool::parse(&format!("{}\n{}", two.url(), three.url())).unwrap();
        let session = recipe()
            .clock(Arc::new(SimClock::default()))
            .retry(Retry::long_run())
            .proxies(pool.rotation(rotation).always_connect(always_connect))
            .build()
            .unwrap();
        for _ in 0..4 {
            session.get("http://site.test/banned").send().unwrap();
        }
        let mut met = Vec::new();
        for request in &site.log()[before..] {
            let exit = request.peer.ip().to_string();
            let own = format!("id={exit}");
            // Never that of the other, and once it was given always the own one.
            let known = met.contains(&exit);
            assert_eq!(request.header("Cookie"), known.then_some(own.as_str()), "{exit}");
            met.push(exit);
        }
        assert!(met.contains(&"127.0.0.2".to_owned()) && met.contains(&"127.0.0.3".to_owned()));
    }
}

#[test]
fn c91_the_cookies_that_everybody_starts_with_are_copied_and_not_shared() {
    let site = Origin::builder()
        .handler(|request: &Received| {
            let exit = request.peer.ip().to_string();
            Reply::ok("ok").header("Set-Cookie", format!("start={exit}; Path=/"))
        })
        .start()
        .unwrap();
    let exit = |last: u8| {
        HttpProxy::builder()
            .elsewhere(site.address())
            .exits([[127, 0, 0, last].into()])
            .start()
            .unwrap()
    };
    let (two, three) = (exit(2), exit(3));
    let mut jar = CookieJar::new();
    jar.set("start", "file", "site.test", "/").unwrap();
    let pool = ProxyPool::parse(&format!("{}\n{}", two.url(), three.url())).unwrap();
    let session = recipe().proxies(pool).cookies(jar).build().unwrap();
    for _ in 0..4 {
        session.get("http://site.test/").send().unwrap();
    }
    let sent: Vec<_> =
        site.log().iter().map(|one| one.header("Cookie").unwrap().to_owned()).collect();
    assert_eq!(sent, ["start=file", "start=file", "start=127.0.0.2", "start=127.0.0.3"]);
}

#[test]
fn c91_no_value_of_a_cookie_is_shown() {
    said::listen();
    let site = Origin::builder()
        .handler(|_| {
            Reply::redirect(302, "ftp://elsewhere.test/")
                .header("Set-Cookie", "sid=hunter2; Path=/")
        })
        .start()
        .unwrap();
    let session = recipe().build().unwrap();
    let error = session.get(site.url("/")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidScheme);
    session.with_cookies(|jar| {
        assert_eq!(jar.len(), 1);
        let shown = format!("{error} {error:?} {session:?} {jar:?}", session = session.settings());
        assert!(!shown.contains("hunter2"), "{shown}");
    });
    assert!(said::with("hunter2").is_empty());
}
