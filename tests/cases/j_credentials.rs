//! Section J: credentials in a URL and in a `.netrc`.

use crate::roads::{Always, Road, World, each, recipe};
use crate::said;
use longhaul::Session;
use longhaul::batch::{Batch, Source};
use longhaul::lab::{Origin, Received, Reply};
use longhaul::message::Auth;
use std::process::Command;

#[test]
fn c133_userinfo_becomes_credentials_and_is_shown_nowhere() {
    said::listen();
    let table = [
        ("us%20er:p%40ss", Some("us er:p@ss")),
        ("us er:p@ss", Some("us er:p@ss")),
        ("hunter2:", Some("hunter2:")),
        (":hunter2", Some(":hunter2")),
        ("u:hunter2:x", Some("u:hunter2:x")),
        ("u:%68unter2", Some("u:hunter2")),
        ("u:hunter2%", Some("u:hunter2%")),
        ("u:hunter2%zz", Some("u:hunter2%zz")),
        ("u:hunter2%2540", Some("u:hunter2%40")),
        ("us%C3%A9r:hunter2\u{e9}", Some("us\u{e9}r:hunter2\u{e9}")),
        ("u+v:hunter2+", Some("u+v:hunter2+")),
        ("u@corp.test:hunter2", Some("u@corp.test:hunter2")),
        ("hunter2", None),
        (":", None),
        ("", None),
    ];
    let world = || {
        World::new(Origin::builder().handler(|request: &Received| match request.path.as_str() {
            "/go" => Reply::redirect(302, "/end"),
            "/away" => Reply::redirect(302, "//elsewhere.invalid:1/"),
            "/bad" => Reply::redirect(302, "ftp://hunter2:hunter2@x/"),
            "/cut" => Reply::new(500),
            _ => Reply::ok("ok"),
        }))
    };
    each(Road::ALL, world, |world, road| {
        let session = world.session(road);
        for (userinfo, wanted) in table {
            let url =
                |path: &str| world.url(road, path).replacen("://", &format!("://{userinfo}@"), 1);
            let wanted = wanted.map(|text| format!("Basic {}", base64(text)));
            let response = session.get(url("/go")).send().unwrap();
            let log = world.origin(road).log();
            for request in &log[log.len() - 2..] {
                // Also at the next hop, which is of the same origin.
                assert_eq!(request.header("Authorization"), wanted.as_deref(), "{userinfo}");
                assert!(request.header("Referer").is_none());
                assert!(!request.target.contains('@') && !request.target.contains("hunter2"));
                assert!(!request.header("Host").unwrap().contains('@'));
            }
            let mut shown = format!("{response:?} {} {:?}", response.url(), response.attempts());
            shown.push_str(&format!("{:?}", response.history()));
            for path in ["/bad", "/away"] {
                let error = session.get(url(path)).send().unwrap_err();
                shown.push_str(&format!("{error} {error:?} {:?}", error.attempts()));
            }
            let error = session.get(url("/cut")).send().unwrap().raise_for_status().unwrap_err();
            shown.push_str(&format!("{error} {error:?} {:?}", error.url()));
            for secret in ["hunter2", "p%40ss", "p@ss", "%68unter2"] {
                assert!(!shown.contains(secret), "{userinfo}: {shown}");
            }
        }
    });
    assert!(said::with("hunter2").is_empty());
}

fn base64(text: &str) -> String {
    // The other direction than the library's, by the alphabet of RFC 4648.
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*three.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let index = bits >> (18 - 6 * at) & 63;
            out.push(if at > three.len() { '=' } else { char::from(ALPHABET[index as usize]) });
        }
    }
    out
}

