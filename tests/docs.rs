//! The documents say what the code does.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a document that is not as it should be fails the test"
)]

#[path = "support/page.rs"]
mod page;

use longhaul::error::{Fault, Phase};
use longhaul::time::SimClock;
use longhaul::transport::{Play, Script};
use longhaul::{ErrorKind, ProxyPool, ProxyUrl, Retry, Session};
use page::table;
use std::sync::Arc;

const ERRORS: &str = include_str!("../docs/errors.md");

#[test]
fn the_table_of_errors_is_that_of_the_code() {
    let rows = table(ERRORS, "| kind | in a requests log");
    let documented: Vec<(String, &str)> =
        rows.iter().map(|row| (row[0].trim_matches('`').to_owned(), row[1])).collect();
    let coded: Vec<(String, &str)> =
        ErrorKind::ALL.iter().map(|kind| (kind.name().to_owned(), kind.requests_name())).collect();
    for row in &coded {
        assert!(documented.contains(row), "docs/errors.md lacks or contradicts {row:?}");
    }
    assert_eq!(documented.len(), coded.len(), "docs/errors.md has rows that the code has not");
}

const PHASES: [Phase; 8] = [
    Phase::Prepare,
    Phase::Dns,
    Phase::Connect,
    Phase::Proxy,
    Phase::Tls,
    Phase::Send,
    Phase::Headers,
    Phase::Body,
];

/// A row of the table of phases and faults.
struct Place {
    kind: ErrorKind,
    phases: Vec<Phase>,
    faults: Vec<Fault>,
    class: &'static str,
}

fn places() -> Vec<Place> {
    /// Those of a cell, which has to name nothing else.
    fn named<T: Copy + std::fmt::Display>(all: &[T], cell: &str) -> Vec<T> {
        let words: Vec<&str> = cell.split(", ").collect();
        let found: Vec<T> =
            all.iter().copied().filter(|one| words.contains(&&*one.to_string())).collect();
        assert!(cell == "any" || found.len() == words.len(), "{cell}");
        if cell == "any" { all.to_vec() } else { found }
    }
    table(ERRORS, "| kind | phase | fault |")
        .into_iter()
        .map(|row| Place {
            kind: kind_of(row[0]),
            phases: named(&PHASES, row[1]),
            faults: named(&[Fault::Target, Fault::Proxy, Fault::Local], row[2]),
            class: row[3],
        })
        .collect()
}

fn kind_of(cell: &str) -> ErrorKind {
    let name = cell.trim_matches('`');
    let kind = ErrorKind::ALL.iter().find(|kind| kind.name() == name);
    *kind.unwrap_or_else(|| panic!("no kind {name}"))
}

