use super::*;
use crate::args::{Command, RunArgs};
use std::io;
use std::path::Path;

/// What comes of a command line, with these variables, where `longhaul.toml` holds this text.
fn settled(line: &str, variables: &[(&str, &str)], file: &str) -> Result<Settled, Refusal> {
    let words = ["longhaul"].into_iter().chain(line.split_whitespace());
    let variables =
        Variables::new(variables.iter().map(|(name, value)| (name.into(), value.into())));
    let read = |path: &Path| match path.to_str() {
        Some("longhaul.toml") if !file.is_empty() => Ok(file.to_owned()),
        Some("/home/anna/.config/longhaul/longhaul.toml") => Ok("total = 11".to_owned()),
        Some("/etc/xdg/longhaul/longhaul.toml") => Ok("total = 12".to_owned()),
        Some("other.toml") => Ok("total = 13".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    settle(words.map(OsString::from).collect(), &variables, Read(&read))
}

fn run(line: &str, variables: &[(&str, &str)], file: &str) -> RunArgs {
    match settled(line, variables, file) {
        Ok(Settled::Command(cli, _)) => match cli.command {
            Command::Run(args) => *args,
            _ => panic!("{line}"),
        },
        other => panic!("{line}: {other:?}"),
    }
}

/// What `--print-config` says.
fn printed(line: &str, variables: &[(&str, &str)], file: &str) -> String {
    match settled(&format!("{line} --print-config"), variables, file) {
        Ok(Settled::Print(text, _)) => text,
        other => panic!("{line}: {other:?}"),
    }
}

/// The line that a mistake is told with.
fn mistake(line: &str, variables: &[(&str, &str)], file: &str) -> String {
    let usage = match settled(line, variables, file) {
        Err(Refusal::Usage(usage)) => usage,
        Err(Refusal::CommandLine(error)) => UsageError::from_clap(&error).unwrap(),
        Ok(_) => return "no mistake".to_owned(),
    };
    usage.to_string().trim_start_matches("longhaul: error: ").to_owned()
}

/// The key's line of a printout, with single spaces.
fn line_of(text: &str, key: &str) -> String {
    let is_its = |line: &&str| {
        let line = line.trim_start_matches("# ");
        line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', ':']))
    };
    let line = text.lines().find(is_its).unwrap_or_else(|| panic!("{key}: {text}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn catalogue() -> Catalogue {
    Catalogue::of(&flags::with_opposites(definition()))
}

/// A value that this flag takes.
fn example(command: &str, flag: &flags::Flag) -> &'static str {
    match (command, flag.key.as_str(), flag.placeholder.as_str()) {
        (_, "workers" | "seed" | "simulate", _) => "7",
        (_, "rotate", _) => "host",
        (_, "session-per", _) => "url",
        (_, "jitter", _) => "equal",
        (_, "forcelist" | "block-status", _) => "429,500-504",
        (_, "methods", _) => "GET,PUT",
        (_, "source-address", _) => "192.0.2.1",
        (_, "header" | "proxy-header", _) => "X-A: b",
        (_, "resolve", _) => "a.test:10.0.0.1",
        (_, "request", _) => "PUT",
        (_, "latency", _) => "0.5,2,9",
        (_, "stop-on-failures", _) => "50%/200",
        (_, "tls-min" | "tls-max", _) => "1.3",
        (_, "failure-rate", _) => "2%",
        (_, "bandwidth", _) => "100M",
        (_, _, "TIME") => "22:00",
        (_, _, "SIZE") => "10K",
        (_, _, "N/s") => "5/s",
        (_, _, "S" | "S|none") => "90",
        _ => "3",
    }
}

/// How a flag is given in a file and in a variable.
fn written(command: &str, flag: &flags::Flag) -> (String, String) {
    let value = example(command, flag);
    match flag.kind {
        flags::Kind::Switch => ("true".to_owned(), "yes".to_owned()),
        flags::Kind::Count => ("2".to_owned(), "2".to_owned()),
        _ => (format!("'{value}'"), value.to_owned()),
    }
}

#[test]
fn every_flag_has_its_key_its_variable_and_its_line() {
    let mut seen = 0;
    for section in &catalogue().sections {
        let name = &section.name;
        let shown = |variables: &[(String, String)], file: &str| {
            let variables: Vec<(&str, &str)> =
                variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            printed(name, &variables, file)
        };
        // A switch and its opposite cannot be given at once.
        let is_second =
            |flag: &&flags::Flag| flag.has_visible_opposite && flag.key.starts_with("no-");
        let (second, first): (Vec<_>, Vec<_>) = section.flags.iter().partition(is_second);
        let default = shown(&[], "");
        for flags in [first, second] {
            let (mut own, mut shared) = (format!("[{name}]\n"), String::new());
            let (mut of_command, mut of_all) = (Vec::new(), Vec::new());
            for flag in &flags {
                let (toml, variable) = written(name, flag);
                own += &format!("{} = {toml}\n", flag.key);
                of_command.push((flag.variable_of(name), variable.clone()));
                if flag.shared {
                    shared += &format!("{} = {toml}\n", flag.key);
                    of_all.push((flag.variable(), variable));
                }
            }
            let all =
                [shown(&[], &own), shown(&[], &shared), shown(&of_command, ""), shown(&of_all, "")];
            for flag in &flags {
                seen += 1;
                let key = &flag.key;
                let [own, shared, of_command, of_all] =
                    all.each_ref().map(|text| line_of(text, key));
                assert!(own.contains(" # longhaul.toml:"), "{name}: {own}");
                let variable = format!(" # {}", flag.variable_of(name));
                assert!(of_command.contains(&variable), "{name}: {of_command}");
                assert!(line_of(&default, key).ends_with("# default"), "{name}: {default}");
                if flag.shared {
                    assert!(shared.contains(" # longhaul.toml:"), "{name}: {shared}");
                    assert!(
                        of_all.contains(&format!(" # {}", flag.variable())),
                        "{name}: {of_all}"
                    );
                }
            }
        }
    }
    assert!(seen > 150, "{seen}");
}

#[test]
fn what_means_something_else_does_not_reach_it() {
    let file = "output = 'a'\nworkers = 24";
    assert!(line_of(&printed("run", &[], file), "output").ends_with("# longhaul.toml:1"));
    for command in ["get", "demo"] {
        assert!(line_of(&printed(command, &[], file), "output").ends_with("# default"));
    }
    assert!(line_of(&printed("plan", &[], file), "workers").ends_with("# longhaul.toml:2"));
    assert!(line_of(&printed("check", &[], file), "workers").ends_with("# default"));
    let variables = [("LONGHAUL_OUTPUT", "a"), ("LONGHAUL_GET_OUTPUT", "b")];
    assert_eq!(
        line_of(&printed("run", &variables, ""), "output"),
        "output = \"a\" # LONGHAUL_OUTPUT"
    );
    assert_eq!(
        line_of(&printed("get", &variables, ""), "output"),
        "output = \"b\" # LONGHAUL_GET_OUTPUT"
    );
}

/// The flags that a value outside of any section does not reach, since the command means something
/// else by them. A new one is a decision: give the flags one text, or another line here.
#[test]
fn flags_that_mean_something_else() {
    let mut own = Vec::new();
    for section in catalogue().sections {
        let flags = section.flags.iter().filter(|flag| !flag.shared);
        own.extend(flags.map(|flag| format!("{} {}", section.name, flag.key)));
    }
    let page = include_str!("../../../../docs/configuration.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `["));
    let mut documented: Vec<String> = rows
        .flat_map(|row| {
            let (command, rest) = row.split_once("]` | ").unwrap();
            let keys = rest.split(" | ").next().unwrap().split(", ");
            keys.map(move |key| format!("{command} {}", key.trim_matches('`')))
        })
        .collect();
    own.sort();
    documented.sort();
    assert_eq!(own, documented);
}

#[test]
fn names_are_unambiguous() {
    let catalogue = catalogue();
    let mut variables = std::collections::BTreeMap::<String, String>::new();
    for section in &catalogue.sections {
        assert!(catalogue.commands_with(&section.name).is_empty(), "{} is both", section.name);
        for flag in &section.flags {
            assert!(!["profile", "inherits"].contains(&flag.key.as_str()), "{}", flag.key);
            assert!(!flag.default.is_empty() || flag.kind == flags::Kind::Switch, "{}", flag.key);
            for rival in &flag.rivals {
                assert!(!catalogue.commands_with(rival).is_empty(), "{rival} is no flag");
            }
            for (name, owner) in [
                (flag.variable(), flag.key.clone()),
                (flag.variable_of(&section.name), format!("{} {}", section.name, flag.key)),
            ] {
                let before = variables.insert(name.clone(), owner.clone());
                assert!(before.is_none_or(|before| before == owner), "{name} is two flags");
            }
        }
    }
    flags::with_opposites(definition()).debug_assert();
}

#[test]
fn flag_before_variable_before_profile_before_file_before_default() {
    let file = "total = 1\n[run]\nconnect = 1\n[profile.mine]\ntotal = 2\nconnect = 2\nread = 2\n\
                [profile.mine.run]\nread = 3\nstatus = 3\n";
    let variables =
        [("LONGHAUL_TOTAL", "4"), ("LONGHAUL_RUN_STATUS", "5"), ("LONGHAUL_STATUS", "6")];
    let text = printed("run --profile mine --redirect 7", &variables, file);
    for (key, wanted) in [
        ("total", "total = 4 # LONGHAUL_TOTAL"),
        ("connect", "connect = 2 # profile mine, longhaul.toml:6"),
        ("read", "read = 3 # profile mine, longhaul.toml:9"),
        ("status", "status = 5 # LONGHAUL_RUN_STATUS"),
        ("redirect", "redirect = 7 # flag"),
    ] {
        assert_eq!(line_of(&text, key), wanted);
    }
    assert!(line_of(&text, "other").starts_with("# other: none"), "{text}");
    let text = printed("run", &[], file);
    assert_eq!(line_of(&text, "connect"), "connect = 1 # longhaul.toml:3");
    assert_eq!(line_of(&text, "total"), "total = 1 # longhaul.toml:1");
    let args = run("run --total 8", &variables, file);
    assert_eq!(args.policy.retries.total, "8".parse().ok());
    assert_eq!(args.policy.retries.status, "5".parse().ok());
    assert_eq!(args.settings.as_deref(), None);
}

#[test]
fn a_higher_list_replaces_a_lower_one() {
    let file = "header = ['A: 1', 'B: 2']\nproxy = ['a:1', 'b:2']\nproxies = 'p.txt'";
    let names = |args: &RunArgs| -> Vec<String> {
        args.headers.iter().map(|header| header.name.clone()).collect()
    };
    assert_eq!(names(&run("run", &[], file)), ["A", "B"]);
    assert_eq!(names(&run("run -H C:3", &[], file)), ["C"]);
    let args = run("run", &[("LONGHAUL_HEADER", "D: 4\n\n E: 5, 6\n")], file);
    assert_eq!(names(&args), ["D", "E"]);
    // Which proxies there are is one question, however it is answered.
    let args = run("run -x c:3", &[], file);
    assert_eq!((args.proxy_list.proxies, args.proxy_list.proxy_file), (vec!["c:3".into()], None));
    let args = run("run --no-proxies", &[], file);
    assert_eq!(args.proxy_list.proxies, ["a:1", "b:2"]);
    assert_eq!(args.proxy_list.proxy_file, None);
}

#[test]
fn what_contradicts_a_higher_source_is_overruled() {
    let file = "user = 'anna:secret'\nverbose = 1\nno-fresh-exit = true\nnetrc-file = 'n'\n\
                insecure = true\nsync = true\nrate = '5/s'\nno-env = true";
    let args = run(
        "run --bearer t -q --fresh-exit --no-netrc --cacert ca.pem --no-sync --no-rate --env",
        &[],
        file,
    );
    assert!(args.credentials.user.is_none() && args.credentials.bearer.is_some());
    assert!(args.voice.quiet && args.voice.verbose == 0);
    assert!(args.proxy_use.fresh_exit && !args.proxy_use.no_fresh_exit);
    assert!(args.credentials.no_netrc && args.credentials.netrc_file.is_none());
    assert!(!args.connection.insecure && !args.sync && args.pace.rate.is_none() && !args.no_env);
    let args = run("run", &[("LONGHAUL_SYNC", "no"), ("LONGHAUL_RATE", "")], file);
    assert!(!args.sync && args.pace.rate.is_some() && args.no_env);
    let args = run("run --fresh-exit", &[("LONGHAUL_FRESH_EXIT", "0")], "");
    assert!(args.proxy_use.fresh_exit && !args.proxy_use.no_fresh_exit);
    let args = run("run", &[("LONGHAUL_FRESH_EXIT", "0")], "fresh-exit = true");
    assert!(!args.proxy_use.fresh_exit && args.proxy_use.no_fresh_exit);
}

#[test]
fn values_of_toml_and_strings_are_read_alike() {
    for (one, other) in [
        ("workers = 24", "workers = '24'"),
        ("backoff-factor = 0.5", "backoff-factor = '500ms'"),
        ("deadline = 90", "deadline = '1m30s'"),
        ("start-at = 22:00:00", "start-at = '22:00'"),
        ("start-at = 2027-01-31T22:00:00+01:00", "start-at = '2027-01-31T21:00:00Z'"),
        ("forcelist = [429, '500-504']", "forcelist = '429,500-504'"),
        ("header = 'A: 1'", "header = ['A: 1']"),
        ("verbose = true", "verbose = 1"),
        ("workers = 0x10", "workers = 1_6"),
        ("run.passes = 2", "[run]\npasses = 2"),
        ("run = { passes = 2 }", "passes = 2"),
        ("\u{feff}passes = 2\r\n", "passes = 2"),
    ] {
        let both = [one, other].map(|file| format!("{:?}", run("run", &[], file)));
        assert_eq!(both[0], both[1], "{one}");
        assert_ne!(both[0], format!("{:?}", run("run", &[], "")), "{one}");
    }
}

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
    let told =
        |place: &str| sources.locate(UsageError::new(place, "is wrong; mend it")).to_string();
    assert_eq!(told("--rotate"), "longhaul: error: longhaul.toml:2:10: rotate: is wrong; mend it");
    assert_eq!(told("-q"), "longhaul: error: longhaul.toml:3:9: quiet: is wrong; mend it");
    assert_eq!(told("--total"), "longhaul: error: --total: is wrong; mend it");
    assert_eq!(
        told("--rotate x"),
        "longhaul: error: longhaul.toml:2:10: rotate x: is wrong; mend it"
    );
    assert_eq!(told("urls.txt:3"), "longhaul: error: urls.txt:3: is wrong; mend it");
}

#[test]
fn the_first_file_that_there_is() {
    let total = |line: &str, variables: &[(&str, &str)], file: &str| {
        line_of(&printed(line, variables, file), "total")
    };
    let home = ("HOME", "/home/anna");
    assert!(total("run", &[], "").starts_with("# total: 4"));
    assert_eq!(
        total("run", &[home], ""),
        "total = 11 # /home/anna/.config/longhaul/longhaul.toml:1"
    );
    let xdg = ("XDG_CONFIG_HOME", "/etc/xdg");
    assert_eq!(total("run", &[home, xdg], ""), "total = 12 # /etc/xdg/longhaul/longhaul.toml:1");
    // The base directories ask for absolute paths, and want others to be ignored.
    assert!(total("run", &[home, ("XDG_CONFIG_HOME", "xdg")], "").contains("/home/anna"));
    let here = "total = 10";
    assert_eq!(total("run", &[home], here), "total = 10 # longhaul.toml:1");
    let variable = ("LONGHAUL_CONFIG", "other.toml");
    assert_eq!(total("run", &[home, variable], here), "total = 13 # other.toml:1");
    assert_eq!(
        total("run --config longhaul.toml", &[variable], here),
        "total = 10 # longhaul.toml:1"
    );
    assert!(total("run --no-config", &[home, variable], here).starts_with("# total: 4"));
    let none = ("LONGHAUL_NO_CONFIG", "1");
    assert!(total("run", &[none, home], here).starts_with("# total: 4"));
    assert_eq!(total("run --config other.toml", &[none], here), "total = 13 # other.toml:1");
}

#[test]
fn profiles_come_with_the_program_and_are_changed_key_by_key() {
    for name in ["night", "wide"] {
        let text = printed(&format!("run --profile {name}"), &[], "");
        assert!(
            line_of(&text, "total").ends_with(&format!("# profile {name} (built in)")),
            "{text}"
        );
        assert!(printed("get --profile night", &[], "").contains("built in"));
    }
    let wide = run("run --profile wide", &[], "").policy;
    let file = "[profile.night]\ntotal = 9\n[profile.mine]\ninherits = 'night'\nread = 1\n";
    let text = printed("run", &[("LONGHAUL_PROFILE", "mine")], file);
    assert_eq!(
        line_of(&text, "total"),
        "total = 9 # profile mine, longhaul.toml:2".replace("mine", "night")
    );
    assert_eq!(line_of(&text, "read"), "read = 1 # profile mine, longhaul.toml:5");
    assert_eq!(line_of(&text, "connect"), "connect = 6 # profile night (built in)");
    // What the profile is called like is the library's policy.
    let resolved = crate::policy::Policy::resolve(&wide, false).unwrap();
    assert_eq!(resolved.retry, longhaul::Retry::wide());
}

#[test]
fn the_printout_is_a_file_that_says_the_same() {
    let file = "workers = 24\nheader = ['A: \"1\"', 'B: 2']\nforcelist = [429]\nbackoff-factor = 0.5\n\
                verbose = 2\nno-netrc = true\nsync = false\nblock-body = \"a\\tb\\nc'd\\\"\\u007f\"";
    let text = printed("run -o out.jsonl --jitter full", &[("LONGHAUL_RATE", "300/min")], file);
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.rsplit_once("  # ").map_or(line, |(value, _)| value).to_owned())
            .collect()
    };
    let again = printed("run", &[], &text);
    assert_eq!(values(&again), values(&text));
    assert!(values(&again).iter().any(|line| line.starts_with("rate = \"300/min\"")), "{again}");
    let debug = |args: RunArgs| format!("{args:?}");
    let before = run("run -o out.jsonl --jitter full", &[("LONGHAUL_RATE", "300/min")], file);
    assert_eq!(debug(run("run", &[], &text)), debug(before));
}

