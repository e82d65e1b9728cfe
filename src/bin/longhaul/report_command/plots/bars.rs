//! Bars that lie, each below its name and its number.
//!
//! The names come from outside and may be long, so they stand above their bars with the whole width to
//! themselves, and what does not fit is cut; the table has it whole.

use super::{Hue, Size, drawn, letters};
use crate::report_command::words::short;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A name with its number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// The number as it is shown.
    pub(crate) shown: String,
    pub(crate) hue: Hue,
}

/// How high a bar with its name is.
const STEP: i32 = 44;

/// How wide a letter is on average.
const LETTER: i32 = 8;

/// The bars from top to bottom; `None` where there is nothing to draw.
pub(crate) fn bars(size: Size, bars: &[Bar]) -> Option<String> {
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    if bars.is_empty() {
        return None;
    }
    let height = u32::try_from(bars.len()).ok()?.checked_mul(STEP.unsigned_abs())?;
    drawn(Size { height, ..size }, |area| {
        let width = i32::try_from(size.width)?;
        for (place, bar) in (0..).zip(bars) {
            let top = place * STEP;
            let room = width - LETTER * (i32::try_from(bar.shown.chars().count())? + 2);
            let name = short(&bar.name, usize::try_from(room / LETTER).unwrap_or(4));
            area.draw(&Text::new(name, (0, top + 3), letters(16, Hue::Ink)))?;
            let right = letters(16, Hue::Ink).pos(Pos::new(HPos::Right, VPos::Top));
            area.draw(&Text::new(bar.shown.clone(), (width, top + 3), right))?;
            let share = if most > 0.0 { bar.value / most } else { 0.0 };
            // The smallest that is not nothing can still be seen.
            let least = if bar.value > 0.0 { 2.0 } else { 0.0 };
            let length = (share * f64::from(width)).max(least) as i32;
            let line = [(0, top + 23), (width, top + 34)];
            area.draw(&Rectangle::new(line, Hue::Grid.colour().filled()))?;
            let line = [(0, top + 23), (length, top + 34)];
            area.draw(&Rectangle::new(line, bar.hue.colour().filled()))?;
        }
        Ok(())
    })
}
