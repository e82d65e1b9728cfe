use super::super::Cookie;
use super::*;
use proptest::prelude::*;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn at(seconds: u64) -> SystemTime {
    NOW + Duration::from_secs(seconds)
}

/// Everything that a file tells of a cookie.
type Facts = (Vec<u8>, Vec<u8>, String, bool, String, bool, bool, Option<u64>);

fn facts(jar: &CookieJar) -> Vec<Facts> {
    jar.iter()
        .map(|cookie| {
            (
                cookie.name().to_vec(),
                cookie.value().to_vec(),
                cookie.domain().to_owned(),
                cookie.is_host_only(),
                cookie.path().to_owned(),
                cookie.is_secure(),
                cookie.is_http_only(),
                cookie.expires().map(seconds),
            )
        })
        .collect()
}

fn only(file: &str) -> Facts {
    let jar = CookieJar::parse(file.as_bytes(), NOW).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(jar.len(), 1, "{file:?}");
    facts(&jar).remove(0)
}

fn fault(file: impl AsRef<[u8]>) -> String {
    let error = CookieJar::parse(file.as_ref(), NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.message().to_owned()
}

#[test]
fn lines_as_the_programs_write_them() {
    let plain = |domain: &str, host_only: bool| -> Facts {
        let (name, value) = (b"n".to_vec(), b"v".to_vec());
        (name, value, domain.to_owned(), host_only, "/".to_owned(), false, false, None)
    };
    for (line, wanted) in [
        // curl, Python, and a domain whose dot contradicts its flag.
        (".h.test\tTRUE\t/\tFALSE\t0\tn\tv", plain("h.test", false)),
        ("h.test\tTRUE\t/\tFALSE\t0\tn\tv", plain("h.test", false)),
        ("h.test\tFALSE\t/\tFALSE\t\tn\tv", plain("h.test", true)),
        (".h.test\tFALSE\t/\tFALSE\t0\tn\tv", plain("h.test", true)),
        ("H.Test\tfalse\t/\tFalse\t0.0\tn\tv", plain("h.test", true)),
        ("b\u{fc}cher.test\tFALSE\t/\tFALSE\t0\tn\tv", plain("xn--bcher-kva.test", true)),
        ("127.0.0.1\tTRUE\t/\tFALSE\t0\tn\tv", plain("127.0.0.1", true)),
        ("::1\tFALSE\t/\tFALSE\t0\tn\tv", plain("[::1]", true)),
        ("[::1]\tFALSE\t/\tFALSE\t0\tn\tv", plain("[::1]", true)),
        ("[0:0::1]\tTRUE\t/\tFALSE\t0\tn\tv", plain("[::1]", true)),
        ("localhost\tTRUE\t/\tFALSE\t0\tn\tv", plain("localhost", true)),
        ("localhost.local\tFALSE\t/\tFALSE\t\tn\tv", plain("localhost", true)),
        ("Localhost.local\tFALSE\t/\tFALSE\t0\tn\tv", plain("localhost", true)),
        ("$k.test\tFALSE\t/\tFALSE\t0\tn\tv", plain("$k.test", true)),
        // Nothing that many sites share: the one host remains.
        (".co.uk\tTRUE\t/\tFALSE\t0\tn\tv", plain("co.uk", true)),
        ("h.test\tFALSE\t/\tFALSE\t0\tn\tv ", plain("h.test", true)),
    ] {
        for around in
            [("", ""), ("# Netscape HTTP Cookie File\n\n", "\n"), ("\u{feff}# x\r\n", "\r\n#")]
        {
            assert_eq!(only(&format!("{}{line}{}", around.0, around.1)), wanted, "{line:?}");
        }
    }
    let full = only("#HttpOnly_.h.test\tTRUE\t/a b\tTRUE\t1893456000\tn[x]\t{\"a\": \"b, c\"}");
    assert_eq!((full.0.as_slice(), full.1.as_slice()), (&b"n[x]"[..], &b"{\"a\": \"b, c\"}"[..]));
    assert_eq!(
        (full.4.as_str(), full.5, full.6, full.7),
        ("/a b", true, true, Some(1_893_456_000))
    );
    // Empty values, names, and tabs within a value.
    assert_eq!(only("h.test\tFALSE\t/\tFALSE\t0\tn\t").1, b"");
    assert_eq!(only("h.test\tFALSE\t/\tFALSE\t0\tn").1, b"");
    assert_eq!(only("h.test\tFALSE\t/\tFALSE\t0\t\tlonely").1, b"lonely");
    assert_eq!(only("h.test\tFALSE\t/\tFALSE\t0\tn\ta\tb").1, b"a\tb");
    // Ends: fractions, the far future, and what is over.
    assert_eq!(only("h.test\tFALSE\t/\tFALSE\t12.9\tn\tv").7, Some(12));
    let digits = "9".repeat(40);
    assert_eq!(only(&format!("h.test\tFALSE\t/\tFALSE\t{digits}\tn\tv")).7, Some(LAST_SECOND));
    let over = CookieJar::parse(b"h.test\tFALSE\t/\tFALSE\t12\tn\tv", at(12)).unwrap();
    assert!(over.is_empty());
    for empty in ["", "\n\n", "# x\n", "\r\n", "   \n"] {
        assert!(CookieJar::parse(empty.as_bytes(), NOW).unwrap().is_empty(), "{empty:?}");
    }
}

#[test]
fn bad_lines_are_told_with_their_number_and_without_their_values() {
    for (line, words) in [
        ("h.test TRUE / FALSE 0 n hunter2", "1 of the seven fields"),
        ("h.test\tTRUE\t/\tFALSE\thunter2", "5 of the seven fields"),
        ("h.test\tyes\t/\tFALSE\t0\tn\thunter2", "second field"),
        ("h.test\tTRUE\t/\t1\t0\tn\thunter2", "fourth field"),
        ("h.test\tTRUE\t/\tFALSE\tsoon\tn\thunter2", "seconds since 1970"),
        ("h.test\tTRUE\t/\tFALSE\t-1\tn\thunter2", "seconds since 1970"),
        ("h.test\tTRUE\t/\tFALSE\t1e9\tn\thunter2", "seconds since 1970"),
        ("h.test\tTRUE\t/\tFALSE\t1.\tn\thunter2", "seconds since 1970"),
        ("\tTRUE\t/\tFALSE\t0\tn\thunter2", "domain \"\""),
        (".\tTRUE\t/\tFALSE\t0\tn\thunter2", "domain \".\""),
        ("h.test/x\tTRUE\t/\tFALSE\t0\tn\thunter2", "domain \"h.test/x\""),
        ("h.test:80\tTRUE\t/\tFALSE\t0\tn\thunter2", "domain \"h.test:80\""),
        ("http://h.test\tTRUE\t/\tFALSE\t0\tn\thunter2", "domain \"http://h.test\""),
        ("h.test\tTRUE\tx\tFALSE\t0\tn\thunter2", "path \"x\""),
        ("h.test\tTRUE\t\tFALSE\t0\tn\thunter2", "path \"\""),
        ("h.test\tTRUE\t/\tFALSE\t0\thunter2=\tv", "character"),
        ("h.test\tTRUE\t/\tFALSE\t0\tn\thunter2; a=b", "character"),
        ("h.test\tTRUE\t/\tFALSE\t0\tn\thunter2\x07", "character"),
        ("h.test\tTRUE\t/\tFALSE\t0\tn\thunter2\r\r", "character"),
        ("h.test\tTRUE\t/\tFALSE\t0\t\t", "neither a name nor a value"),
        ("h.test\tFALSE\t/\tFALSE\t0\t__Secure-n\thunter2", "promise"),
        ("h.test\tTRUE\t/\tTRUE\t0\t__Host-n\thunter2", "promise"),
        ("h.test\tFALSE\t/x\tTRUE\t0\t__host-n\thunter2", "promise"),
    ] {
        let message = fault(format!("# x\n\nh.test\tTRUE\t/\tFALSE\t0\ta\tb\n{line}\n"));
        assert!(message.starts_with("line 4: the line "), "{line:?}: {message}");
        assert!(message.contains(words), "{line:?}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    let long = format!("h.test\tTRUE\t/\tFALSE\t0\tn\t{}", "x".repeat(4096));
    assert!(fault(long).contains("4096"));
    assert!(fault(b"h.test\tTRUE\t/\xff\tFALSE\t0\tn\tv").contains("UTF-8"));
    // Of a file, with its name.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.txt");
    fs::write(&path, "\nx\n").unwrap();
    let error = CookieJar::load(&path, NOW).unwrap_err();
    let wanted = format!("{}:2: the line has 1 of the seven fields", path.display());
    assert!(error.message().starts_with(&wanted), "{error}");
    let error = CookieJar::load(folder.path().join("none"), NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn json_as_the_tools_write_it() {
    let wanted: Facts = (
        b"n".to_vec(),
        b"v".to_vec(),
        "h.test".to_owned(),
        false,
        "/".to_owned(),
        true,
        true,
        Some(9),
    );
    for item in [
        // Ours, a driver of browsers, WebDriver, an exporter of cookies.
        r#""domain":".h.test","path":"/","expires":9,"secure":true,"httpOnly":true"#,
        r#""domain":".h.test","path":"/","expires":9.75,"httpOnly":true,"secure":true,"sameSite":"Lax""#,
        r#""domain":".h.test","expiry":9,"secure":true,"httpOnly":true"#,
        r#""domain":"h.test","hostOnly":false,"expirationDate":9.5,"session":false,"secure":true,"httpOnly":true,"storeId":null"#,
    ] {
        let item = format!(r#"{{"name":"n","value":"v",{item}}}"#);
        for file in [
            format!("[{item}]"),
            format!(" [ {item} ]\n"),
            format!("\u{feff}{{\"cookies\": [{item}], \"origins\": []}}"),
        ] {
            assert_eq!(only(&file), wanted, "{file}");
        }
    }
    let of = |rest: &str| only(&format!(r#"[{{"name":"n","value":"v","domain":"h.test"{rest}}}]"#));
    for rest in ["", r#","expires":-1"#, r#","expires":0"#, r#","expires":null"#, r#","path":null"#]
    {
        assert_eq!((of(rest).3, of(rest).7), (true, None), "{rest}");
    }
    assert_eq!(of(r#","expires":1e300"#).7, Some(LAST_SECOND));
    let coded = r#"[{"nameBase64":"/w==","valueBase64":"AP8=","domain":"h.test"}]"#;
    assert!(fault(coded).contains("character"));
    let coded = r#"[{"nameBase64":"/w==","valueBase64":"gP8=","domain":"h.test"}]"#;
    assert_eq!((only(coded).0, only(coded).1), (vec![0xff], vec![0x80, 0xff]));
    assert!(CookieJar::parse(b"[]", NOW).unwrap().is_empty());
    assert!(CookieJar::parse(b"{\"cookies\":[]}", NOW).unwrap().is_empty());
}

#[test]
fn bad_json_is_told_with_its_place_and_without_its_values() {
    for (file, words) in [
        ("{", "line 1: the line is no JSON"),
        ("{\"cookies\":\n[{\"name\":\"hunter2\" \"x\"}]}", "line 2: the line is no JSON"),
        ("{\"a\":\"hunter2\"}", "has no list `cookies`"),
        ("{\"cookies\":{\"a\":\"hunter2\"}}", "has no list `cookies`"),
        ("{\"cookies\":[\"hunter2\"]}", "cookie 1 is no object"),
        (
            "[{\"name\":\"a\",\"value\":\"b\",\"domain\":\"h.test\"},{}]",
            "cookie 2 has no text as its `name`",
        ),
        ("[{\"name\":\"hunter2\",\"domain\":\"h.test\"}]", "no text as its `value`"),
        ("[{\"name\":\"a\",\"value\":1234567,\"domain\":\"h.test\"}]", "no text as its `value`"),
        (
            "[{\"name\":\"a\",\"value\":\"hunter2\",\"valueBase64\":\"\",\"domain\":\"h.test\"}]",
            "both",
        ),
        ("[{\"name\":\"a\",\"valueBase64\":\"hunter2\",\"domain\":\"h.test\"}]", "Base64"),
        ("[{\"name\":\"a\",\"value\":\"hunter2\"}]", "`domain`"),
        ("[{\"name\":\"a\",\"value\":\"hunter2\",\"domain\":\"http://h.test\"}]", "is no host"),
        ("[{\"name\":\"a\",\"value\":\"hunter2\",\"domain\":\"h.test\",\"path\":7}]", "`path`"),
        (
            "[{\"name\":\"a\",\"value\":\"hunter2\",\"domain\":\"h.test\",\"path\":\"x\"}]",
            "path \"x\"",
        ),
        (
            "[{\"name\":\"a\",\"value\":\"hunter2\",\"domain\":\"h.test\",\"secure\":\"yes\"}]",
            "`secure`",
        ),
        (
            "[{\"name\":\"a\",\"value\":\"hunter2\",\"domain\":\"h.test\",\"expires\":\"Session\"}]",
            "`expires`",
        ),
        ("[{\"name\":\"a\",\"value\":\"hunter2\\n\",\"domain\":\"h.test\"}]", "character"),
        ("[{\"name\":\"__Host-a\",\"value\":\"hunter2\",\"domain\":\"h.test\"}]", "promise"),
    ] {
        let message = fault(file);
        assert!(message.contains(words), "{file}: {message}");
        assert!(!message.contains("hunter2") && !message.contains("1234567"), "{message}");
    }
}

#[test]
fn what_is_written_is_stable() {
    let mut jar = CookieJar::new();
    jar.set("session", "4f2a", ".h.test", "/").unwrap();
    let own = Cookie::new("__Host-id", "a \"b\", c", "h.test").unwrap();
    jar.set_cookie(own.with_secure(true).with_http_only(true).with_expires(at(1_893_456_000)))
        .unwrap();
    jar.set("raw", b"caf\xe9", "127.0.0.1", "/p").unwrap();
    jar.set_cookie(Cookie::new("over", "x", "h.test").unwrap().with_expires(at(5))).unwrap();
    let file = jar.to_netscape(at(5));
    let lines: Vec<&[u8]> = file.split(|byte| *byte == b'\n').collect();
    assert_eq!(lines[0], b"# Netscape HTTP Cookie File");
    assert_eq!(
        lines[3..],
        [
            &b".h.test\tTRUE\t/\tFALSE\t0\tsession\t4f2a"[..],
            b"#HttpOnly_h.test\tFALSE\t/\tTRUE\t1893456000\t__Host-id\ta \"b\", c",
            b"127.0.0.1\tFALSE\t/p\tFALSE\t0\traw\tcaf\xe9",
            b"",
        ]
    );
    let written: serde_json::Value = serde_json::from_str(&jar.to_json(at(5))).unwrap();
    let wanted = serde_json::json!({"cookies": [
        {"name": "session", "value": "4f2a", "domain": ".h.test", "path": "/", "secure": false,
         "httpOnly": false},
        {"name": "__Host-id", "value": "a \"b\", c", "domain": "h.test", "path": "/",
         "expires": 1_893_456_000, "secure": true, "httpOnly": true},
        {"name": "raw", "valueBase64": "Y2Fm6Q==", "domain": "127.0.0.1", "path": "/p",
         "secure": false, "httpOnly": false},
    ]});
    assert_eq!(written, wanted);
}

#[test]
fn an_address_that_a_server_names_as_a_domain_is_written_as_a_host() {
    let url = url::Url::parse("http://127.0.0.1/").unwrap();
    let mut headers = http::HeaderMap::new();
    let line = http::HeaderValue::from_static("a=1; Domain=127.0.0.1");
    headers.append(http::header::SET_COOKIE, line);
    let mut jar = CookieJar::new();
    jar.store(&url, &headers, NOW);
    let line = b"127.0.0.1\tFALSE\t/\tFALSE\t0\ta\t1\n";
    assert!(jar.to_netscape(NOW).ends_with(line));
    let json = CookieJar::parse(jar.to_json(NOW).as_bytes(), NOW).unwrap();
    assert_eq!(json.to_netscape(NOW), jar.to_netscape(NOW));
}

#[test]
fn a_tab_is_for_json_alone() {
    let mut jar = CookieJar::new();
    jar.set("a", "x\ty", "h.test", "/").unwrap();
    jar.set("b", "1", "h.test", "/").unwrap();
    let netscape = CookieJar::parse(&jar.to_netscape(NOW), NOW).unwrap();
    assert_eq!(netscape.items().collect::<Vec<_>>(), [(&b"b"[..], &b"1"[..])]);
    let json = CookieJar::parse(jar.to_json(NOW).as_bytes(), NOW).unwrap();
    assert_eq!(facts(&json), facts(&jar));
}

#[test]
fn more_than_a_jar_holds_is_cut_and_the_last_ones_stay() {
    let mut file = String::new();
    for number in 0..60 {
        file.push_str(&format!("h.test\tFALSE\t/\tFALSE\t0\tn{number}\tv\n"));
    }
    let jar = CookieJar::parse(file.as_bytes(), NOW).unwrap();
    assert_eq!(jar.len(), PER_DOMAIN);
    assert_eq!(jar.iter().next().unwrap().name(), b"n10");
    file.clear();
    for number in 0..IN_ALL + 100 {
        file.push_str(&format!("h{number}.test\tFALSE\t/\tFALSE\t0\tn\tv\n"));
    }
    let jar = CookieJar::parse(file.as_bytes(), NOW).unwrap();
    assert!(jar.len() <= IN_ALL && jar.len() >= IN_ALL * 9 / 10);
    let last = format!("h{}.test", IN_ALL + 99);
    assert!(jar.iter().any(|cookie| cookie.domain() == last));
}

#[cfg(unix)]
#[test]
fn a_file_is_replaced_as_a_whole_and_is_its_owners_alone() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.txt");
    let mut jar = CookieJar::new();
    jar.set("a", "1", "h.test", "/").unwrap();
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    jar.save(&path, NOW).unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.permissions().mode() & 0o777, 0o600);
    assert_ne!(after.ino(), before, "another file took its place");
    assert_eq!(facts(&CookieJar::load(&path, NOW).unwrap()), facts(&jar));
    // The ending chooses the format, and a link leads to the file.
    let (json, link) = (folder.path().join("c.JSON"), folder.path().join("link"));
    jar.save(&json, NOW).unwrap();
    assert!(fs::read_to_string(&json).unwrap().starts_with('{'));
    symlink(&path, &link).unwrap();
    jar.clear();
    jar.save(&link, NOW).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(CookieJar::load(&path, NOW).unwrap().is_empty());
    // Where it cannot be written nothing changes, and no draft is left.
    for bad in [folder.path().join("none/c.txt"), folder.path().to_path_buf(), "/dev/null".into()] {
        let error = jar.save(&bad, NOW).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains(&*bad.display().to_string()), "{error}");
    }
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["c.JSON", "c.txt", "link"]);
}

#[test]
fn without_end_is_no_file_of_cookies() {
    if Path::new("/dev/zero").exists() {
        let error = CookieJar::load("/dev/zero", NOW).unwrap_err();
        assert!(error.message().contains("64 MiB"), "{error}");
    }
}

prop_compose! {
    fn any_cookie()(
        name in proptest::collection::vec(any::<u8>(), 0..6),
        value in proptest::collection::vec(any::<u8>(), 0..12),
        domain in "\\.?[a-c]{1,2}\\.test|\\.?[a-c]\\.co\\.uk|127\\.0\\.0\\.[12]|\\[::1\\]|localhost",
        path in "/[a-z é%{}]{0,4}",
        secure: bool,
        http_only: bool,
        end in proptest::option::of(1..LAST_SECOND),
    ) -> Option<Cookie> {
        // A server's line holds no control characters but tabs; a user's may have them, and fails.
        Some(
            Cookie::new(name, value, &domain).ok()?
                .with_path(&path).ok()?
                .with_secure(secure)
                .with_http_only(http_only)
                .with_expires(end.map(at)),
        )
    }
}

proptest! {
    #[test]
    fn every_jar_survives_its_files(cookies in proptest::collection::vec(any_cookie(), 0..20)) {
        let mut jar = CookieJar::new();
        for cookie in cookies.into_iter().flatten() {
            let _ = jar.set_cookie(cookie);
        }
        let json = CookieJar::parse(jar.to_json(NOW).as_bytes(), NOW).unwrap();
        prop_assert_eq!(facts(&json), facts(&jar));
        jar.retain(|cookie| !cookie.name().contains(&b'\t') && !cookie.value().contains(&b'\t'));
        let file = jar.to_netscape(NOW);
        let netscape = CookieJar::parse(&file, NOW).unwrap();
        prop_assert_eq!(facts(&netscape), facts(&jar));
        prop_assert_eq!(netscape.to_netscape(NOW), file);
    }

    #[test]
    fn what_a_server_sets_survives_too(
        lines in proptest::collection::vec("[ -~é\t]{0,24}(; ?(Secure|HttpOnly|Domain=a\\.test|Path=/[ -:]{0,4}|Max-Age=[0-9]{1,4}))*", 1..8),
    ) {
        let url = url::Url::parse("https://b.a.test/x/y").unwrap();
        let mut headers = http::HeaderMap::new();
        for line in &lines {
            headers.append(http::header::SET_COOKIE, http::HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        let mut jar = CookieJar::new();
        jar.store(&url, &headers, at(1000));
        let json = CookieJar::parse(jar.to_json(at(1000)).as_bytes(), at(1000)).unwrap();
        prop_assert_eq!(facts(&json), facts(&jar));
        prop_assert_eq!(json.header(&url, at(1000)), jar.header(&url, at(1000)));
        jar.retain(|cookie| ![cookie.name(), cookie.value(), cookie.path().as_bytes()].iter().any(|text| text.contains(&b'\t')));
        let netscape = CookieJar::parse(&jar.to_netscape(at(1000)), at(1000)).unwrap();
        prop_assert_eq!(facts(&netscape), facts(&jar));
    }

    #[test]
    fn any_bytes_are_cookies_or_an_error(
        file in proptest::collection::vec(any::<u8>(), 0..80),
        text in "(#HttpOnly_)?[a.\\[:1]{0,6}(\t(TRUE|FALSE|/|[0-9]{0,3}|[a-z]{0,3})){0,8}\n?.{0,9}|[\\[{]\\PC{0,60}",
    ) {
        for file in [&file[..], text.as_bytes()] {
            if let Ok(jar) = CookieJar::parse(file, NOW) {
                prop_assert_eq!(jar.len(), jar.iter().count());
            }
        }
    }
}