#[test]
fn no_secret_is_shown_and_what_is_hidden_is_no_value() {
    let file = "user = 'anna:hunter2'\nproxy = ['http://u:hunter2@h:1', 'h:2:u:hunter2', 'c:3']\n\
                header = ['Authorization: Basic hunter2', 'X-Api-Key: hunter2', 'Cookie: a=hunter2']\n\
                proxy-header = 'X-Session: hunter2'\nexit-check = 'http://u:hunter2@e/'";
    let text = printed("run --bearer hunter2", &[], file);
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(line_of(&text, "bearer"), "# bearer = \"***\" # flag; not all of it may be shown");
    assert!(line_of(&text, "proxy").contains("\"http://***@h:1\""), "{text}");
    // Given back as a file, the stars are nobody's password.
    assert!(run("run", &[], &text).credentials.bearer.is_none());
    let found = settled("run", &[("LONGHAUL_USER", "anna:hunter2")], file);
    let Ok(Settled::Command(_, sources)) = found else { panic!() };
    assert!(!format!("{sources:?}").contains("hunter2"), "{sources:?}");
    for wrong in ["user = ['hunter2']", "header = 'hunter2'"] {
        let line = mistake("run http://a/", &[], wrong);
        assert!(line.starts_with("longhaul.toml:1:") && !line.contains("hunter2"), "{line}");
    }
}

#[test]
fn variables_that_nobody_has_are_told() {
    let all = [
        ("LONGHAUL_PRE_HOST", "4"),
        ("LONGHAUL_XYZZY", "1"),
        ("LONGHAUL_PASSWORD", "x"),
        ("LONGHAUL_KILLS", "200"),
        ("LONGHAUL_GET_OUTPUT", "a"),
        ("LONGHAULER", "1"),
    ];
    let Ok(Settled::Command(_, sources)) = settled("run", &all, "") else { panic!() };
    assert_eq!(
        sources.warnings,
        [
            "LONGHAUL_PRE_HOST: no flag has this variable; did you mean LONGHAUL_PER_HOST?",
            "LONGHAUL_XYZZY: no flag has this variable; docs/configuration.md tells how they are called",
        ]
    );
}

#[test]
fn the_example_of_the_page_is_a_file() {
    let page = include_str!("../../../../docs/configuration.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    for line in ["run", "run --profile night", "run --profile shop", "get", "plan", "check", "demo"]
    {
        assert!(printed(line, &[], example).contains("file: longhaul.toml"), "{line}");
    }
}
