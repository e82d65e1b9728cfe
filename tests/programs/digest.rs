//! Digest credentials, checked by lighttpd.

use longhaul::message::{Auth, Body};
use longhaul::{ProxyPool, Session};

use super::job::Job;
use super::support::lighttpd::{Lighttpd, UMLAUT};
use super::support::squid::{Squid, SquidOptions};
use super::support::{PASSWORD, USER};

fn session(user: &str, password: &str) -> Session {
    let auth = Auth::Digest(user.to_owned(), password.to_owned());
    Session::builder().trust_env(false).auth(auth).build().unwrap()
}

/// Status and user of a line of the log, and what the credentials hold under `name`.
fn seen<'a>(line: &'a str, name: &str) -> (&'a str, &'a str, Option<&'a str>) {
    let words: Vec<&str> = line.splitn(5, ' ').collect();
    let value = words[4].split_once(&format!("{name}=")).map(|(_, rest)| {
        let end = rest.find(", ").unwrap_or(rest.len());
        rest[..end].trim_matches(['\\', '"'])
    });
    (words[2], words[3], value)
}

#[test]
fn each_algorithm_and_the_stronger_of_two() {
    let Some(lighttpd) = Lighttpd::start() else { return };
    for (realm, algorithm) in
        [("md5", "MD5"), ("sha256", "SHA-256"), ("both", "SHA-256"), ("userhash", "SHA-256")]
    {
        for user in [USER, UMLAUT] {
            lighttpd.program().clear_log("access.log");
            let session = session(user, PASSWORD);
            for n in 0..3 {
                let url = lighttpd.url(&format!("/{realm}/page?n={n}&a=b c"));
                let response = session.get(url).send().unwrap();
                assert_eq!(response.status(), 200, "{realm} {user}");
                assert_eq!(response.text().unwrap(), realm);
                assert_eq!(response.attempts().len(), if n == 0 { 2 } else { 1 });
            }
            let log = lighttpd.access_log(4);
            assert_eq!(log.len(), 4, "{log:?}");
            assert_eq!(seen(&log[0], "nc"), ("401", "-", None), "{log:?}");
            for (line, nc) in log[1..].iter().zip(["00000001", "00000002", "00000003"]) {
                assert_eq!(seen(line, "nc").2, Some(nc), "{line}");
                let (status, known, found) = seen(line, "algorithm");
                assert_eq!((status, found), ("200", Some(algorithm)), "{line}");
                assert_eq!(known == USER, user == USER, "{line}");
            }
        }
    }
    // What needs none gets none.
    lighttpd.program().clear_log("access.log");
    session(USER, PASSWORD).get(lighttpd.url("/open/page")).send().unwrap();
    assert_eq!(seen(&lighttpd.access_log(1)[0], "nc"), ("200", "-", None));
}

#[test]
fn a_wrong_password_is_two_requests_and_one_401() {
    let Some(lighttpd) = Lighttpd::start() else { return };
    for (user, password) in [(USER, "wr0ng"), ("nobody", PASSWORD)] {
        lighttpd.program().clear_log("access.log");
        let session = session(user, password);
        let response = session.get(lighttpd.url("/both/page")).send().unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(response.attempts().len(), 2);
        assert_eq!(response.attempts()[1].note, Some("the credentials were refused"));
        // A later line would say that there had been a third.
        session.get(lighttpd.url("/open/page")).send().unwrap();
        let log = lighttpd.access_log(3);
        let statuses: Vec<&str> = log.iter().map(|line| seen(line, "nc").0).collect();
        assert_eq!(statuses, ["401", "401", "200"], "{log:?}");
    }
}

#[test]
fn a_body_is_sent_again_behind_the_challenge() {
    let Some(lighttpd) = Lighttpd::start() else { return };
    let body = vec![b'x'; 100_000];
    let again = body.clone();
    let reader = move || {
        let reader = Box::new(std::io::Cursor::new(again.clone()));
        Ok((reader as Box<dyn std::io::Read + Send>, Some(100_000)))
    };
    for body in [Body::from(body), Body::replayable(reader)] {
        lighttpd.program().clear_log("access.log");
        let session = session(USER, PASSWORD);
        for _ in 0..2 {
            let url = lighttpd.url("/md5/length");
            let response = session.post(url).body(body.clone()).send().unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.text().unwrap().trim(), "100000");
        }
        let log = lighttpd.access_log(3);
        let counts: Vec<_> = log.iter().map(|line| seen(line, "nc").2).collect();
        assert_eq!(counts, [None, Some("00000001"), Some("00000002")], "{log:?}");
    }
}

