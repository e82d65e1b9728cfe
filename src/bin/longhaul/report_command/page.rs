//! A report as one page that any browser shows, with nothing loaded and no script needed.
//!
//! What stands on the page came from servers that nobody here controls: URLs, header values, names of
//! cookies. All of it goes through maud, which escapes everything, and URLs are text and not links. The
//! page forbids by its own policy whatever is not in it: should something get through, it is not
//! executed and loads nothing.
//!
//! Each drawing has a title, a sentence that says what it shows, and the table of its numbers below
//! it. Each number is a `data` element that carries its exact value, and where in the object of
//! `--json` it stands.

mod differences;
mod figure;
mod over_time;
mod sections;
mod summary;
mod table;
mod tables;
mod totals;

use super::plots::{Hue, hex};
use super::{Run, Told};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The background of a light page.
pub(super) const LIGHT: (u8, u8, u8) = (0xFF, 0xFF, 0xFF);
/// The background of a dark page.
pub(super) const DARK: (u8, u8, u8) = (0x12, 0x16, 0x1B);

/// The page.
pub(super) fn render(told: &Told) -> String {
    let runs = told.runs();
    let sources: Vec<&str> = runs.iter().map(|run| run.report.source.as_str()).collect();
    let title = format!("{}: run report", sources.join(" and "));
    let sections = sections::all(told);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="referrer" content="no-referrer";
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(style())) }
            }
            body {
                a.skip href="#main" { "Skip to the numbers" }
                header {
                    h1 { "Run report" }
                    @for run in &runs { (source(run)) }
                }
                nav aria-label="Sections" {
                    ul { @for section in &sections {
                        li { a href={ "#" (section.id) } { (section.title) } }
                    } }
                }
                main #main {
                    @for section in &sections {
                        section aria-labelledby=(section.id) {
                            h2 id=(section.id) { (section.title) }
                            (section.content)
                        }
                    }
                }
                footer { (footer(&runs)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn source(run: &Run<'_>) -> Markup {
    html! {
        p.source {
            @if !run.letter.is_empty() { strong { (run.letter) } " is " }
            code { (run.report.source) }
        }
    }
}

fn footer(runs: &[Run<'_>]) -> Markup {
    html! {
        p {
            "Made by longhaul " (env!("CARGO_PKG_VERSION")) ". Times of day are UTC. The numbers are those of "
            code { "longhaul report --json" } ", schema "
            @for (at, run) in runs.iter().enumerate() {
                @if at > 0 { " and " }
                (table::number(*run, "/report", run.report.report, run.report.report))
            }
            ". Percentiles are right to 0.1 %."
        }
    }
}

/// Nothing is loaded, and no script runs but the one that sorts.
fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; \
         img-src data:; base-uri 'none'; form-action 'none'"
    )
}

/// The colours of both modes, the rules that make drawings follow them, and the rest.
fn style() -> String {
    let mut light = format!("--page:{};", hex(LIGHT));
    let mut dark = format!("--page:{};", hex(DARK));
    let mut rules = String::new();
    for hue in Hue::ALL {
        let _ = write!(light, "{}:{};", hue.variable(), hex(hue.light()));
        let _ = write!(dark, "{}:{};", hue.variable(), hex(hue.dark()));
        rules.push_str(&hue.rule());
    }
    format!(
        ":root{{color-scheme:light dark;{light}}}\
         @media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{rules}\n{STYLE}"
    )
}
