//! The built command with cookies from a file and into one.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use longhaul::lab::{HttpProxy, Origin, Received, Reply};
use longhaul::session::CookieJar;
use longhaul::time::{Clock, SystemClock};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// `longhaul run` in this folder: its exit code and what it said.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .current_dir(folder)
        .env_remove("RUST_LOG")
        .args(["run", "--no-env", "-w", "1", "-o", "out.jsonl"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The cookies of a file, as `domain: name=value`.
fn shown(path: &Path) -> Vec<String> {
    let jar = CookieJar::load(path, SystemClock.wall()).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let line = |one: &longhaul::session::Cookie| {
        format!("{}: {}={}", one.domain(), text(one.name()), text(one.value()))
    };
    jar.iter().map(line).collect()
}

/// A site that gives each visitor without a `visit` one, and logs out at `/out`.
fn site() -> Origin {
    Origin::builder()
        .handler(|request: &Received| {
            let reply = Reply::ok("ok");
            match request.path.as_str() {
                "/in" => reply
                    .header("Set-Cookie", "visit=1; Path=/")
                    .header("Set-Cookie", "kept=1; Path=/; Max-Age=86400"),
                "/out" => reply.header("Set-Cookie", "login=; Path=/; Max-Age=0"),
                _ => reply,
            }
        })
        .start()
        .unwrap()
}

fn cookies_of(site: &Origin) -> Vec<Option<String>> {
    site.log().iter().map(|one| one.header("Cookie").map(str::to_owned)).collect()
}

#[test]
fn a_run_begins_with_the_cookies_of_a_file_and_leaves_them_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let site = site();
    let path = |name: &str| folder.path().join(name);
    fs::write(
        path("in.txt"),
        "127.0.0.1\tFALSE\t/\tFALSE\t0\tlogin\ts3cret\nother.test\tFALSE\t/\tFALSE\t0\ta\tb\n",
    )
    .unwrap();
    let urls = [site.url("/one"), site.url("/in"), site.url("/two")];
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let arguments = [&urls[..], &["-b", "in.txt", "-c", "jar.json"]].concat();
    let (code, said) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("2 from in.txt, for every worker and proxy; kept in jar.json"), "{said}");
    let login = "login=s3cret".to_owned();
    let all = format!("{login}; visit=1; kept=1");
    assert_eq!(cookies_of(&site), [Some(login.clone()), Some(login), Some(all)]);
    let wanted =
        ["other.test: a=b", "127.0.0.1: login=s3cret", "127.0.0.1: visit=1", "127.0.0.1: kept=1"];
    assert_eq!(shown(&path("jar.json")), wanted);
    assert!(fs::read_to_string(path("jar.json")).unwrap().starts_with('{'));
    // Not in what is said, and not in the records.
    let records = fs::read_to_string(path("out.jsonl")).unwrap();
    assert!(!said.contains("s3cret") && !records.contains("s3cret"));
    assert_eq!(shown(&path("in.txt")).len(), 2, "what is read is not written");
}

#[test]
fn one_file_goes_through_many_runs() {
    let folder = tempfile::tempdir().unwrap();
    let site = site();
    let jar = folder.path().join("jar.txt");
    let go = |path: &str, more: &[&str]| {
        let _ = fs::remove_file(folder.path().join("out.jsonl"));
        let url = site.url(path);
        let (code, said) =
            run(folder.path(), &[&[url.as_str(), "-b", "jar.txt", "-c", "jar.txt"], more].concat());
        assert_eq!(code, 0, "{said}");
    };
    // The first one finds no file.
    go("/in", &[]);
    assert_eq!(shown(&jar), ["127.0.0.1: visit=1", "127.0.0.1: kept=1"]);
    go("/", &[]);
    assert_eq!(cookies_of(&site)[1].as_deref(), Some("visit=1; kept=1"));
    // What a site takes away is gone, and what it does not speak of stays.
    let mut cookies = CookieJar::load(&jar, SystemClock.wall()).unwrap();
    cookies.set("login", "1", "127.0.0.1", "/").unwrap();
    cookies.set("else", "1", "elsewhere.test", "/").unwrap();
    cookies.save(&jar, SystemClock.wall()).unwrap();
    go("/out", &[]);
    let wanted = ["elsewhere.test: else=1", "127.0.0.1: visit=1", "127.0.0.1: kept=1"];
    assert_eq!(shown(&jar), wanted);
    // A run that has nothing to do loses nothing.
    let url = site.url("/out");
    let (code, said) = run(folder.path(), &[&url, "--resume", "-b", "jar.txt", "-c", "jar.txt"]);
    assert_eq!((code, shown(&jar).len()), (0, 3), "{said}");
}