#[test]
fn c133_the_record_of_a_run_holds_no_userinfo() {
    let site = Origin::builder()
        .handler(|request: &Received| match request.path.as_str() {
            "/go" => Reply::redirect(302, "/end"),
            "/no" => Reply::new(404),
            _ => Reply::ok("ok"),
        })
        .start()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("results.jsonl");
    let urls: Vec<String> = ["/go", "/no", "/", "/cut"]
        .iter()
        .map(|path| site.url(path).replacen("://", "://hunter1:hunter2%21@", 1))
        .collect();
    let count = urls.len();
    let batch = |urls: Vec<String>| {
        let source = Source::urls(urls);
        Batch::builder(recipe()).source(source).output(&output).workers(2).build().unwrap().run()
    };
    // Lines that are no URL end it before anything is sent, and are not shown with it either.
    for line in ["http://hunter1:hunter2@", "htp://hunter1:hunter2@x/"] {
        let error = batch(vec![line.to_owned()]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter"), "{error:?}");
    }
    batch(urls).unwrap();
    let text = std::fs::read_to_string(&output).unwrap();
    assert_eq!(text.lines().count(), count);
    assert!(!text.contains("hunter"), "{text}");
    assert_eq!(site.log()[0].header("Authorization"), Some("Basic aHVudGVyMTpodW50ZXIyIQ=="));
}

#[test]
fn c133_what_the_program_names_wins_over_the_url() {
    let site = Origin::builder().handler(|_| Reply::ok("ok")).start().unwrap();
    let url = site.url("/").replacen("://", "://url:pw@", 1);
    let last = || site.log().pop().unwrap().header("Authorization").map(str::to_owned);
    let session = recipe().build().unwrap();
    session.get(&url).basic_auth("request", "pw").send().unwrap();
    assert_eq!(last(), Some(format!("Basic {}", base64("request:pw"))));
    session.get(&url).header("authorization", "Token t").send().unwrap();
    assert_eq!(last().as_deref(), Some("Token t"));
    session.get(&url).bearer("b").send().unwrap();
    assert_eq!(last().as_deref(), Some("Bearer b"));
    let of_session = Auth::Basic("session".to_owned(), "pw".to_owned());
    let session = recipe().auth(of_session).build().unwrap();
    session.get(&url).send().unwrap();
    assert_eq!(last(), Some(format!("Basic {}", base64("session:pw"))));
    // A request that takes the session's credentials away leaves those of its own URL.
    let without = longhaul::Request::new(http::Method::GET, url.as_str()).no_auth();
    session.send(without).unwrap();
    assert_eq!(last(), Some(format!("Basic {}", base64("url:pw"))));
}

/// What a process does with a `.netrc`: the warnings that it gave.
#[test]
#[ignore = "run by the others, each time with another environment"]
fn netrc_child() {
    said::listen();
    let var = |name: &str| std::env::var(name).unwrap();
    let mut recipe = Session::builder().resolver(Always::home());
    if let Ok(value) = std::env::var("CASE_AUTHORIZATION") {
        recipe = recipe.header("Authorization", value);
    }
    // As the workers of a pool make their sessions: from one recipe.
    for _ in 0..var("CASE_SESSIONS").parse().unwrap() {
        let session = recipe.build().unwrap();
        for url in var("CASE_URLS").split_whitespace() {
            if let Err(error) = session.get(url).send() {
                println!("\nSAID {error}");
            }
        }
    }
    for line in said::with("") {
        println!("\nSAID {line}");
    }
}

/// Runs [`netrc_child`] with this file, and gives its warnings.
fn with_netrc(urls: &str, sessions: usize, variables: &[(&str, &str)]) -> Vec<String> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["j_credentials::netrc_child", "--exact", "--ignored", "--nocapture"])
        .env_clear()
        .env("CASE_URLS", urls)
        .env("CASE_SESSIONS", sessions.to_string())
        .env("HOME", "/nowhere")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{out}");
    out.lines().filter_map(|line| line.strip_prefix("SAID ")).map(str::to_owned).collect()
}

fn netrc(text: impl AsRef<[u8]>) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".netrc");
    std::fs::write(&path, text).unwrap();
    let name = path.to_str().unwrap().to_owned();
    (folder, name)
}

/// The Authorization that a URL gets of a `.netrc`, decoded by hand: `user:password`.
fn authorization(text: &str, url: &str) -> Option<String> {
    let site = Origin::builder().handler(|_| Reply::ok("ok")).start().unwrap();
    let (_folder, path) = netrc(text);
    let url = url.replace("PORT", &site.address().port().to_string());
    let said = with_netrc(&url, 1, &[("NETRC", &path)]);
    assert!(said.is_empty(), "{said:?}");
    site.log().pop().unwrap().header("Authorization").map(str::to_owned)
}