/// What an attempt that fails like this is charged to.
fn charged(kind: ErrorKind, phase: Phase) -> &'static str {
    use longhaul::policy::{Category, Outcome};
    match Outcome::of_error(kind, phase, None) {
        Outcome::Error { permanent: true, .. } => "never",
        Outcome::Error { category: Category::Connect, .. } => "connect",
        Outcome::Error { category: Category::Read, .. } => "read",
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_charged_is_what_the_policy_charges() {
    let rows = table(ERRORS, "| kind | in a requests log");
    let places = places();
    assert_eq!(rows.len(), places.len());
    for (row, place) in rows.iter().zip(places) {
        let kind = kind_of(row[0]);
        assert_eq!(place.kind, kind, "the two tables have one order");
        let mut budgets: Vec<&str> =
            place.phases.iter().map(|phase| charged(kind, *phase)).collect();
        budgets.dedup();
        assert_eq!(row[2], budgets.join(" or "), "{kind}");
    }
}

#[test]
fn a_session_does_with_each_kind_what_the_tables_say() {
    for Place { kind, phases, faults, .. } in places() {
        for phase in phases {
            let clock = Arc::new(SimClock::default());
            // A connect budget of two and a read budget of one tell the two apart.
            let retry = Retry::urllib3().total(3).connect(2).read(1);
            let plays = std::iter::repeat_with(|| Play::error(kind, phase, faults[0])).take(4);
            let script = Script::new(clock.clone(), plays);
            let transport = script.clone();
            let recipe = Session::builder().trust_env(false).clock(clock).retry(retry);
            let session = recipe.transport(move || transport.clone()).build().unwrap();
            let error = session.get("http://a.test/").send().unwrap_err();
            let facts = (error.kind(), error.phase(), error.fault());
            assert_eq!(facts, (kind, phase, faults[0]));
            let attempts = match charged(kind, phase) {
                "never" => 1,
                "read" => 2,
                _ => 3,
            };
            assert_eq!(script.attempts(), attempts, "{kind} in {phase}");
            assert_eq!(error.attempts().len(), attempts, "{kind} in {phase}");
            let timeouts = ["connect_timeout", "read_timeout", "deadline"];
            assert_eq!(error.is_timeout(), timeouts.contains(&kind.name()), "{kind}");
            assert_eq!(error.is_proxy(), faults[0] == Fault::Proxy, "{kind}");
            let before = ["prepare", "dns", "connect", "proxy", "tls"].contains(&phase.name());
            assert_eq!(error.is_unsent(), before, "{kind} in {phase}");
            assert_eq!(error.requests_name(), kind.requests_name());
        }
    }
}

#[test]
fn the_classes_of_the_table_are_those_of_a_run() {
    use longhaul::policy::Class;
    for Place { kind, class, .. } in places() {
        // These two have a response, and its status decides.
        if matches!(kind, ErrorKind::RetriesExhausted | ErrorKind::HttpStatus) {
            assert_eq!(class, "that of the response");
        } else {
            assert_eq!(class, Class::of_error(kind).name(), "{kind}");
        }
    }
}

/// Where an error is made with kind, phase and fault in one place, the table has it.
#[test]
fn what_the_source_says_of_an_error_stands_in_the_table() {
    let places = places();
    let mut seen = 0;
    for (path, text) in sources("src") {
        // What a test makes up need not happen.
        let text = text.split("#[cfg(test)]").next().unwrap();
        if path.contains("tests") {
            continue;
        }
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let flat = flat.replace("crate::error::", "").replace("crate::", "");
        let literal = |word: &str, prefix: &str| {
            let name = word.trim().strip_prefix(prefix)?;
            let name: String = name.chars().take_while(char::is_ascii_alphanumeric).collect();
            Some(name.to_ascii_lowercase())
        };
        let found = flat.split("Error::new(").skip(1).filter_map(|rest| {
            let mut words = rest.splitn(4, ',');
            let kind = literal(words.next()?, "ErrorKind::")?;
            Some((kind, literal(words.next()?, "Phase::")?, literal(words.next()?, "Fault::")?))
        });
        let local = flat.split("Error::local(").skip(1).filter_map(|rest| {
            let kind = literal(rest.split(',').next()?, "ErrorKind::")?;
            Some((kind, "prepare".to_owned(), "local".to_owned()))
        });
        for (kind, phase, fault) in found.chain(local) {
            seen += 1;
            let place = places
                .iter()
                .find(|place| place.kind.name().replace('_', "") == kind)
                .unwrap_or_else(|| panic!("no row for {kind}"));
            let stands = place.phases.iter().any(|one| one.name() == phase)
                && place.faults.iter().any(|one| one.name() == fault);
            assert!(stands, "{path}: {kind} in {phase} by {fault} is missing in docs/errors.md");
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn phases_and_faults_are_named() {
    for phase in PHASES {
        assert!(ERRORS.contains(&format!("`{phase}`")), "{phase}");
    }
    for fault in [Fault::Target, Fault::Proxy, Fault::Local] {
        assert!(ERRORS.contains(&format!("`{fault}`")), "{fault}");
    }
}

#[test]
fn the_readme_is_short_and_names_the_test_command() {
    let readme = include_str!("../README.md");
    assert!(readme.lines().count() < 200, "{} lines", readme.lines().count());
    assert!(readme.contains("cargo test --all-features"));
    assert!(readme.contains("cargo longhaul demo"));
    for word in readme.split(['(', ')']).filter(|word| word.ends_with(".md")) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(word);
        assert!(path.exists(), "README links to {word}");
    }
}

const PROXIES: &str = include_str!("../docs/proxies.md");

/// What stands between the first two backticks.
fn quoted(cell: &str) -> &str {
    cell.split('`').nth(1).unwrap_or_default()
}

#[test]
fn every_spelling_of_the_page_is_what_it_says() {
    let rows = table(PROXIES, "| written | scheme |");
    assert!(rows.len() >= 16);
    for row in rows {
        let proxy: ProxyUrl = quoted(row[0]).parse().unwrap_or_else(|error| panic!("{error}"));
        let (user, password) = proxy.credentials().unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let port = proxy.port().to_string();
        let read =
            [proxy.scheme().as_str(), proxy.host(), port.as_str(), &text(user), &text(password)];
        assert_eq!(read, row[1..6], "{}", row[0]);
        assert_eq!(proxy.exposed().parse::<ProxyUrl>().unwrap(), proxy);
    }
    for row in table(PROXIES, "| written | why |") {
        let spelling = row[0].split('`').rev().nth(1).unwrap();
        let error = spelling.parse::<ProxyUrl>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidProxyUrl, "{spelling}");
        assert!(error.message().contains(row[1]), "{spelling}: {error} lacks {}", row[1]);
    }
}

#[test]
fn a_refusal_does_to_the_health_of_a_proxy_what_the_page_says() {
    let rows = table(PROXIES, "| status | what it mostly means |");
    let statuses: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(statuses, ["403", "407", "429", "502", "503", "504"]);
    for row in rows {
        let clock = Arc::new(SimClock::default());
        let script = Script::new(clock.clone(), [Play::proxy_refusal(row[0].parse().unwrap())]);
        let recipe = Session::builder()
            .trust_env(false)
            .clock(clock)
            .proxies(ProxyPool::parse("gate.example:1:anna:secret").unwrap())
            .transport(move || script.clone());
        let error = recipe.build().unwrap().get("https://a.test/").send().unwrap_err();
        let expected = if row[0] == "407" { ErrorKind::ProxyAuth } else { ErrorKind::ProxyRefused };
        assert_eq!(error.kind(), expected);
        let stats = &recipe.proxy_stats()[0];
        let health = match (stats.auth_refused, stats.state, stats.bad) {
            (true, _, _) => "retired",
            (false, "cooling", _) => "cooling",
            (false, _, 1) => "a little worse",
            (false, _, _) => "untouched",
        };
        assert_eq!(health, row[3], "{}", row[0]);
    }
}

/// The Rust files below a folder of the package, with their paths.
fn sources(folder: &str) -> Vec<(String, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![std::path::PathBuf::from(folder)]);
    while let Some(folder) = folders.pop() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&folder);
        for entry in std::fs::read_dir(path).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.display().to_string(), text));
            }
        }
    }
    found
}

