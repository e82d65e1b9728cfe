//! Section E: where a Location leads.

use crate::answers::leading;
use crate::roads::{Always, Road, World, each};
use longhaul::error::ErrorKind;
use longhaul::lab::{HttpProxy, Origin, Received, Reply};
use longhaul::{Response, Session};

/// Follows the N-th of them; gives the response and what the origin was asked for in the end.
fn followed(world: &World, road: Road, session: &Session, number: usize) -> (Response, String) {
    let url = world.url(road, &format!("/dir/{number}?q"));
    let response = session.get(url).send().unwrap();
    (response, world.origin(road).log().pop().unwrap().target)
}

/// Follows each of these locations to the target that is wanted of it; `see` is shown what came.
fn each_leads(roads: &[Road], pairs: &[(&str, &str)], see: impl Fn(&str, &Response) + Sync) {
    let locations: Vec<&str> = pairs.iter().map(|(location, _)| *location).collect();
    each(
        roads,
        || leading(&locations),
        |world, road| {
            let session = world.session(road);
            for (number, (location, wanted)) in pairs.iter().enumerate() {
                let (response, target) = followed(world, road, &session, number);
                assert_eq!(target, *wanted, "{location:?}");
                see(location, &response);
            }
        },
    );
}

#[test]
fn c70_what_must_not_stand_in_a_url_is_escaped_and_followed() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for (name, target) in [
            ("r-space", "/b/ok?q=a%20b"),
            ("r-brace", "/b/ok?q=%7Ba%7D%7C%5E%22%3C%3E"),
            ("r-badpct", "/b/ok?q=%25zz"),
        ] {
            let response = session.get(world.url(road, &format!("/b/{name}"))).send().unwrap();
            assert_eq!(response.text().unwrap(), "ok", "{name}");
            assert_eq!(response.history().len(), 1);
            assert_eq!(world.origin(road).log().pop().unwrap().target, target, "{name}");
        }
    });
}

#[test]
fn c70_each_byte_once_wherever_it_stands() {
    let pairs = [
        // In the path, the query and the fragment.
        ("/a b/c d", "/a%20b/c%20d"),
        ("/a`b", "/a%60b"),
        ("/<script>", "/%3Cscript%3E"),
        ("/x?a={\"k\":[1,2]}", "/x?a=%7B%22k%22:[1,2]%7D"),
        ("/x#a b", "/x"),
        ("/a\\b", "/a%5Cb"),
        ("/x?a\\b", "/x?a%5Cb"),
        // What is escaped stays as it is, in its own case.
        ("/a%20b c", "/a%20b%20c"),
        ("/caf%c3%a9 x", "/caf%c3%a9%20x"),
        ("/a%2Fb%2fc", "/a%2Fb%2fc"),
        ("/x?u=http%3A%2F%2Fh%2F", "/x?u=http%3A%2F%2Fh%2F"),
        ("/100%25", "/100%25"),
        // Escapes of what needs none are undone, as requests does.
        ("/%7Euser", "/~user"),
        // A percent sign that begins no escape makes all of them data.
        ("/a%zz%20", "/a%25zz%2520"),
        // Blanks around it are none of it; tabs inside of it neither.
        ("  /b  ", "/b"),
        ("/b\tc", "/bc"),
        // What may stand stays.
        ("/!$&'()*+,;=:@-._~", "/!$&'()*+,;=:@-._~"),
        ("/x?!$&()*+,;=:@/?-._~", "/x?!$&()*+,;=:@/?-._~"),
        ("/a+b?c+d", "/a+b?c+d"),
    ];
    each_leads(&[Road::Plain, Road::Forward, Road::Tls], &pairs, |_, response| {
        assert_eq!(response.text().unwrap(), "there");
    });
}

#[test]
fn c70_a_chain_over_escaped_places_escapes_nothing_twice() {
    // Each hop sends back what it was asked for, which was escaped once already.
    let world = || {
        World::new(Origin::builder().handler(|request: &Received| {
            match request.target.matches('+').count() {
                0..4 => Reply::redirect(302, format!("{}+", request.target)),
                _ => Reply::ok("there"),
            }
        }))
    };
    each(Road::EVERY, world, |world, road| {
        let session = world.session(road);
        session.get(world.url(road, "/a b?c=%7B{\u{e9}")).send().unwrap();
        let targets: Vec<_> =
            world.origin(road).log().into_iter().map(|request| request.target).collect();
        let first = targets[0].clone();
        assert!(!first.contains(' ') && !first.contains("%25"), "{first}");
        let wanted: Vec<_> = (0..5).map(|hop| format!("{first}{}", "+".repeat(hop))).collect();
        assert_eq!(targets, wanted);
    });
}