#[test]
fn c135_the_host_decides_exactly() {
    let given = |user: &str| Some(format!("Basic {}", base64(user)));
    let two = "machine 127.0.0.1 login a password b\nmachine good.test login c password d\n";
    for (text, url, wanted) in [
        (two, "http://127.0.0.1:PORT/", given("a:b")),
        (two, "http://127.1:PORT/", given("a:b")),
        (two, "http://good.test:PORT/", given("c:d")),
        (two, "http://GOOD.test:PORT/", given("c:d")),
        (two, "http://sub.good.test:PORT/", None),
        (two, "http://test:PORT/", None),
        (two, "http://good.test.evil.test:PORT/", None),
        // CVE-2024-47081: what stands before the @ is no host.
        (two, "http://good.test:@evil.test:PORT/", given("good.test:")),
        (two, "http://good.test@evil.test:PORT/", None),
        (two, "http://evil.test:PORT/?@good.test", None),
        (two, "http://evil.test:PORT/good.test", None),
        ("machine 127.0.0.1:80 login a password b", "http://127.0.0.1:PORT/", None),
        ("default login a password b", "http://127.0.0.1:PORT/", given("a:b")),
        ("machine x login a\ndefault login c password d", "http://y:PORT/", given("c:d")),
        ("machine 127.0.0.1\ndefault login c password d", "http://127.0.0.1:PORT/", None),
        ("machine 127.0.0.1 login a", "http://127.0.0.1:PORT/", given("a:")),
        ("machine 127.0.0.1 password b", "http://127.0.0.1:PORT/", given(":b")),
        ("machine 127.0.0.1 login \"\" password \"\"", "http://127.0.0.1:PORT/", None),
        ("machine 127.0.0.1 login a password \"b c\"", "http://127.0.0.1:PORT/", given("a:b c")),
        ("machine 127.0.0.1 login a password #b", "http://127.0.0.1:PORT/", given("a:#b")),
        ("machine 127.0.0.1 login a password b#c", "http://127.0.0.1:PORT/", given("a:b#c")),
        (
            "machine 127.0.0.1 login a password \"b\\\"c\"",
            "http://127.0.0.1:PORT/",
            given("a:b\"c"),
        ),
        (
            "# x\nmachine 127.0.0.1 # y\nlogin a # z\npassword b",
            "http://127.0.0.1:PORT/",
            given("a:b"),
        ),
        (
            "machine 127.0.0.1 login \u{e9} password \u{65e5}",
            "http://127.0.0.1:PORT/",
            given("\u{e9}:\u{65e5}"),
        ),
        (
            "machine 127.0.0.1\r\n\tlogin a\r\n\tpassword b\r\n",
            "http://127.0.0.1:PORT/",
            given("a:b"),
        ),
        (
            "macdef m\nmachine 127.0.0.1\n\nmachine 127.0.0.1 login a password b",
            "http://127.0.0.1:PORT/",
            given("a:b"),
        ),
        ("", "http://127.0.0.1:PORT/", None),
    ] {
        assert_eq!(authorization(text, url), wanted, "{text:?}, {url}");
    }
}

#[test]
fn c135_a_file_that_cannot_be_used_is_one_warning_and_no_failure() {
    let site = Origin::builder().handler(|_| Reply::ok("ok")).start().unwrap();
    let good = b"machine 127.0.0.1 login a password hunter2\n".to_vec();
    for (text, words) in [
        (b"machine 127.0.0.1 login a passwrd hunter2".to_vec(), "line 1"),
        (b"\n\nhunter2".to_vec(), "line 3"),
        (b"machine".to_vec(), "host"),
        (b"macdef m\nhunter2".to_vec(), "macdef"),
        ([&good[..], b"# \xff\xfe hunter2 \xe9\n"].concat(), "UTF-8"),
    ] {
        let before = site.log().len();
        let (_folder, path) = netrc(&text);
        let urls = format!("{} {}", site.url("/a"), site.url("/b"));
        let said = with_netrc(&urls, 3, &[("NETRC", &path)]);
        let shown = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(said.len(), 1, "{shown:?}: {said:?}");
        assert!(said[0].contains(&path) && said[0].contains(words), "{said:?}");
        assert!(!said[0].contains("hunter2"), "{said:?}");
        let log = site.log();
        assert_eq!(log.len(), before + 6);
        assert!(log[before..].iter().all(|seen| seen.header("Authorization").is_none()));
    }
    // A file that was named and is not there is a mistake; none at home is the usual case.
    let missing = with_netrc(&site.url("/"), 2, &[("NETRC", "/nonexistent")]);
    assert!(missing.len() == 1 && missing[0].contains("/nonexistent"), "{missing:?}");
    let folder = with_netrc(&site.url("/"), 2, &[("NETRC", "/")]);
    assert_eq!(folder.len(), 1, "{folder:?}");
    for variables in [&[][..], &[("NETRC", "")], &[("NETRC", "/dev/null")]] {
        assert_eq!(with_netrc(&site.url("/"), 1, variables), [""; 0], "{variables:?}");
    }
}

