//! The documents say what the code does.

use longhaul::ErrorKind;
use longhaul::error::{Fault, Phase};

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
