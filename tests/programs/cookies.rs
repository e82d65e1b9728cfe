//! Cookie files between curl, Python and the command, in every direction.

use std::path::Path;
use std::process::Command;

use longhaul::lab::{HttpProxy, Origin, Received, Reply};
use longhaul::session::CookieJar;
use longhaul::time::{Clock, SystemClock};

use super::job::Job;
use super::support::require;

const SET: &str = "http://www.h.test/set";
const ASKED: [&str; 4] =
    ["http://www.h.test/", "http://www.h.test/dir/x", "http://h.test/", "http://other.test/"];

/// A site under every name, and the proxy that leads to it.
fn site() -> (Origin, HttpProxy) {
    let site = Origin::builder()
        .handler(|request: &Received| {
            let lines = [
                "host=1; Path=/",
                "quoted=\"x, y\"; Domain=h.test; Path=/",
                "c[id]={\"k\": \"v w\"}; Path=/; HttpOnly",
                "caf\u{e9}=\u{65e5}; Path=/; Max-Age=86400",
                "empty=; Path=/; Max-Age=86400",
                "deep=a=b=; Path=/dir",
                "over=1; Path=/; Max-Age=0",
            ];
            let reply = Reply::ok("ok");
            if request.path != "/set" {
                return reply;
            }
            lines.iter().fold(reply, |reply, line| reply.header("Set-Cookie", line))
        })
        .start()
        .unwrap();
    let proxy = HttpProxy::builder().elsewhere(site.address()).start().unwrap();
    (site, proxy)
}

/// The cookies that the site was sent with the last request for each URL, in one order.
fn sent(site: &Origin) -> Vec<Vec<String>> {
    let log = site.log();
    let last = |url: &&str| {
        let is_it = |one: &&Received| {
            format!("http://{}{}", one.header("Host").unwrap(), one.path) == **url
        };
        pairs(log.iter().rfind(is_it).unwrap().header("Cookie").unwrap_or_default())
    };
    ASKED.iter().map(last).collect()
}

fn pairs(field: &str) -> Vec<String> {
    let mut pairs: Vec<String> =
        field.split("; ").filter(|pair| !pair.is_empty()).map(str::to_owned).collect();
    pairs.sort();
    pairs
}

fn curl(program: &Path, job: &Job, proxy: &HttpProxy, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.current_dir(job.path(".")).args(["-q", "-s", "-S", "-f", "-x", &proxy.url()]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs over the URLs one after the other, beginning with the cookies of `from`.
fn longhaul(job: &Job, proxy: &HttpProxy, from: &str, more: &[&str]) {
    let _ = std::fs::remove_file(job.path("results.jsonl"));
    let flags = ["-w", "1", "-x", &proxy.url(), "--cookies", from];
    job.run(&[&flags[..], more].concat()).assert_code(0);
}

#[test]
fn files_of_curl_are_read_and_curl_reads_ours() {
    let Some(program) = require("curl") else { return };
    let (site, proxy) = site();
    let job = Job::new(ASKED);
    curl(&program, &job, &proxy, &["-c", "curl.txt", SET]);
    curl(&program, &job, &proxy, &[&["-b", "curl.txt"][..], &ASKED].concat());
    let of_curl = sent(&site);
    assert_eq!(of_curl[0].len(), 5, "{of_curl:?}");
    assert_eq!(of_curl[2], ["quoted=\"x, y\""]);
    longhaul(&job, &proxy, "curl.txt", &["--cookie-jar", "ours.txt"]);
    assert_eq!(sent(&site), of_curl);
    curl(&program, &job, &proxy, &[&["-b", "ours.txt"][..], &ASKED].concat());
    assert_eq!(sent(&site), of_curl);
    // curl goes on with our file, too.
    curl(&program, &job, &proxy, &["-b", "ours.txt", "-c", "both.txt", SET]);
    longhaul(&job, &proxy, "both.txt", &["--cookie-jar", "ours.json"]);
    assert_eq!(sent(&site), of_curl);
    longhaul(&job, &proxy, "ours.json", &[]);
    assert_eq!(sent(&site), of_curl);
    println!("{} cookies of curl's came through, {:?}", of_curl[0].len(), of_curl[0]);
}

#[test]
fn files_of_python_are_read_and_python_reads_ours() {
    let Some(program) = require("python3") else { return };
    let (site, proxy) = site();
    let job = Job::new(ASKED);
    job.write(
        "jar.py",
        "import sys, http.cookiejar, urllib.request\n\
         sys.stdout.reconfigure(encoding='utf-8')\n\
         jar = http.cookiejar.MozillaCookieJar(sys.argv[1])\n\
         jar.load(ignore_discard=True, ignore_expires=True)\n\
         for cookie in jar:\n\
         \x20   if cookie.expires == 0: cookie.expires, cookie.discard = None, True\n\
         for url in sys.argv[3:]:\n\
         \x20   request = urllib.request.Request(url)\n\
         \x20   jar.add_cookie_header(request)\n\
         \x20   print(request.get_header('Cookie') or '')\n\
         jar.save(sys.argv[2], ignore_discard=True, ignore_expires=True)\n",
    );
    let python = |from: &str, to: &str| {
        let output = Command::new(&program)
            .current_dir(job.path("."))
            .env("PYTHONUTF8", "1")
            .args([&["jar.py", from, to][..], &ASKED].concat())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        String::from_utf8(output.stdout).unwrap().lines().map(pairs).collect::<Vec<_>>()
    };
    // Ours, made by a run; Python sends of it what we send.
    job.write("urls.txt", format!("{SET}\n"));
    job.write("none.txt", "");
    longhaul(&job, &proxy, "none.txt", &["--cookie-jar", "ours.txt"]);
    job.write("urls.txt", ASKED.map(|url| format!("{url}\n")).concat());
    let of_python = python("ours.txt", "python.txt");
    longhaul(&job, &proxy, "ours.txt", &[]);
    // The lab shows bytes as the characters of the same number.
    let latin = |lists: &[Vec<String>]| -> Vec<Vec<String>> {
        let wide = |text: &String| text.bytes().map(char::from).collect::<String>();
        lists
            .iter()
            .map(|list| pairs(&list.iter().map(wide).collect::<Vec<_>>().join("; ")))
            .collect()
    };
    assert_eq!(sent(&site), latin(&of_python));
    assert_eq!(of_python[1].len(), 6, "{of_python:?}");
    // Python's own file, in which sessions have no end.
    longhaul(&job, &proxy, "python.txt", &[]);
    assert_eq!(sent(&site), latin(&of_python));
    let load = |name: &str| CookieJar::load(job.path(name), SystemClock.wall()).unwrap();
    let (ours, theirs) = (load("ours.txt"), load("python.txt"));
    assert_eq!(ours.len(), theirs.len());
    for cookie in ours.iter() {
        let same = theirs.get(cookie.name(), None, None).unwrap().unwrap();
        assert_eq!(
            (same.domain(), same.path(), same.is_http_only(), same.is_host_only(), same.expires()),
            (
                cookie.domain(),
                cookie.path(),
                cookie.is_http_only(),
                cookie.is_host_only(),
                cookie.expires()
            )
        );
    }
    println!("{} cookies went to Python and back", ours.len());
}
