//! The drawings of the page, as SVG.
//!
//! Each is drawn twice, wide and narrow, since a drawing that is scaled down to the width of a phone
//! cannot be read: the page shows the one that fits. Colours are drawn as for paper; the page replaces
//! each of them by a variable ([`Hue::rule`]), so that the same drawing serves a dark page.

mod bars;
mod ranges;
mod time;

pub(crate) use bars::{Bar, bars};
pub(crate) use ranges::{Range, ranges};
pub(crate) use time::{Stack, lines, stacks};

use plotters::prelude::*;
use plotters::style::RGBColor;

/// A drawing area of ours.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// What goes wrong in drawing; the table beside it has the numbers.
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// How large a drawing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Size {
    /// For screens that are wide enough.
    pub(crate) const WIDE: Self = Self { width: 980, height: 320 };
    /// For phones.
    pub(crate) const NARROW: Self = Self { width: 328, height: 260 };

    pub(crate) fn is_narrow(self) -> bool {
        self.width < 500
    }
}

/// The colours, each with a light and a dark form.
///
/// All have a contrast of 4.5 against the background and are told apart by the blind to colours as well
/// as six hues can be; what they mean stands in the legend, and the numbers in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hue {
    Ink,
    Grid,
    Blue,
    Orange,
    Green,
    Purple,
    Red,
    Grey,
}

impl Hue {
    /// All there are.
    pub(crate) const ALL: [Self; 8] = [
        Self::Ink,
        Self::Grid,
        Self::Blue,
        Self::Orange,
        Self::Green,
        Self::Purple,
        Self::Red,
        Self::Grey,
    ];

    /// Those for kinds that have no colour of their own, in their order.
    pub(crate) const SERIES: [Self; 6] =
        [Self::Blue, Self::Orange, Self::Purple, Self::Green, Self::Red, Self::Grey];

    /// The variable of the page that holds it.
    pub(crate) const fn variable(self) -> &'static str {
        match self {
            Self::Ink => "--ink",
            Self::Grid => "--grid",
            Self::Blue => "--blue",
            Self::Orange => "--orange",
            Self::Green => "--green",
            Self::Purple => "--purple",
            Self::Red => "--red",
            Self::Grey => "--grey",
        }
    }

    /// As it is drawn, and as a light page has it.
    pub(crate) const fn light(self) -> (u8, u8, u8) {
        match self {
            Self::Ink => (0x1B, 0x1F, 0x24),
            Self::Grid => (0xD3, 0xD9, 0xE0),
            Self::Blue => (0x0B, 0x63, 0xA8),
            Self::Orange => (0xB2, 0x55, 0x00),
            Self::Green => (0x1A, 0x7A, 0x48),
            Self::Purple => (0x86, 0x3F, 0xA6),
            Self::Red => (0xB8, 0x14, 0x37),
            Self::Grey => (0x5A, 0x66, 0x70),
        }
    }

    /// As a dark page has it.
    pub(crate) const fn dark(self) -> (u8, u8, u8) {
        match self {
            Self::Ink => (0xE8, 0xEC, 0xF0),
            Self::Grid => (0x38, 0x41, 0x4A),
            Self::Blue => (0x62, 0xB5, 0xF5),
            Self::Orange => (0xF2, 0xA2, 0x54),
            Self::Green => (0x52, 0xC9, 0x8C),
            Self::Purple => (0xCB, 0x98, 0xEC),
            Self::Red => (0xFF, 0x7A, 0x8E),
            Self::Grey => (0xA0, 0xAC, 0xB6),
        }
    }

    /// Makes a drawing follow the variable.
    pub(crate) fn rule(self) -> String {
        let (hex, variable) = (hex(self.light()), self.variable());
        format!(
            ".plot [fill=\"{hex}\"]{{fill:var({variable})}}\
             .plot [stroke=\"{hex}\"]{{stroke:var({variable})}}"
        )
    }

    fn colour(self) -> RGBColor {
        let (red, green, blue) = self.light();
        RGBColor(red, green, blue)
    }
}

/// As styles and drawings spell it.
pub(crate) fn hex((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Letters on a drawing.
fn letters(size: i32, hue: Hue) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&hue.colour())
}

/// Draws into a text; `None` where it could not be drawn.
fn drawn(size: Size, draw: impl FnOnce(&Area<'_>) -> Drawn) -> Option<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (size.width, size.height)).into_drawing_area();
        draw(&area).ok()?;
        area.present().ok()?;
    }
    Some(svg)
}

/// A count on an axis: `950`, `12k`, `3.5M`.
fn on_axis(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e9 => (value / 1e9, "G"),
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let text = if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") };
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two colours, as WCAG 2 counts it.
    fn contrast(one: (u8, u8, u8), other: (u8, u8, u8)) -> f64 {
        let luminance = |(red, green, blue): (u8, u8, u8)| {
            let part = |byte: u8| {
                let part = f64::from(byte) / 255.0;
                if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue)
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn colours_can_be_seen_on_both_pages() {
        use super::super::page::{DARK, LIGHT};
        for hue in Hue::ALL.into_iter().filter(|hue| *hue != Hue::Grid) {
            for (colour, page) in [(hue.light(), LIGHT), (hue.dark(), DARK)] {
                let have = contrast(colour, page);
                assert!(have >= 4.5, "{hue:?} has {have}");
            }
        }
    }

    #[test]
    fn each_colour_has_a_rule_of_its_own() {
        let hexes: std::collections::BTreeSet<_> =
            Hue::ALL.iter().map(|hue| hex(hue.light())).collect();
        assert_eq!(hexes.len(), Hue::ALL.len());
    }

    #[test]
    fn counts_on_an_axis_are_short() {
        for (value, wanted) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (950.0, "950"),
            (9500.0, "9500"),
            (12_000.0, "12k"),
            (3.5e6, "3.5M"),
            (2e9, "2G"),
        ] {
            assert_eq!(on_axis(value), wanted);
        }
    }
}