#[test]
fn c71_raw_utf_8_and_latin_1_are_escaped_as_they_came() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for (name, target, raw) in [
            ("r-utf8", "/b/ok?q=caf%C3%A9", &b"/b/ok?q=caf\xc3\xa9"[..]),
            ("r-latin1", "/b/ok?q=caf%E9", b"/b/ok?q=caf\xe9"),
        ] {
            let response = session.get(world.url(road, &format!("/b/{name}"))).send().unwrap();
            assert_eq!(response.text().unwrap(), "ok", "{name}");
            assert_eq!(world.origin(road).log().pop().unwrap().target, target, "{name}");
            assert_eq!(response.history()[0].headers()["location"].as_bytes(), raw, "{name}");
        }
    });
}

#[test]
fn c71_every_byte_beyond_ascii_and_every_mixture() {
    let mut pairs: Vec<(Vec<u8>, String)> = (0x80..=0xff_u8)
        .map(|byte| ([b"/", &[byte][..], b"x"].concat(), format!("/%{byte:02X}x")))
        .collect();
    pairs.extend([
        // Good UTF-8 beside bytes that are none, cut sequences, overlong ones, surrogates.
        (b"/\xc3\xa9\xff".to_vec(), "/%C3%A9%FF".to_owned()),
        (b"/\xe2\x82".to_vec(), "/%E2%82".to_owned()),
        (b"/\xc0\xaf".to_vec(), "/%C0%AF".to_owned()),
        (b"/\xed\xa0\x80".to_vec(), "/%ED%A0%80".to_owned()),
        ("/\u{1f98a}?\u{20ac}".into(), "/%F0%9F%A6%8A?%E2%82%AC".to_owned()),
        // Shift_JIS has a backslash as its second byte.
        (b"/\x95\x5c".to_vec(), "/%95%5C".to_owned()),
        // Beside an escape.
        (b"/%C3%A9\xe9".to_vec(), "/%C3%A9%E9".to_owned()),
        (b"/x#\xe9".to_vec(), "/x".to_owned()),
    ]);
    let locations: Vec<_> = pairs.iter().map(|(location, _)| location).collect();
    each(
        &[Road::Plain, Road::Forward],
        || leading(&locations),
        |world, road| {
            let session = world.session(road);
            for (number, (location, wanted)) in pairs.iter().enumerate() {
                let (_, target) = followed(world, road, &session, number);
                assert_eq!(&target, wanted, "{location:?}");
            }
        },
    );
}

#[test]
fn c72_relative_references() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for (name, target) in [
            ("r-abs", "/b/ok"),
            ("r-schemerel", "/b/ok"),
            ("r-query", "/b/r-query?x=1"),
            ("r-dotdot", "/b/ok"),
            ("r-backslash", "/b/%5Cb%5Cok"),
        ] {
            let session = &session;
            // `?x=1` leads to a place that redirects once more.
            let limited = world.recipe(road).max_redirects(1).build().unwrap();
            let url = world.url(road, &format!("/b/{name}"));
            match name {
                "r-query" => {
                    let error = limited.get(url).send().unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::TooManyRedirects);
                }
                _ => {
                    let response = session.get(url).send().unwrap();
                    assert_eq!(response.history().len(), 1, "{name}");
                }
            }
            let asked = world.origin(road).log().pop().unwrap();
            assert_eq!(asked.target, target, "{name}");
            assert_eq!(asked.tls, road.is_tls(), "{name}: the scheme is kept");
        }
        // requests takes an empty Location for none.
        let response = session.get(world.url(road, "/b/r-empty")).send().unwrap();
        assert_eq!((response.status(), response.history().len()), (302, 0));
    });
}

