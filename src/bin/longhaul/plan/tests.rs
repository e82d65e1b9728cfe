use super::*;
use crate::args::{Cli, Command, Rotate};
use crate::voice::Voice;
use clap::Parser;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use longhaul::message::Auth;
use longhaul::policy::{Backoff, Bound};
use longhaul::{Retry, secs};
use std::collections::BTreeMap;
use std::time::Duration;

/// A machine made of two tables.
#[derive(Default)]
struct Fake {
    files: BTreeMap<&'static str, &'static str>,
    vars: BTreeMap<&'static str, &'static str>,
    terminal: bool,
}

impl World for Fake {
    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).map(ToString::to_string)
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let name = path.to_str().unwrap();
        if name == "dir" || name == "." {
            Ok(Kind::Folder)
        } else if name == "secret" {
            Err(io::ErrorKind::PermissionDenied.into())
        } else if self.files.contains_key(name) {
            Ok(Kind::File)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn is_empty(&self, path: &Path) -> bool {
        self.files.get(path.to_str().unwrap()).is_some_and(|text| text.is_empty())
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        match self.files.get(path.to_str().unwrap()) {
            Some(text) => Ok((*text).to_owned()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn read_bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read(path).map(String::into_bytes)
    }

    fn stdin_is_terminal(&self) -> bool {
        self.terminal
    }

    fn stderr_is_terminal(&self) -> bool {
        self.terminal
    }

    fn stdout_is_terminal(&self) -> bool {
        self.terminal
    }

    fn columns(&self) -> Option<usize> {
        None
    }

    fn now(&self) -> Timestamp {
        "2026-12-01T12:00:00Z".parse().unwrap()
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}

fn fake() -> Fake {
    let files = BTreeMap::from([
        ("urls.txt", "http://a/\n"),
        ("old.jsonl", "{}\n"),
        ("empty.jsonl", ""),
        ("proxies.txt", "# ours\na:1\nb:2\n"),
        ("bad-proxies.txt", "a:1\n\nftp://b:2\n"),
        ("no-proxies.txt", "# none\n"),
        ("cookies.txt", "h.test\tFALSE\t/\tFALSE\t0\ta\thunter2\n"),
        ("bad-cookies.txt", "# x\nh.test FALSE / FALSE 0 a hunter2\n"),
        ("bad-cookies.json", "[{\"name\": \"a\", \"value\": \"hunter2\"}]"),
        ("ca.pem", "-----BEGIN CERTIFICATE-----\n"),
        ("not-a-ca.pem", "hello\n"),
        ("user", "lab:hun:ter2\r\n"),
        ("token", "hunter2\n"),
        ("two", "a:b\nhunter2\n"),
        ("netrc", "machine a login n password hunter2"),
    ]);
    Fake { files, vars: BTreeMap::new(), terminal: true }
}

fn args(line: &str) -> RunArgs {
    let words = ["longhaul", "run"].into_iter().chain(line.split_whitespace());
    match Cli::try_parse_from(words).unwrap().command {
        Command::Run(args) => *args,
        _ => panic!("{line}"),
    }
}

fn plan(line: &str) -> Plan {
    resolve(&args(line), &fake()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn refusal(line: &str, world: &Fake) -> String {
    resolve(&args(line), world).map(|_| line.to_owned()).unwrap_err().to_string()
}

#[test]
fn every_contradiction_names_its_place_and_remedy() {
    for (line, parts) in [
        ("", &["URL: there is none; give URLs, or a file of them with -i"][..]),
        ("-i gone.txt", &["-i: gone.txt cannot be read: ", "; name"]),
        ("-i secret", &["-i: secret cannot be read: permission denied; name"]),
        ("-i dir", &["-i: dir is a folder; name a file of URLs"]),
        (
            "http://a/ --pass-read 3",
            &["--pass-read: there is no pass after the first; add --passes"],
        ),
        ("http://a/ --passes 1 --pass-deadline none", &["--pass-deadline: ", "add --passes 2"]),
        ("http://a/ --retry-failed", &["--retry-failed: ", "add --resume"]),
        ("http://a/ --resume", &["--resume: ", "name the results file with -o"]),
        ("http://a/ --resume -o -", &["--resume: ", "name the results file with -o"]),
        ("http://a/ -o old.jsonl", &["-o: old.jsonl holds results already; add --resume"]),
        ("http://a/ -o dir", &["-o: dir is a folder; name a file in it"]),
        ("http://a/ -o gone/new.jsonl", &["-o: gone is no folder; make it"]),
        ("http://a/ -o secret", &["-o: secret cannot be used: permission denied; name another"]),
        ("http://a/ --bodies urls.txt", &["--bodies: urls.txt is not a folder; name one"]),
        ("http://a/ --columns id", &["--columns: JSON Lines have no columns; add --format csv"]),
        (
            "http://a/ --columns id --format jsonl",
            &["--columns: JSON Lines have everything; leave"],
        ),
        ("http://a/ --rotate-size 1M", &["--rotate-size: standard output has no size; name"]),
        ("http://a/ --warc p.warc", &["--warc: p.warc is no name", "name PREFIX.warc.gz"]),
        ("http://a/ --warc .warc.gz", &["--warc: .warc.gz is no name"]),
        ("http://a/ --warc gone/p.warc.gz", &["--warc: gone is no folder; make it"]),
        ("http://a/ --warc p.warc.gz --bodies new", &["--warc: has the bodies too", "leave"]),
        ("http://a/ --warc-size 1G", &["--warc-size: there are no WARC files; name them with"]),
        ("http://a/ --warc-credentials", &["--warc-credentials: there are no WARC files"]),
        ("http://a/ --rotate host", &["--rotate: there is nothing to rotate; give proxies"]),
        ("http://a/ -x ftp://b:2", &["-x: ", "ftp"]),
        ("http://a/ --proxies gone.txt", &["--proxies: gone.txt cannot be read: "]),
        ("http://a/ --proxies no-proxies.txt", &["--proxies no-proxies.txt: ", "empty"]),
        ("http://a/ --proxies bad-proxies.txt", &["--proxies bad-proxies.txt: ", "line 3"]),
        ("http://a/ --no-env --exit-check http://e/", &["--exit-check: without a proxy"]),
        ("http://a/ -x a:1 --exit-check e", &["--exit-check: this is no http or https URL; give"]),
        ("http://a/ -x a:1 --exit-check ftp://e/", &["--exit-check: this is no http or https URL"]),
        ("http://a/ --cacert ca.pem --insecure", &["--insecure: makes --cacert pointless; leave"]),
        ("http://a/ --cacert gone.pem", &["--cacert: gone.pem cannot be read: "]),
        ("http://a/ --cacert not-a-ca.pem", &["--cacert: not-a-ca.pem holds no PEM certificate"]),
        ("http://a/ --cookies gone.txt", &["--cookies: gone.txt cannot be read: "]),
        ("http://a/ -b gone.txt -c other.txt", &["--cookies: gone.txt cannot be read: "]),
        ("http://a/ -b bad-cookies.txt", &["--cookies bad-cookies.txt: line 2: ", "tabs"]),
        ("http://a/ -b bad-cookies.json", &["--cookies bad-cookies.json: ", "cookie 1", "domain"]),
        ("http://a/ --cookie-jar dir", &["--cookie-jar: dir is a folder; name a file in it"]),
        ("http://a/ -c gone/c.txt", &["--cookie-jar: gone is no folder; make it"]),
        ("http://a/ -c secret", &["--cookie-jar: secret cannot be used: permission denied"]),
        ("http://a/ --user hunter2", &["--user: there is no password; set LONGHAUL_PASSWORD"]),
        ("http://a/ --user u:p --bearer t", &["--bearer: contradicts --user; leave one"]),
        ("http://a/ --user u:p --user-file f", &["--user-file: contradicts --user; leave one"]),
        ("http://a/ --digest", &["--digest: there is no user to answer with; add --user"]),
        ("http://a/ --digest --bearer t", &["--digest: there is no user to answer with"]),
        ("http://a/ --user-file gone", &["--user-file: gone cannot be read: ", "; name a file"]),
        ("http://a/ --user-file token", &["--user-file: token has no colon; write USER:PASSWORD"]),
        ("http://a/ --user-file two", &["--user-file: two has more than one line; write"]),
        ("http://a/ --bearer-file empty.jsonl", &["--bearer-file: empty.jsonl is empty; write"]),
        ("http://a/ --bearer hun\u{e4}ter2", &["--bearer: the bearer token cannot stand in"]),
        ("http://a/ --bearer t -H AUTHORIZATION:x", &["-H: the field Authorization contradicts"]),
        ("http://a/ --netrc-file gone", &["--netrc-file: gone cannot be read: "]),
        ("http://a/ --netrc-file token", &["--netrc-file token: ", " has a word where machine"]),
        ("http://a/ --netrc-file netrc --no-netrc", &["--no-netrc: contradicts --netrc-file"]),
        (
            "http://a/ --json-progress --progress plain",
            &["--json-progress: contradicts --progress"],
        ),
        ("http://a/ --progress-every 5", &["--progress-every: is for lines and objects, and"]),
        ("http://a/ --tally dir", &["--tally: dir is a folder; name a file in it"]),
        ("http://a/ --tally old.jsonl", &["--tally: old.jsonl holds something; go on with it by"]),
        ("http://a/ -o n.jsonl --tally n.jsonl", &["--tally: n.jsonl is where the records go"]),
        ("http://a/ -q -v", &["-q: contradicts -v; leave one of them out"]),
    ] {
        let text = refusal(line, &fake());
        assert!(text.starts_with("longhaul: error: "), "{line}: {text}");
        assert_eq!(text.lines().count(), 1, "{line}: {text}");
        assert!(!text.contains("ter2"), "{line}: {text}");
        for part in parts {
            assert!(text.contains(part), "{line}: {text} lacks {part}");
        }
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn cookies_are_read_before_the_run_and_told_by_number() {
    let told = |line: &str| plan(line).cookies.describe();
    assert_eq!(told("http://a/"), None);
    let wanted = "1 from cookies.txt, for every worker and proxy";
    assert_eq!(told("http://a/ -b cookies.txt").as_deref(), Some(wanted));
    assert_eq!(told("http://a/ -c new.txt").as_deref(), Some("kept in new.txt at the end"));
    // The first of many runs with one file.
    let wanted = "0 from new.txt, for every worker and proxy; kept in new.txt at the end";
    assert_eq!(told("http://a/ -b new.txt -c new.txt").as_deref(), Some(wanted));
    let text = plan("http://a/ -b cookies.txt").describe(&Counted::default());
    assert!(text.contains("\n  cookies  1 from") && !text.contains("hunter2"), "{text}");
    assert!(!format!("{:?}", plan("http://a/ -b cookies.txt")).contains("hunter2"));
}

#[test]
fn a_broken_variable_is_found_unless_it_is_not_consulted() {
    let mut world = fake();
    world.vars.insert("https_proxy", "http://user:hunter2@:::");
    let text = refusal("http://a/", &world);
    assert!(text.contains("environment: ") && text.contains("https_proxy"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    for line in ["http://a/ --no-env", "http://a/ -x a:1"] {
        assert!(resolve(&args(line), &world).is_ok(), "{line}");
    }
}

#[test]
fn no_refusal_shows_a_password() {
    for line in ["http://a/ -x http://user:hunter2@b:99999", "http://a/ -x ftp://user:hunter2@b:1"]
    {
        let text = refusal(line, &fake());
        assert!(!text.contains("hunter2"), "{text}");
    }
}

/// The `Authorization` field of a request to `http://a/` under this plan.
fn sent(line: &str, world: &Fake) -> Option<String> {
    let plan = resolve(&args(line), world).unwrap();
    assert!(!format!("{plan:?}").contains("ter2"), "{line}");
    let words = plan.describe(&Counted::default());
    assert!(!words.contains("ter2"), "{words}");
    let recipe = plan.credentials.apply(longhaul::Session::builder());
    let request = longhaul::Request::new(http::Method::GET, "http://a/");
    let prepared = longhaul::message::prepare(recipe.settings(), &request).unwrap();
    match prepared.auth {
        Some(Auth::Digest(user, password)) => Some(format!("Digest {user} {password}")),
        Some(other) => panic!("{other:?}"),
        None => prepared.headers.get("authorization").map(|v| String::from_utf8(v.into()).unwrap()),
    }
}

#[test]
fn what_the_targets_are_told() {
    let mut world = fake();
    world.vars.insert("LONGHAUL_PASSWORD", "hunter2");
    for (line, wanted) in [
        ("http://a/", None),
        ("http://a/ -u lab:hun:ter2", Some("Basic bGFiOmh1bjp0ZXIy")),
        ("http://a/ --user lab", Some("Basic bGFiOmh1bnRlcjI=")),
        ("http://a/ --user lab:", Some("Basic bGFiOg==")),
        ("http://a/ --user-file user", Some("Basic bGFiOmh1bjp0ZXIy")),
        ("http://a/ --user-file user --digest", Some("Digest lab hun:ter2")),
        ("http://a/ --user lab --digest", Some("Digest lab hunter2")),
        ("http://a/ --bearer hunter2", Some("Bearer hunter2")),
        ("http://a/ --bearer-file token", Some("Bearer hunter2")),
        ("http://a/ --netrc-file netrc", Some("Basic bjpodW50ZXIy")),
        ("http://a/ --netrc-file netrc --user lab:", Some("Basic bGFiOg==")),
        ("http://a/ --no-netrc", None),
    ] {
        assert_eq!(sent(line, &world).as_deref(), wanted, "{line}");
    }
    // Without a user the variable means nothing, and with a password it is not asked.
    let words = |line| resolve(&args(line), &world).unwrap().describe(&Counted::default());
    assert!(!words("http://a/").contains("  sends"));
    assert!(words("http://a/ --user lab --digest").contains("  sends    Digest credentials, to"));
}

#[test]
fn where_the_urls_come_from() {
    let urls = || Input::Urls(vec!["http://a/".to_owned()]);
    assert_eq!(plan("http://a/").inputs, [urls()]);
    assert_eq!(plan("-i urls.txt").inputs, [Input::File("urls.txt".into())]);
    assert_eq!(plan("-i -").inputs, [Input::Stdin]);
    assert_eq!(plan("http://a/ -i urls.txt").inputs, [urls(), Input::File("urls.txt".into())]);
    let piped = Fake { terminal: false, ..fake() };
    assert_eq!(resolve(&args(""), &piped).unwrap().inputs, [Input::Stdin]);
}

#[test]
fn where_the_records_go() {
    for (line, wanted) in [
        ("http://a/", None),
        ("http://a/ -o -", None),
        ("http://a/ -o new.jsonl", Some("new.jsonl")),
        ("http://a/ -o empty.jsonl", Some("empty.jsonl")),
        ("http://a/ -o old.jsonl --resume", Some("old.jsonl")),
        ("http://a/ -o new.jsonl --resume --retry-failed", Some("new.jsonl")),
    ] {
        assert_eq!(plan(line).output, wanted.map(PathBuf::from), "{line}");
    }
}

#[test]
fn who_speaks() {
    for (line, terminal, voice, talks) in [
        ("http://a/", true, Voice::Bar, true),
        ("http://a/", false, Voice::Lines, true),
        ("http://a/ --progress auto", false, Voice::Lines, true),
        ("http://a/ -q", true, Voice::Silent, false),
        ("http://a/ -q --progress plain", true, Voice::Lines, false),
        ("http://a/ --progress bar", true, Voice::Bar, true),
        ("http://a/ --progress none", true, Voice::Silent, true),
        ("http://a/ --json-progress", true, Voice::Json, true),
        ("http://a/ --json-progress --progress json", true, Voice::Json, true),
        ("http://a/ --json-progress -q", false, Voice::Json, false),
    ] {
        let manner = resolve(&args(line), &Fake { terminal, ..fake() }).unwrap().manner;
        assert_eq!((manner.voice, manner.talks), (voice, talks), "{line}");
        assert_eq!(manner.shares_terminal, voice == Voice::Bar, "{line}");
    }
    let mut dumb = fake();
    dumb.vars.insert("TERM", "dumb");
    let voice = |line| resolve(&args(line), &dumb).unwrap().manner.voice;
    assert_eq!(voice("http://a/"), Voice::Lines);
    assert_eq!(voice("http://a/ --progress bar"), Voice::Bar);
    for (line, seconds) in [
        ("http://a/ --json-progress", 1),
        ("http://a/ --progress plain", 10),
        ("http://a/ --progress plain --progress-every 1m", 60),
    ] {
        assert_eq!(plan(line).manner.every, Duration::from_secs(seconds), "{line}");
    }
    let nobody = Fake { terminal: false, ..fake() };
    let wanted = "--progress: a bar needs a terminal on standard error; give plain or json";
    assert!(refusal("http://a/ --progress bar", &nobody).contains(wanted));
}

#[test]
fn where_numbers_are_served() {
    for (flag, address) in [
        ("9100", "127.0.0.1:9100"),
        (":9100", "127.0.0.1:9100"),
        ("localhost:0", "127.0.0.1:0"),
        ("0.0.0.0:80", "0.0.0.0:80"),
        ("[::1]:9100", "[::1]:9100"),
    ] {
        let plan = plan(&format!("http://a/ --metrics {flag}"));
        assert_eq!(plan.metrics, Some(address.parse().unwrap()), "{flag}");
    }
}

#[test]
fn which_proxies() {
    let count = |line| match plan(line).proxies {
        Proxies::Pool { pool, .. } => pool.len(),
        _ => 0,
    };
    assert_eq!(count("http://a/ -x a:1"), 1);
    assert_eq!(count("http://a/ -x a:1 -x c:3 --proxies proxies.txt"), 3);
    assert!(matches!(plan("http://a/").proxies, Proxies::Direct));
    let mut world = fake();
    world.vars.insert("all_proxy", "http://c:3");
    let proxies = |line| resolve(&args(line), &world).unwrap().proxies;
    assert!(matches!(proxies("http://a/"), Proxies::Environment(_)));
    assert!(matches!(proxies("http://a/ --no-env"), Proxies::Direct));
    assert!(matches!(
        plan("http://a/ --rotate random -x a:1").proxies,
        Proxies::Pool { rotate: Rotate::Random, .. }
    ));
}

#[test]
fn the_policy_is_the_long_run_with_what_was_asked_for() {
    assert_eq!(plan("http://a/").policy.retry, Retry::long_run());
    assert_eq!(
        plan("http://a/ --total 2 --status off --forcelist 503 --methods any").policy.retry,
        Retry::long_run()
            .total(2)
            .status(longhaul::policy::Budget::Off)
            .status_forcelist(vec![503])
            .allowed_methods(longhaul::policy::Methods::Any)
    );
    assert_eq!(
        plan("http://a/ --jitter full --backoff-max 30").policy.retry,
        Retry::long_run().backoff(Backoff::full_jitter(secs(0.6)).with_max(secs(30.0)))
    );
    assert_eq!(
        plan("http://a/ --backoff-factor 0").policy.retry,
        Retry::long_run().backoff(Backoff::exponential(Duration::ZERO))
    );
}

#[test]
fn later_passes_have_what_was_asked_for_them_and_else_the_first_ones() {
    assert!(plan("http://a/ --passes 3 --total 2").later.is_none());
    let later = |line| plan(&format!("http://a/ --passes 2 {line}")).later.unwrap();
    let asked = later("--total 1 --read 1 --methods any --pass-total 6 --pass-backoff-factor 2");
    let retry = Retry::long_run().total(6).read(1).allowed_methods(longhaul::policy::Methods::Any);
    let shape = Backoff::exponential(secs(2.0)).with_max(retry.backoff_shape().max());
    assert_eq!(asked.retry, retry.backoff(shape));
    assert_eq!(asked.timeouts.read(), Some(secs(25.0)));
    // The deadline of the first pass would be too short for the second.
    assert_eq!(asked.timeouts.deadline(), asked.worst.with_retry_after().duration());
    let asked = later("--connect-timeout 3 --deadline 60 --pass-read-timeout 90");
    assert_eq!(asked.timeouts.connect(), Some(secs(3.0)));
    assert_eq!(asked.timeouts.read(), Some(secs(90.0)));
    assert_eq!(asked.timeouts.deadline(), Some(secs(60.0)));
    assert_eq!(later("--deadline 60 --pass-deadline none").timeouts.deadline(), None);
    let words = plan("http://a/ --passes 2 --pass-status 9 --pass-deadline 5m")
        .describe(&Counted::default());
    let told: Vec<&str> = words.lines().skip_while(|line| !line.contains("later")).collect();
    assert!(told[0].starts_with("  later    total 4, connect 3, read 2, status 9"), "{words}");
    assert!(told[1].starts_with("           at most 5 min, enforced; "), "{words}");
}

#[test]
fn the_deadline_is_the_promise_unless_it_is_taken_away() {
    for line in ["http://a/", "http://a/ --total 1 --retry-after-max 0", "http://a/ --read 0"] {
        let plan = plan(line);
        let promised = match plan.policy.worst.with_retry_after() {
            Bound::At(longest) => longest,
            Bound::Unbounded { because } => panic!("{line}: {because}"),
        };
        assert_eq!(plan.policy.timeouts.deadline(), Some(promised), "{line}");
    }
    assert_eq!(plan("http://a/ --deadline none").policy.timeouts.deadline(), None);
    assert_eq!(plan("http://a/ --deadline 90").policy.timeouts.deadline(), Some(secs(90.0)));
    // A proxy may refuse with a Retry-After as well, and go on refusing.
    let deadline = |line| plan(line).policy.timeouts.deadline();
    assert_eq!(deadline("http://a/"), Some(secs(334.8)));
    assert_eq!(deadline("http://a/ -x a:1"), Some(secs(365.0)));
    // Without a read timeout there is no worst case, and none is invented.
    assert_eq!(plan("http://a/ --read-timeout none").policy.timeouts.deadline(), None);
}

#[test]
fn the_plan_in_words() {
    let counted = Counted { urls: Some(1200), done: 0, repeated: 34 };
    let words = plan("-i urls.txt -w 24 -x a:1 -x b:2 --rate 5/s --per-host 4 -o new.jsonl")
        .describe(&counted);
    for part in [
        "1200 URLs from urls.txt, 34 repeated lines left out",
        "24, at most 5 requests per second together, at most 4 to one host at a time",
        "2, another one for every request",
        "total 4, connect 3, read 2, status 3, redirect none, other none",
        "at most 6 min 5 s, enforced",
        "formula 2 min 39 s, exact 2 min 39 s, with Retry-After 6 min 5 s",
        "in new.jsonl",
    ] {
        assert!(words.contains(part), "{words} lacks {part}");
    }
    let words = plan("http://a/ --deadline none --insecure").describe(&Counted::default());
    for part in [
        "as many URLs as come from the command line",
        "none, direct",
        "no deadline",
        "on standard output",
        "certificates are not checked",
    ] {
        assert!(words.contains(part), "{words} lacks {part}");
    }
}
