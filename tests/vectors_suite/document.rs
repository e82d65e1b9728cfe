//! `docs/requests-compat.md` is held to the source, to the tests and to the figures of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::verdict::Tally;

const DOCUMENT: &str = include_str!("../../docs/requests-compat.md");

/// The public names of requests and urllib3, each behind the heading that has to list it.
const NAMES: &str = include_str!("../vectors/requests_api.txt");

/// What stands under a heading, up to the next of its level or above.
fn section(heading: &str) -> &'static str {
    let level = heading.split(' ').next().unwrap();
    let start = format!("\n{heading}\n");
    let (_, rest) = DOCUMENT.split_once(&start).unwrap_or_else(|| panic!("no {heading}"));
    let ends = (2..=level.len()).map(|level| format!("\n{} ", "#".repeat(level)));
    let end = ends.filter_map(|end| rest.find(&end)).min().unwrap_or(rest.len());
    &rest[..end]
}

/// The cells of the rows of all tables of a section, the heads left out.
fn rows(section: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = section.lines().collect();
    let is_row = |index: &usize| {
        let is_rule = |line: &&str| line.starts_with("|---");
        lines[*index].starts_with('|')
            && !is_rule(&lines[*index])
            && !lines.get(index + 1).is_some_and(is_rule)
    };
    let cells = |index: usize| lines[index].trim_matches('|').split('|').map(str::trim).collect();
    (0..lines.len()).filter(is_row).map(cells).collect()
}

/// The names of the differences, each with its test.
fn differences() -> Vec<(&'static str, &'static str)> {
    let name = |cell: &'static str| cell.trim_matches('`');
    rows(section("## The differences"))
        .iter()
        .map(|row| (name(row[0]), name(row.last().unwrap())))
        .collect()
}

pub(crate) fn documented() -> BTreeSet<&'static str> {
    differences().iter().map(|(name, _)| *name).collect()
}

pub(crate) fn shows_the_figures(tallies: &[Tally]) {
    let rows: String = tallies
        .iter()
        .map(|tally| {
            let (asked, passed) = (tally.asked(), tally.passed());
            let (aside, share) = (tally.set_aside(), tally.share());
            let (title, reasons) = (tally.title(), tally.reasons());
            format!("| {title} | {asked} | {passed} | {aside} | {share} % | {reasons} |\n")
        })
        .collect();
    assert!(DOCUMENT.contains(&rows), "docs/requests-compat.md should hold\n{rows}");
}

/// The Rust files below a folder of the package.
fn sources(folder: &str) -> Vec<String> {
    fn collect(folder: &Path, into: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                into.push(fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut into = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut into);
    into
}

fn all_sources() -> Vec<String> {
    [sources("src"), sources("tests")].concat()
}

#[test]
fn every_difference_of_the_source_stands_in_the_document_and_the_other_way_round() {
    // Put together here, so that this line is not found.
    let marker = format!("{}(", "DIFFERENCE");
    let sources = all_sources();
    let named: BTreeSet<&str> = sources
        .iter()
        .flat_map(|text| text.split(&marker).skip(1))
        .map(|rest| rest.split(')').next().unwrap())
        .collect();
    assert_eq!(named, documented());
    assert_eq!(differences().len(), named.len(), "a name stands twice");
}

#[test]
fn every_difference_has_a_test() {
    let sources = all_sources();
    for (name, test) in differences() {
        let function = format!("fn {}()", test.rsplit("::").next().unwrap());
        assert!(sources.iter().any(|text| text.contains(&function)), "{name}: no {function}");
        if test.starts_with("differences::") {
            assert_eq!(function, format!("fn {}()", name.replace('-', "_")));
        }
    }
}

#[test]
fn every_public_name_has_its_row() {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in NAMES.lines() {
        let (heading, name) = line.split_once(' ').unwrap();
        names.entry(heading).or_default().insert(name);
    }
    assert_eq!(names.len(), 10);
    for (heading, wanted) in names {
        let rows = rows(section(&format!("### {heading}")));
        let listed: BTreeSet<&str> = rows
            .iter()
            .flat_map(|row| row[0].split('`').skip(1).step_by(2))
            .map(|name| name.trim_start_matches("requests."))
            .collect();
        assert_eq!(listed, wanted, "{heading}");
        assert!(rows.iter().all(|row| row.len() == 2 && !row[1].is_empty()), "{heading}");
    }
}