#[test]
fn through_squid_forwarded_and_tunnelled() {
    let (Some(lighttpd), Some(squid)) = (Lighttpd::start(), Squid::start(&SquidOptions::default()))
    else {
        return;
    };
    for tunnelled in [false, true] {
        lighttpd.program().clear_log("access.log");
        let pool = ProxyPool::parse(&format!("http://{}", squid.address())).unwrap();
        let auth = Auth::Digest(USER.to_owned(), PASSWORD.to_owned());
        let session = Session::builder()
            .trust_env(false)
            .auth(auth)
            .proxies(pool.always_connect(tunnelled))
            .build()
            .unwrap();
        for n in 0..2 {
            let response = session.get(lighttpd.url(&format!("/sha256/page?{n}"))).send().unwrap();
            assert_eq!((response.status(), response.text().unwrap().as_str()), (200, "sha256"));
        }
        let log = lighttpd.access_log(3);
        let found: Vec<_> = log.iter().map(|line| seen(line, "uri")).collect();
        let wanted = [
            ("401", "-", None),
            ("200", USER, Some("/sha256/page?0")),
            ("200", USER, Some("/sha256/page?1")),
        ];
        assert_eq!(found, wanted, "{log:?}");
    }
    // A tunnel is logged when it ends.
    let tunnel = format!("CONNECT {} 200 -", lighttpd.address());
    let log = squid.program().wait_for_log("access.log", |log| log.contains(&tunnel));
    assert_eq!(log.matches(&format!("GET {}", lighttpd.url("/sha256/page?"))).count(), 3, "{log}");
}

const WORKERS: usize = 4;

#[test]
fn a_run_answers_once_for_each_worker_and_shows_no_password() {
    let Some(lighttpd) = Lighttpd::start() else { return };
    let job = Job::new((0..300).map(|n| lighttpd.url(&format!("/both/page?{n}"))));
    job.write("user", format!("{USER}:{PASSWORD}\n"));
    let flags = ["-w", "4", "--user-file", "user", "--digest", "-vv"];
    let mut command = job.over_list(&flags);
    command.env("RUST_LOG", "trace");
    let ended = job.end(command);
    ended.assert_code(0);
    assert_eq!(job.all_ok_once().len(), 300);
    assert!(ended.stderr.contains("sends    Digest credentials"), "{}", ended.stderr);
    let records = job.records();
    let answered =
        records.iter().filter(|record| record["attempts"].as_array().unwrap().len() == 2);
    let challenged = answered.count();
    assert!((1..=WORKERS).contains(&challenged), "{challenged}");
    let log = lighttpd.access_log(300 + challenged);
    assert_eq!(log.len(), 300 + challenged);
    let refused = log.iter().filter(|line| seen(line, "nc").0 == "401").count();
    assert_eq!(refused, challenged);
    std::fs::remove_file(job.path("user")).unwrap();
    job.assert_nowhere(&[PASSWORD, "response="]);
    println!("digest: 300 records, {challenged} challenges");
}

#[test]
fn a_run_with_a_wrong_password_has_a_401_for_each_url() {
    let Some(lighttpd) = Lighttpd::start() else { return };
    // Few, since lighttpd takes a second over each wrong password.
    let job = Job::new((0..4).map(|n| lighttpd.url(&format!("/md5/page?{n}"))));
    let mut command = job.over_list(&["-w", "2", "--user", USER, "--digest"]);
    command.env("LONGHAUL_PASSWORD", "wr0ng");
    job.end(command).assert_code(1);
    for record in job.records() {
        assert_eq!((&record["status"], &record["class"]), (&401.into(), &"permanent".into()));
        assert_eq!(record["attempts"].as_array().unwrap().len(), 2, "{record}");
    }
    assert_eq!(lighttpd.access_log(8).len(), 8);
    job.assert_nowhere(&["wr0ng"]);
}
