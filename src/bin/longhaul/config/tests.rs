use super::*;
use crate::args::{Command, RunArgs};
use std::io;
use std::path::Path;

mod flags;
mod mistakes;
mod printed;

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
    Catalogue::of(&definition::with_opposites(definition()))
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
    // So is which URLs there are.
    let input = "input = 'urls.txt'";
    assert_eq!(run("run http://a/", &[], input).input, None);
    assert!(run("run http://a/ -i b", &[], input).input.is_some_and(|path| path == Path::new("b")));
    assert!(run("run", &[], input).input.is_some());
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
fn the_example_of_the_page_is_a_file() {
    let page = include_str!("../../../../docs/configuration.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    for line in ["run", "run --profile night", "run --profile shop", "get", "plan", "check", "demo"]
    {
        assert!(printed(line, &[], example).contains("file: longhaul.toml"), "{line}");
    }
}