#[test]
fn of_many_visitors_the_file_holds_one_for_each_site() {
    let folder = tempfile::tempdir().unwrap();
    // Two cookies that belong together, by exit.
    let site = Origin::builder()
        .handler(|request: &Received| {
            let exit = request.peer.ip().to_string();
            let set = |name: &str| format!("{name}={exit}; Path=/");
            Reply::ok("ok").header("Set-Cookie", set("id")).header("Set-Cookie", set("form"))
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
    fs::write(folder.path().join("in.txt"), ".a.test\tTRUE\t/\tFALSE\t0\tid\tfile\n").unwrap();
    // Three sites in turn over two exits in turn: each site meets both.
    let hosts = ["a.test", "b.test", "c.test"];
    let urls: Vec<String> =
        (0..4).flat_map(|n| hosts.map(|host| format!("http://{host}/{n}"))).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let (two_url, three_url) = (two.url(), three.url());
    let flags = ["-x", &two_url, "-x", &three_url, "-b", "in.txt", "-c", "jar.txt"];
    let (code, said) = run(folder.path(), &[&flags[..], &urls].concat());
    assert_eq!(code, 0, "{said}");
    // Every identity began with the file's.
    let log = site.log();
    for exit in ["127.0.0.2", "127.0.0.3"] {
        let of_exit = |one: &&Received| {
            one.peer.ip().to_string() == exit && one.header("Host").unwrap() == "a.test"
        };
        let first = log.iter().find(of_exit).unwrap();
        assert_eq!(first.header("Cookie"), Some("id=file"), "{exit}");
    }
    let lines = shown(&folder.path().join("jar.txt"));
    for host in hosts {
        let last = log.iter().rfind(|one| one.header("Host") == Some(host)).unwrap();
        let exit = last.peer.ip();
        for name in ["id", "form"] {
            let line = format!("{host}: {name}={exit}");
            assert!(lines.contains(&line), "{line} is not in {lines:?}");
        }
    }
    // The file's own `.a.test` cookie is another one than that which the host set for itself.
    assert_eq!(lines.len(), 7, "{lines:?}");
}

#[test]
fn a_run_that_is_stopped_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let site = site();
    let proxy = HttpProxy::builder()
        .elsewhere(site.address())
        .handler(|request: &Received| (request.path == "/stop").then(|| Reply::new(407)))
        .start()
        .unwrap();
    let urls = ["http://a.test/in", "http://a.test/stop"];
    let flags = ["-x", &proxy.url(), "-c", "jar.txt"];
    let (code, said) = run(folder.path(), &[&urls[..], &flags].concat());
    assert_eq!(code, 3, "{said}");
    assert_eq!(shown(&folder.path().join("jar.txt")), ["a.test: visit=1", "a.test: kept=1"]);
}

#[test]
fn cookies_that_cannot_be_kept_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let jar = folder.path().join("sub/jar.txt");
    fs::create_dir(folder.path().join("sub")).unwrap();
    let gone = folder.path().join("sub");
    let site = Origin::builder()
        .handler(move |_: &Received| {
            // The folder goes away during the run.
            let _ = fs::remove_dir_all(&gone);
            Reply::ok("ok")
        })
        .start()
        .unwrap();
    let (code, said) = run(folder.path(), &[&site.url("/"), "-c", "sub/jar.txt"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the cookies are lost: sub/jar.txt cannot be written: "), "{said}");
    assert!(!jar.exists());
}
