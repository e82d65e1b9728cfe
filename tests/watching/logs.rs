//! Log records: their targets stand on the page, and what is heard is what was asked for.

use longhaul::lab::{Origin, Reply};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::job::Job;
use super::page::table;

const PAGE: &str = include_str!("../../docs/logging.md");

/// The levels of each target, as the page has them.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    table(PAGE, "| target | levels | what it tells |")
        .iter()
        .map(|row| {
            let levels = row[1].split(", ").map(str::to_owned).collect();
            (row[0].trim_matches('`').to_owned(), levels)
        })
        .collect()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The targets and levels of each `log::…!` of this text.
fn calls(text: &str) -> Vec<Result<(String, String), String>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("log::") {
        let rest = &text[at + "log::".len()..];
        let level = &rest[..rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len())];
        if !rest[level.len()..].starts_with("!(")
            || !["error", "warn", "info", "debug", "trace", "log"].contains(&level)
        {
            continue;
        }
        let arguments = rest[level.len() + 2..].trim_start();
        let target = arguments.strip_prefix("target: \"").and_then(|rest| rest.split('"').next());
        found.push(match target {
            Some(target) => Ok((target.to_owned(), level.to_owned())),
            None => Err(arguments.lines().next().unwrap_or_default().to_owned()),
        });
    }
    found
}

#[test]
fn every_record_has_a_target_of_the_page() {
    let documented = documented();
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    for file in files {
        for call in calls(&fs::read_to_string(&file).unwrap()) {
            let (target, level) = call.unwrap_or_else(|call| {
                panic!("{}: a record without a target: {call}", file.display())
            });
            let levels = documented.get(&target).unwrap_or_else(|| {
                panic!("{}: {target} is not in docs/logging.md", file.display())
            });
            let used = used.entry(target.clone()).or_default();
            if level == "log" {
                // A level that is decided on the way: that of the page, whatever it is.
                used.extend(levels.iter().cloned());
            } else {
                assert!(levels.contains(&level), "{}: {target} at {level}", file.display());
                used.insert(level);
            }
        }
    }
    assert_eq!(used, documented, "the page has what is never logged");
}

#[test]
fn calls_are_found_wherever_they_stand() {
    let text = "log::warn!(\n  target: \"longhaul::a\",\n \"x\");\nlog::info!(\"y {}\", 1);\n\
                log::log!(target: \"longhaul::b\", level, \"z\"); log::Level::Info; log::max_level()";
    let found = calls(text);
    assert_eq!(found[0], Ok(("longhaul::a".to_owned(), "warn".to_owned())));
    assert_eq!(found[1], Err("\"y {}\", 1);".to_owned()));
    assert_eq!(found[2], Ok(("longhaul::b".to_owned(), "log".to_owned())));
    assert_eq!(found.len(), 3);
}

#[test]
fn the_flags_and_the_variable_decide_what_is_heard() {
    let origin = Origin::builder().handler(|_| Reply::ok("page")).start().unwrap();
    let with_user = origin.url("/page").replace("http://", "http://anna:hunter2@");
    let job = Job::new([with_user]);
    for (flags, variable, attempts, runs, libraries) in [
        (&["-q"][..], None, false, false, false),
        (&[], None, false, false, false),
        (&["-v"], None, false, true, false),
        (&["-vv"], None, true, true, false),
        (&["-vvv"], None, true, true, true),
        (&["-vv"], Some("error"), false, false, false),
        (&["-q"], Some("longhaul::attempt=debug"), true, false, false),
        (&[], Some("debug,longhaul::run=off"), true, false, true),
    ] {
        let mut command = job.over_list(flags);
        if let Some(variable) = variable {
            command.env("RUST_LOG", variable);
        }
        let ended = job.end(command);
        ended.assert_code(0);
        let heard = |target: &str| ended.stderr.contains(&format!("{target}] "));
        let case = format!("{flags:?} {variable:?}: {}", ended.stderr);
        assert_eq!(heard(" DEBUG longhaul::attempt"), attempts, "{case}");
        assert_eq!(heard(" INFO  longhaul::run"), runs, "{case}");
        assert_eq!(ended.stderr.contains(" ureq"), libraries, "{case}");
        assert!(!ended.stderr.contains("hunter2"), "{case}");
        fs::remove_file(job.path("results.jsonl")).unwrap();
    }
}
