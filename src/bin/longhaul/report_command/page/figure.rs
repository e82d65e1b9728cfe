//! A drawing with all that makes it readable without seeing it.

use super::table::Table;
use crate::report_command::Run;
use crate::report_command::plots::{Hue, Size};
use maud::{Markup, PreEscaped, html};

/// The shape of a mark in a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Square,
    Circle,
    Triangle,
    Cross,
}

impl Shape {
    fn sign(self) -> &'static str {
        match self {
            Self::Square => "■",
            Self::Circle => "●",
            Self::Triangle => "▲",
            Self::Cross => "✕",
        }
    }
}

/// A drawing of one run.
pub(super) struct Figure<'a> {
    pub(super) run: Run<'a>,
    /// Its id, another one for each kind of drawing.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// How it is to be read.
    pub(super) reading: Markup,
    /// What it shows, in a sentence.
    pub(super) shows: String,
    pub(super) legend: Vec<(Shape, Hue, String)>,
    pub(super) table: Table,
}

/// An id that no other run has.
pub(super) fn id_of(run: Run<'_>, id: &str) -> String {
    match run.letter {
        "" => id.to_owned(),
        letter => format!("{id}-{}", letter.to_lowercase()),
    }
}

impl Figure<'_> {
    /// The figure with the drawing that `draw` makes for a size.
    pub(super) fn render(&self, draw: impl Fn(Size) -> Option<String>) -> Markup {
        let id = id_of(self.run, self.id);
        let title = match self.run.letter {
            "" => self.title.to_owned(),
            letter => format!("{letter}: {}", self.title),
        };
        let heading = format!("{id}-heading");
        html! {
            figure id=(id) aria-labelledby=(heading) {
                figcaption {
                    h3 id=(heading) { (title) }
                    p { (self.reading) }
                    @if !self.legend.is_empty() {
                        ul.legend { @for (shape, hue, name) in &self.legend {
                            li {
                                span aria-hidden="true" style={ "color:var(" (hue.variable()) ")" } {
                                    (shape.sign())
                                }
                                " " (name)
                            }
                        } }
                    }
                }
                div.plot {
                    (self.drawing(&id, &title, "wide", draw(Size::WIDE)))
                    (self.drawing(&id, &title, "narrow", draw(Size::NARROW)))
                }
                details {
                    summary { "The numbers as a table" }
                    (self.table.render())
                }
            }
        }
    }

    fn drawing(&self, id: &str, title: &str, form: &str, svg: Option<String>) -> Markup {
        let (title_id, text_id) = (format!("{id}-{form}-title"), format!("{id}-{form}-text"));
        let Some(svg) = svg else {
            return html! { p class=(form) { "There is nothing to draw." } };
        };
        let (width, height) = size_of(&svg);
        html! {
            svg class=(form) role="img" aria-labelledby={ (title_id) " " (text_id) }
                viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) {
                title id=(title_id) { (title) }
                desc id=(text_id) { (self.shows) }
                // Made by a library that escapes what it is given.
                (PreEscaped(svg))
            }
        }
    }
}

/// Width and height, as the drawing itself says at its beginning.
fn size_of(svg: &str) -> (&str, &str) {
    let attribute = |name: &str| {
        let (_, rest) = svg.split_once(&format!("{name}=\""))?;
        rest.split('"').next()
    };
    (attribute("width").unwrap_or("0"), attribute("height").unwrap_or("0"))
}
