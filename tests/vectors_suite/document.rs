//! What `docs/requests-compat.md` says of the differences and of these figures.

use crate::verdict::Tally;

const DOCUMENT: &str = include_str!("../../docs/requests-compat.md");

/// The names of the differences that have a row.
pub(crate) fn documented() -> Vec<String> {
    DOCUMENT
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name.to_owned())
        .collect()
}

pub(crate) fn shows_the_figures(tallies: &[Tally]) {
    let rows: String = tallies
        .iter()
        .map(|tally| {
            let (asked, passed) = (tally.asked(), tally.passed());
            let (aside, share) = (tally.set_aside(), tally.share());
            let reasons = tally.reasons();
            format!(
                "| {} | {asked} | {passed} | {aside} | {share} % | {reasons} |\n",
                tally.title()
            )
        })
        .collect();
    assert!(DOCUMENT.contains(&rows), "docs/requests-compat.md should hold\n{rows}");
}