#[test]
fn c72_every_form_of_a_reference() {
    let pairs = [
        // The places of the first three name themselves.
        ("?x", "/dir/0?x"),
        ("?", "/dir/1"),
        ("?a?b/../c", "/dir/2?a?b/../c"),
        ("x", "/dir/x"),
        ("./x", "/dir/x"),
        ("x/", "/dir/x/"),
        ("x/./y", "/dir/x/y"),
        (".", "/dir/"),
        ("./", "/dir/"),
        ("..", "/"),
        ("../", "/"),
        ("../x", "/x"),
        ("../../x", "/x"),
        ("/a/../b/ok", "/b/ok"),
        ("/a/./b/../../ok", "/ok"),
        ("/../ok", "/ok"),
        ("/..", "/"),
        ("/a/..", "/"),
        ("/a//b", "/a//b"),
        ("/a/...", "/a/..."),
        ("x?y=../z", "/dir/x?y=../z"),
        (";p", "/dir/;p"),
        ("x;p=1", "/dir/x;p=1"),
        ("1:2", "/dir/1:2"),
        ("/x:y", "/x:y"),
        ("/x//http://h/", "/x//http://h/"),
        ("/@h/", "/@h/"),
        ("@h", "/dir/@h"),
        // Browsers would take these for other hosts.
        ("\\\\h\\x", "/dir/%5C%5Ch%5Cx"),
        ("/\\h/x", "/%5Ch/x"),
        ("///h/x", "/h/x"),
    ];
    each_leads(&[Road::Plain, Road::Forward, Road::TlsTunnel], &pairs, |location, response| {
        assert_eq!(response.history().len(), 1, "{location:?}");
    });
}

#[test]
fn c81_a_fragment_stays_here_and_follows_along() {
    each(Road::EVERY, World::hostile, |world, road| {
        let session = world.session(road);
        for (name, fragment) in [("r-abs", "top"), ("r-307", "top"), ("r-frag", "frag")] {
            let url = world.url(road, &format!("/b/{name}#top"));
            let response = session.get(url).send().unwrap();
            assert_eq!(response.url().fragment(), Some(fragment), "{name}");
            assert_eq!(response.history()[0].url().fragment(), Some("top"));
        }
        let proxies = [&world.proxy, &world.secure_proxy].map(HttpProxy::log).concat();
        for request in world.origin(road).log().into_iter().chain(proxies) {
            let head = String::from_utf8_lossy(&request.head).into_owned();
            assert!(
                !head.contains('#') && !head.contains("top") && !head.contains("frag\r"),
                "{head}"
            );
        }
    });
}

#[test]
fn c81_over_chains_and_in_odd_spellings() {
    let locations = ["/dir/1?q", "/dir/2?q#", "/dir/3?q#own", "/end", "/end#a#b", "/end#a b\u{e9}"];
    let world = leading(&locations);
    let session = world.session(Road::Plain);
    for (start, fragment) in [
        ("/dir/0?q#top", "own"),
        ("/dir/3?q#top", "top"),
        ("/dir/3?q#", ""),
        ("/dir/3?q", ""),
        ("/dir/4?q#top", "a#b"),
        ("/dir/5?q", "a%20b%C3%A9"),
        ("/dir/3?q#a?b/c", "a?b/c"),
    ] {
        let response = session.get(world.url(Road::Plain, start)).send().unwrap();
        assert_eq!(response.url().path(), "/end");
        assert_eq!(response.url().fragment().unwrap_or_default(), fragment, "{start}");
        // Where the history names places it names what was asked for.
        assert!(response.attempts().iter().all(|attempt| !attempt.url.contains('#')));
    }
    assert!(world.plain.log().iter().all(|request| !request.target.contains('#')));
}

#[test]
fn c81_case_and_userinfo() {
    let world = World::hostile();
    for road in [Road::Plain, Road::Forward, Road::Tunnel, Road::Socks] {
        let session = if road == Road::Plain {
            world.recipe(road).resolver(Always::home()).build().unwrap()
        } else {
            world.session(road)
        };
        let (host, port) = match road {
            Road::Plain => ("LocalHost", format!(":{}", world.plain.address().port())),
            _ => ("ORIGIN.Test", String::new()),
        };
        let wanted = format!("{}{port}", host.to_lowercase());
        let url = format!("HTTP://User:Pass@{host}{port}/b/r-301#Top");
        let response = session.get(url).send().unwrap();
        assert_eq!(response.url().as_str(), format!("http://{wanted}/b/ok#Top"));
        for request in world.plain.log() {
            assert_eq!(request.headers_named("Host").collect::<Vec<_>>(), [wanted.as_str()]);
            // The same origin, so the credentials of the URL go along, as a field and only as one.
            assert_eq!(request.header("Authorization"), Some("Basic VXNlcjpQYXNz"), "{road:?}");
            assert!(!request.target.contains('@'));
        }
        world.plain.clear_log();
    }
    for request in world.proxy.log().iter().filter(|request| request.method != "CONNECT") {
        assert!(request.target.starts_with("http://origin.test/b/"), "{}", request.target);
        assert_eq!(request.headers_named("Host").collect::<Vec<_>>(), ["origin.test"]);
    }
}
