//! Tables and the numbers in them.

use crate::report_command::Run;
use maud::{Markup, html};
use std::fmt::Display;

/// A number: as it is shown, exactly, and where it stands in the object.
pub(super) fn number(
    run: Run<'_>,
    pointer: impl Display,
    value: impl Display,
    shown: impl Display,
) -> Markup {
    html! {
        data value=(value) data-json={ (run.pointer) (pointer) } { (shown) }
    }
}

/// A part of a JSON pointer.
pub(super) fn part(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// What is in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Words, from the left.
    Words(&'static str),
    /// Numbers, below each other.
    Numbers(&'static str),
}

/// A table. Each row begins with what it is about.
pub(super) struct Table {
    /// Its id, another one for each on the page.
    pub(super) id: String,
    pub(super) caption: String,
    /// The names of the columns, with whether they hold numbers.
    pub(super) columns: Vec<(String, bool)>,
    pub(super) rows: Vec<Vec<Markup>>,
}

impl Table {
    pub(super) fn new(id: String, caption: impl Into<String>, columns: &[Column]) -> Self {
        let columns = columns.iter().map(|column| match column {
            Column::Words(name) => ((*name).to_owned(), false),
            Column::Numbers(name) => ((*name).to_owned(), true),
        });
        Self { id, caption: caption.into(), columns: columns.collect(), rows: Vec::new() }
    }

    /// The table in a box of its own, which can be scrolled with the keyboard where it is too wide.
    pub(super) fn render(&self) -> Markup {
        let caption = format!("{}-caption", self.id);
        html! {
            div.scroll role="region" tabindex="0" aria-labelledby=(caption) {
                table.sortable id=(self.id) {
                    caption id=(caption) { (self.caption) }
                    thead { tr {
                        @for (name, numbers) in &self.columns {
                            th scope="col" class=[numbers.then_some("number")] { (name) }
                        }
                    } }
                    tbody {
                        @for row in &self.rows { tr {
                            @for (at, (cell, (_, numbers))) in row.iter().zip(&self.columns).enumerate() {
                                @if at == 0 {
                                    th scope="row" class=[numbers.then_some("number")] { (cell) }
                                } @else {
                                    td class=[numbers.then_some("number")] { (cell) }
                                }
                            }
                        } }
                    }
                }
            }
        }
    }
}