#[test]
fn c135_where_the_file_is_looked_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let site = Origin::builder().handler(|_| Reply::ok("ok")).start().unwrap();
    let last = || site.log().pop().unwrap().header("Authorization").map(str::to_owned);
    let (home, path) = netrc("machine 127.0.0.1 login home password b");
    let home_path = home.path().to_str().unwrap();
    let given = |user: &str| Some(format!("Basic {}", base64(user)));
    // Readable by everybody: requests does not mind, so its users' files are like that.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(with_netrc(&site.url("/"), 1, &[("HOME", home_path)]), [""; 0]);
    assert_eq!(last(), given("home:b"));
    std::fs::rename(&path, home.path().join("_netrc")).unwrap();
    with_netrc(&site.url("/"), 1, &[("HOME", home_path)]);
    assert_eq!(last(), given("home:b"));
    std::fs::write(home.path().join("other"), "machine 127.0.0.1 login other password b").unwrap();
    let variables = [("HOME", home_path), ("NETRC", "~/other")];
    assert_eq!(with_netrc(&site.url("/"), 1, &variables), [""; 0]);
    assert_eq!(last(), given("other:b"));
}

#[test]
fn c135_the_nearest_word_wins_and_each_hop_is_asked_again() {
    let site = Origin::builder()
        .handler(|request: &Received| match request.path.as_str() {
            "/to-b" => {
                let port = request.header("Host").unwrap().rsplit(':').next().unwrap();
                Reply::redirect(302, format!("http://b.test:{port}/"))
            }
            "/to-none" => {
                let port = request.header("Host").unwrap().rsplit(':').next().unwrap();
                Reply::redirect(302, format!("http://none.test:{port}/"))
            }
            _ => Reply::ok("ok"),
        })
        .start()
        .unwrap();
    let port = site.address().port();
    let (_folder, path) =
        netrc("machine a.test login a password 1\nmachine b.test login b password 2\n");
    let met = |url: &str, variables: &[(&str, &str)]| {
        let before = site.log().len();
        let url = url.replace("PORT", &port.to_string());
        let variables = [&[("NETRC", path.as_str())], variables].concat();
        assert_eq!(with_netrc(&url, 1, &variables), [""; 0]);
        let log = site.log();
        let fields = log[before..].iter();
        fields.map(|one| one.header("Authorization").map(str::to_owned)).collect::<Vec<_>>()
    };
    let given = |user: &str| Some(format!("Basic {}", base64(user)));
    assert_eq!(met("http://a.test:PORT/to-b", &[]), [given("a:1"), given("b:2")]);
    assert_eq!(met("http://a.test:PORT/to-none", &[]), [given("a:1"), None]);
    assert_eq!(met("http://none.test:PORT/to-b", &[]), [None, given("b:2")]);
    assert_eq!(met("http://u:p@a.test:PORT/", &[]), [given("u:p")]);
    assert_eq!(met("http://u:p@a.test:PORT/to-b", &[]), [given("u:p"), given("b:2")]);
    let field = [("CASE_AUTHORIZATION", "Token t")];
    assert_eq!(met("http://a.test:PORT/", &field), [Some("Token t".to_owned())]);
    assert_eq!(met("http://a.test:PORT/to-b", &field), [Some("Token t".to_owned()), given("b:2")]);
}
