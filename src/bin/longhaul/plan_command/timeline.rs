//! The worst sequence as a drawing: one bar per attempt, each where it lies in time.

use super::forecast::seconds;
use longhaul::policy::{WorstCase, WorstStep};
use std::fmt::Write as _;
use std::time::Duration;

/// Up to this many attempts each has its bar; of more, those that are alike share one.
const MOST_BARS: u64 = 40;

/// A bar that cannot be seen is none.
const LEAST_BARS_WIDTH: usize = 20;

/// Attempts that share a bar.
struct Bar {
    label: String,
    begins: Duration,
    /// Where the attempt ends, and the wait begins.
    waits: Duration,
    ends: Duration,
}

/// Draws the worst sequence in lines of at most `width` characters.
pub(super) fn draw(worst: &WorstCase, deadline: Option<Duration>, width: usize) -> String {
    let bars = bars(worst.sequence());
    let Some(end) = bars.last().map(|bar| bar.ends).filter(|end| !end.is_zero()) else {
        return "There is no worst sequence to draw: it has no bound.".to_owned();
    };
    let margin =
        bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or_default().max(4) + 2;
    let columns = width.saturating_sub(margin).max(LEAST_BARS_WIDTH);
    let at = |time: Duration| column(time, end, columns);

    let mut text = String::from("The worst sequence: █ an attempt, ░ the wait behind it\n\n");
    let last = format!("{} s", seconds(end));
    let _ = writeln!(text, "{:margin$}0 s{last:>rest$}", "", rest = columns.saturating_sub(3));
    for bar in &bars {
        let (begins, waits, ends) = (at(bar.begins), at(bar.waits), at(bar.ends));
        // Even the shortest attempt is seen.
        let waits = waits.max(begins + 1).min(columns);
        let begins = begins.min(waits.saturating_sub(1));
        let line = format!(
            "{:<margin$}{}{}{}",
            bar.label,
            " ".repeat(begins),
            "█".repeat(waits - begins),
            "░".repeat(ends.saturating_sub(waits)),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if let Some(deadline) = deadline.filter(|deadline| *deadline < end) {
        let _ = writeln!(text, "{:margin$}{}▲", "", " ".repeat(at(deadline).min(columns - 1)));
        let cut = format!("the deadline of {} s ends it here", seconds(deadline));
        let before = (margin + at(deadline) + 1).saturating_sub(cut.len());
        let _ = writeln!(text, "{:before$}{cut}", "");
    }
    text.truncate(text.trim_end().len());
    text
}

/// The column of a time on a scale that ends at `end`, rounded to the nearest.
fn column(time: Duration, end: Duration, columns: usize) -> usize {
    let scaled = time.as_nanos().saturating_mul(columns as u128).saturating_add(end.as_nanos() / 2);
    usize::try_from(scaled / end.as_nanos().max(1)).unwrap_or(columns).min(columns)
}

fn bars(steps: &[WorstStep]) -> Vec<Bar> {
    let attempts = steps.iter().fold(0_u64, |sum, step| sum.saturating_add(step.times));
    let each = attempts <= MOST_BARS;
    let (mut bars, mut number, mut begins) = (Vec::new(), 1_u64, Duration::ZERO);
    for step in steps {
        let (rows, times) = if each { (step.times, 1) } else { (1, step.times) };
        for _ in 0..rows {
            let last = number.saturating_add(times - 1);
            let label = if times > 1 { format!("{number}–{last}") } else { number.to_string() };
            let mut row = *step;
            row.times = times;
            let ends = begins.saturating_add(row.sum());
            // Of many in one bar, the share of the attempts comes first.
            row.wait = Duration::ZERO;
            let waits = begins.saturating_add(row.sum());
            bars.push(Bar { label, begins, waits, ends });
            (number, begins) = (last.saturating_add(1), ends);
        }
    }
    bars
}
