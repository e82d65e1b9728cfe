//! That every flag is a key and a variable.

use super::*;
use crate::config::flags::{Flag, Kind};
use std::collections::BTreeSet;

/// A value that this flag takes.
fn example(section: &Section, flag: &Flag) -> String {
    let tried = "7;429;22:00;5/s;50%/200;2%;1.3;X-A: b;192.0.2.1;a.test:10.0.0.1;GET;a.test=5/s;id";
    let command = definition();
    let command = command.find_subcommand(&section.name).unwrap();
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(&flag.key)).unwrap();
    let own = arg.get_possible_values().into_iter().map(|value| value.get_name().to_owned());
    let takes =
        |value: &String| flag.check(&value::Setting::Values(vec![OsString::from(value)])).is_ok();
    let mut all = own.chain(tried.split(';').map(ToOwned::to_owned));
    all.find(takes).unwrap_or_else(|| panic!("--{} takes none of these; add one", flag.key))
}

/// How a flag is given in a file and in a variable.
fn written(section: &Section, flag: &Flag) -> (String, String) {
    match flag.kind {
        Kind::Switch => ("true".to_owned(), "yes".to_owned()),
        Kind::Count => ("2".to_owned(), "2".to_owned()),
        _ => {
            let value = example(section, flag);
            (format!("'{value}'"), value)
        }
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
        let is_second = |flag: &&Flag| flag.has_visible_opposite && flag.key.starts_with("no-");
        let (second, first): (Vec<_>, Vec<_>) = section.flags.iter().partition(is_second);
        let default = shown(&[], "");
        for flags in [first, second] {
            let (mut own, mut shared) = (format!("[{name}]\n"), String::new());
            let (mut of_command, mut of_all) = (Vec::new(), Vec::new());
            for flag in &flags {
                let (toml, variable) = written(section, flag);
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
    let page = include_str!("../../../../../docs/configuration.md");
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
            assert!(!flag.default.is_empty() || flag.kind == Kind::Switch, "{}", flag.key);
            for rival in &flag.rivals {
                let is_known = rival == "URL" || !catalogue.commands_with(rival).is_empty();
                assert!(is_known, "{rival} is no flag");
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
    definition::with_opposites(definition()).debug_assert();
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

/// What nobody thought of here is a key from its first day.
#[test]
fn a_new_flag_needs_no_line() {
    use clap::{Arg, ArgAction};
    let run = clap::Command::new("run").args([
        Arg::new("tally").long("tally").value_name("FILE").help("A file. Default: none."),
        Arg::new("few").long("few").value_name("LIST").help("Some. Default: none."),
        Arg::new("metrics").long("metrics").value_name("ADDRESS").num_args(0..=1),
        Arg::new("alone").long("alone").action(ArgAction::SetTrue).conflicts_with("tally"),
    ]);
    let command = definition::with_opposites(clap::Command::new("longhaul").subcommand(run));
    let catalogue = Catalogue::of(&command);
    let file = "tally = 'a.tsv'\nfew = [1, 2]\nmetrics = true\nalone = false";
    let file = File::parse(file, Some("f"), &catalogue).unwrap();
    let section = catalogue.section("run").unwrap();
    let line = |words: &[&str]| -> Vec<String> {
        let words = [&["longhaul", "run"], words].concat();
        let matches = command.clone().try_get_matches_from(&words).unwrap();
        let matches = matches.subcommand_matches("run").unwrap();
        let typed = by_hand(section, matches);
        let shared = Layer { table: &file.document.shared, is_shared: true };
        let typed = Layer { table: &typed, is_shared: false };
        let chosen = layers::choose(section, typed, &[shared], BTreeSet::new()).unwrap();
        let line = with_chosen(words.iter().map(OsString::from).collect(), section, &chosen);
        line.into_iter().skip(2).map(|word| word.into_string().unwrap()).collect()
    };
    assert_eq!(line(&[]), ["--tally=a.tsv", "--few=1,2", "--metrics"]);
    assert_eq!(line(&["--alone"]), ["--few=1,2", "--metrics", "--alone"]);
    assert_eq!(line(&["--no-few", "--tally", "b"]), ["--metrics", "--no-few", "--tally", "b"]);
    assert_eq!(section.flag("tally").unwrap().default, "none");
}
