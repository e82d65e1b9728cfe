//! What is told of mistakes, and where.

use super::*;

#[test]
fn mistakes_have_their_place_and_a_remedy() {
    for (file, wanted) in [
        (
            "per-hots = 4",
            "longhaul.toml:1:1: per-hots: there is no such key; did you mean per-host?",
        ),
        (
            "per_host = 4",
            "longhaul.toml:1:1: per_host: there is no such key; did you mean per-host?",
        ),
        ("xyzzy = 4", "longhaul.toml:1:1: xyzzy: there is no such key; see"),
        (
            "\n[chekc]\n",
            "longhaul.toml:2:2: chekc: there is no such section; did you mean [check]?",
        ),
        ("[xyzzy]", "longhaul.toml:1:2: xyzzy: there is no such section; there are run, get"),
        ("run = 1", "longhaul.toml:1:1: run: is a section and no key; write [run]"),
        ("profile = 'night'", "longhaul.toml:1:11: profile: is a table; write [profile.night]"),
        (
            "profile.night = 1",
            "longhaul.toml:1:9: night: is no profile; write it as [profile.NAME]",
        ),
        (
            "[get]\nper-host = 4",
            "longhaul.toml:2:1: per-host: `longhaul get` has no such flag; put it where it is for run, plan",
        ),
        (
            "json = true",
            "longhaul.toml:1:1: json: means something else in each command; put it into [get] or [plan] or [check]",
        ),
        (
            "config = 'a'",
            "longhaul.toml:1:1: config: says where values come from; give it on the command line",
        ),
        (
            "workers = 'many'",
            "longhaul.toml:1:11: workers: 'many' is not a number of workers; give",
        ),
        ("workers = 0", "longhaul.toml:1:11: workers: '0' is not a number of workers; give"),
        ("read-timeout = -1", "longhaul.toml:1:16: read-timeout: "),
        (
            "rotate = 'hots'",
            "longhaul.toml:1:10: rotate: there is no 'hots'; did you mean host? There are request, ",
        ),
        (
            "rotate = 'daily'",
            "longhaul.toml:1:10: rotate: there is no 'daily'; give one of request, ",
        ),
        (
            "workers = true",
            "longhaul.toml:1:11: workers: true is no value of it; give a value (N|auto)",
        ),
        (
            "workers = [1, 2]",
            "longhaul.toml:1:11: workers: takes one value; give a value (N|auto) alone",
        ),
        (
            "header = [['a']]",
            "longhaul.toml:1:10: header: holds what is no value; give each as a value (NAME: VALUE)",
        ),
        (
            "sync = 'yes'",
            "longhaul.toml:1:8: sync: 'yes' is neither true nor false; give one of them",
        ),
        (
            "verbose = -1",
            "longhaul.toml:1:11: verbose: '-1' is not a number of times; give 0 to 255",
        ),
        ("# ä\nü = 1\n", "longhaul.toml:2:1: "),
        ("total = 1\ntotal = 2", "longhaul.toml:2:1: duplicate key"),
        ("total = ", "longhaul.toml:1:9: "),
        (
            "sync = true\n[profile.a]\nper-hots = 1",
            "longhaul.toml:3:1: per-hots: there is no such key",
        ),
        (
            "[profile.a]\ninherit = 'b'",
            "longhaul.toml:2:1: inherit: there is no such key; did you mean inherits?",
        ),
        (
            "[profile.a]\ninherits = 1",
            "longhaul.toml:2:12: inherits: takes the name of a profile, in quotes",
        ),
        (
            "[profile.a]\ninherits = 'nigth'",
            "longhaul.toml:2:12: inherits: there is no profile 'nigth'; did you mean night?",
        ),
        (
            "[profile.a]\ninherits = 'b'\n[profile.b]\ninherits = 'a'",
            "longhaul.toml:4:12: inherits: profile a inherits itself by way of a, b; end it there",
        ),
        (
            "fresh-exit = true\nno-fresh-exit = true",
            "longhaul.toml:1:14: fresh-exit: contradicts no-fresh-exit; leave",
        ),
    ] {
        let line = mistake("run http://a/", &[], file);
        assert!(line.starts_with(wanted), "{file}: {line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
    for (line, variables, wanted) in [
        ("run", &[("LONGHAUL_WORKERS", "many")][..], "LONGHAUL_WORKERS: 'many' is not a number"),
        (
            "run",
            &[("LONGHAUL_SYNC", "maybe")],
            "LONGHAUL_SYNC: 'maybe' is neither true nor false; give 1 or 0",
        ),
        (
            "run",
            &[("LONGHAUL_PROFILE", "nigth")],
            "LONGHAUL_PROFILE: there is no profile 'nigth'; did you mean night?",
        ),
        (
            "run --profile xyzzy",
            &[],
            "--profile: there is no profile 'xyzzy'; give one of night, wide",
        ),
        ("run --config gone.toml", &[], "--config: gone.toml cannot be read: "),
        ("run", &[("LONGHAUL_CONFIG", "gone.toml")], "LONGHAUL_CONFIG: gone.toml cannot be read: "),
        (
            "run --config a --no-config",
            &[],
            "--config: contradicts --no-config; leave one of them out",
        ),
        ("chekc", &[], "there is no command 'chekc'; did you mean check?"),
        ("run --nope", &[], "--nope: there is no such flag; "),
        (
            "--profile night run",
            &[],
            "--profile: there is no such flag; did you mean `longhaul run --profile`?",
        ),
        ("get", &[], "URL: is missing; see `longhaul get --help`"),
    ] {
        let told = mistake(line, variables, "");
        assert!(told.starts_with(wanted), "{line}: {told}");
    }
}

#[test]
fn a_mistake_that_only_the_command_finds_is_told_with_its_place() {
    let found = settled("run http://a/", &[], "\nrotate = 'host'\nquiet = true");
    let Ok(Settled::Command(_, sources)) = found else { panic!("{found:?}") };
    let told = |place: &str| {
        let error = sources.locate(UsageError::new(place, "is wrong; mend it")).to_string();
        error.trim_start_matches("longhaul: error: ").to_owned()
    };
    let left_out = "is wrong; mend it; or leave it out with";
    assert_eq!(told("--rotate"), format!("longhaul.toml:2:10: rotate: {left_out} --no-rotate"));
    assert_eq!(told("--rotate x"), format!("longhaul.toml:2:10: rotate x: {left_out} --no-rotate"));
    assert_eq!(told("-q"), format!("longhaul.toml:3:9: quiet: {left_out} --no-quiet"));
    assert_eq!(told("--total"), "--total: is wrong; mend it");
    assert_eq!(told("urls.txt:3"), "urls.txt:3: is wrong; mend it");
}

proptest::proptest! {
    /// Whatever stands in a file, it is read or refused, in one line and without a panic.
    #[test]
    fn any_file_is_read_or_refused(
        words in proptest::collection::vec(proptest::sample::select(vec![
            "total", "run", "profile", "night", "inherits", "header", "no-fresh-exit", "per-hots", ".",
            "=", "[", "]", "{", "}", ",", "\n", "\r\n", " ", "#", "'", "\"", "\\u00", "ä", "\u{0}", "1",
            "-1", "0x1F", "1e9", "nan", "true", "false", "22:00:00", "2027-01-31", "'a'", "\"X: 1\"",
        ]), 0..24),
    ) {
        thread_local!(static CATALOGUE: Catalogue = catalogue());
        let text = words.concat();
        CATALOGUE.with(|catalogue| {
            if let Err(error) = File::parse(&text, Some("f"), catalogue) {
                let line = error.to_string();
                assert_eq!(line.lines().count(), 1, "{line}");
                assert!(line.starts_with("longhaul: error: f:"), "{line}");
            }
        });
    }
}