/// Each way of a leak names a test, and each of these tests is there.
#[test]
fn the_tests_that_hold_the_list_of_leaks_exist() {
    let sources: String =
        [sources("src"), sources("tests")].concat().into_iter().map(|(_, text)| text).collect();
    let rows = table(PROXIES, "| way | why not | test |");
    assert!(rows.len() >= 15);
    for row in rows {
        let name = format!("fn {}()", quoted(row[2]));
        assert!(
            sources.contains(&format!("#[test]\n    {name}"))
                || sources.contains(&format!("#[test]\n{name}")),
            "{name} is no test"
        );
    }
}

/// Each message that the page explains is one that the code can give.
#[test]
fn the_messages_of_the_page_about_tls_are_those_of_the_code() {
    let mut source = [
        include_str!("../src/transport/tls/failure.rs"),
        include_str!("../src/transport/tls/client_cert.rs"),
        include_str!("../src/transport/head.rs"),
    ]
    .concat();
    // A backslash at the end of a line joins it to the next.
    while let Some(at) = source.find("\\\n") {
        let rest = source[at + 2..].trim_start().to_owned();
        source.truncate(at);
        source.push_str(&rest);
    }
    let rows = table(include_str!("../docs/tls.md"), "| message | kind |");
    assert!(rows.len() >= 17);
    for row in rows {
        for part in quoted(row[0]).split('…').map(str::trim).filter(|part| !part.is_empty()) {
            assert!(source.contains(part), "{part:?} of {} is no message", row[0]);
        }
        for kind in row[1].split(", ") {
            let kind = quoted(kind);
            assert!(ErrorKind::ALL.iter().any(|known| known.name() == kind), "{kind}");
        }
        assert!(!row[2].is_empty() && !row[3].is_empty(), "{row:?}");
    }
}

/// The programs for reading say first when one wants them, and the page names each of them.
#[test]
fn the_page_of_examples_names_those_that_are_for_reading() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut programs: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter(|path| std::fs::read_to_string(path).unwrap().starts_with("//! When you "))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut named: Vec<String> = table(include_str!("../docs/examples.md"), "| program | when")
        .into_iter()
        .map(|row| row[0].trim_start_matches('[').split(']').next().unwrap().to_owned())
        .collect();
    programs.sort();
    named.sort();
    assert_eq!(named, programs);
}
