//! The documents say what the code does.

use longhaul::error::{Fault, Phase};
use longhaul::time::SimClock;
use longhaul::transport::{Play, Script};
use longhaul::{ErrorKind, ProxyPool, ProxyUrl, Session};
use std::sync::Arc;

/// The cells of each row of the first table that starts with `header`.
fn table<'a>(text: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    text.lines()
        .skip_while(|line| !line.starts_with(header))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_table_of_errors_is_that_of_the_code() {
    let text = include_str!("../docs/errors.md");
    let rows = table(text, "| kind | in a requests log");
    let documented: Vec<(String, &str)> =
        rows.iter().map(|row| (row[0].trim_matches('`').to_owned(), row[1])).collect();
    let coded: Vec<(String, &str)> =
        ErrorKind::ALL.iter().map(|kind| (kind.name().to_owned(), kind.requests_name())).collect();
    for row in &coded {
        assert!(documented.contains(row), "docs/errors.md lacks or contradicts {row:?}");
    }
    assert_eq!(documented.len(), coded.len(), "docs/errors.md has rows that the code has not");
}

#[test]
fn what_is_charged_is_what_the_policy_charges() {
    use longhaul::policy::{Category, Outcome};
    let text = include_str!("../docs/errors.md");
    for row in table(text, "| kind | in a requests log") {
        let kind = ErrorKind::ALL
            .iter()
            .find(|kind| kind.name() == row[0].trim_matches('`'))
            .unwrap_or_else(|| panic!("no kind {}", row[0]));
        let charged = |phase| match Outcome::of_error(*kind, phase, None) {
            Outcome::Error { permanent: true, .. } => "never",
            Outcome::Error { category: Category::Connect, .. } => "connect",
            Outcome::Error { category: Category::Read, .. } => "read",
            other => panic!("{other:?}"),
        };
        let (before, after) = (charged(Phase::Connect), charged(Phase::Headers));
        let said = match (before, after) {
            (before, after) if before == after => before.to_owned(),
            (before, after) => format!("{before} or {after}"),
        };
        // Kinds that belong to one phase are charged by it.
        let wanted = match kind {
            ErrorKind::ConnectTimeout
            | ErrorKind::NameLookup
            | ErrorKind::ProxyUnreachable
            | ErrorKind::ProxyRefused
            | ErrorKind::Ssl => before.to_owned(),
            ErrorKind::ReadTimeout
            | ErrorKind::Protocol
            | ErrorKind::IncompleteBody
            | ErrorKind::ContentDecoding => after.to_owned(),
            _ => said,
        };
        assert_eq!(row[2], wanted, "{kind}");
    }
}

#[test]
fn phases_and_faults_are_named() {
    let text = include_str!("../docs/errors.md");
    for phase in [
        Phase::Prepare,
        Phase::Dns,
        Phase::Connect,
        Phase::Proxy,
        Phase::Tls,
        Phase::Send,
        Phase::Headers,
        Phase::Body,
    ] {
        assert!(text.contains(&format!("`{phase}`")), "{phase}");
    }
    for fault in [Fault::Target, Fault::Proxy, Fault::Local] {
        assert!(text.contains(&format!("`{fault}`")), "{fault}");
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

/// Each way of a leak names a test, and each of these tests is there.
#[test]
fn the_tests_that_hold_the_list_of_leaks_exist() {
    let mut sources = String::new();
    let mut folders = vec!["src".into(), "tests".into()];
    while let Some(folder) = folders.pop() {
        let folder: std::path::PathBuf = folder;
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&folder);
        for entry in std::fs::read_dir(path).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
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
