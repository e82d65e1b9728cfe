//! How far the run is, on standard error.
//!
//! Three voices for three readers: a bar for a person at a terminal, a plain line now and then for
//! a log file, and one JSON object each second for a program. Which one speaks is settled once
//! ([`voice`](crate::voice)); what is said is a pure function of the library's [`batch::Progress`], so
//! it can be tested without a run.

mod screen;
mod words;

use crate::voice::{Manner, Voice};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use longhaul::batch;
use longhaul::policy::{Concurrency, format_duration};
pub(crate) use screen::{AboveTheBar, LogTarget, print};
use std::time::Duration;
use words::whole_seconds;

/// While nothing but the start is waited for, lines are so many times rarer.
const RARER: u32 = 60;

/// Counts up to `total` on a terminal, and is silent elsewhere.
pub(crate) fn counter(total: u64, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{pos} of {len} {msg}");
    let bar = ProgressBar::new(total).with_message(what);
    screen::add(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
}

/// Speaks with one voice about one run; leaves the terminal as it was when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    manner: Manner,
    /// Whether the number of attempts at once is news.
    adaptive: bool,
    bar: Option<ProgressBar>,
    /// When it was last said how far the run is.
    last: Option<Duration>,
    /// What there would be to say and was not said.
    untold: Option<batch::Progress>,
    /// How long it was until the start when that was last said.
    left: Option<Duration>,
}

impl Progress {
    pub(crate) fn new(manner: Manner, concurrency: Concurrency, total: Option<u64>) -> Self {
        let bar = (manner.voice == Voice::Bar).then(|| screen::add(bar(total)));
        let adaptive = concurrency == Concurrency::Adaptive;
        Self { manner, adaptive, bar, last: None, untold: None, left: None }
    }

    /// Says how far the run is, if it is time to; what is left unsaid is said at the end.
    pub(crate) fn update(&mut self, now: &batch::Progress) {
        if let Some(left) = now.starts_in {
            return self.wait(left);
        }
        let last = self.last.unwrap_or_default();
        if now.elapsed.saturating_sub(last) >= self.manner.every {
            self.say(now);
        } else {
            self.untold = Some(*now);
        }
    }

    /// Says how long it is until the start, if it is time to.
    fn wait(&mut self, left: Duration) {
        let every = match self.manner.voice {
            // Hours of nothing but waiting need few lines.
            Voice::Lines => self.manner.every.saturating_mul(RARER),
            _ => self.manner.every,
        };
        if self.left.is_some_and(|last| last.saturating_sub(left) < every) {
            return;
        }
        self.left = Some(left);
        let text = || format!("starts in {}", format_duration(whole_seconds(left)));
        match (self.manner.voice, &self.bar) {
            (Voice::Bar, Some(bar)) => bar.set_message(text()),
            (Voice::Lines, _) => print(&format!("longhaul: {}", text())),
            (Voice::Json, _) => print(&words::json_before(left)),
            _ => {}
        }
    }

    fn say(&mut self, now: &batch::Progress) {
        self.last = Some(now.elapsed);
        self.untold = None;
        match self.manner.voice {
            Voice::Silent => {}
            Voice::Bar => {
                if let Some(bar) = &self.bar {
                    bar.set_position(now.done());
                    bar.set_message(words::message(now, self.adaptive));
                }
            }
            Voice::Lines => print(&words::line(now, self.adaptive)),
            Voice::Json => print(&words::json(now)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(last) = self.untold.take() {
            self.say(&last);
        }
        if let Some(bar) = self.bar.take() {
            screen::remove(&bar);
        }
    }
}

/// A bar that is cut at the edge of the terminal, since one that wraps cannot be taken away when the
/// terminal becomes narrower.
fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden()),
            "{bar:20} {pos}/{len} {wide_msg}",
        ),
        None => (
            ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()),
            "{spinner} {pos} {wide_msg}",
        ),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use words::tests::halfway;

    fn manner(voice: Voice, every: u64) -> Manner {
        let every = Duration::from_millis(every);
        Manner { voice, every, talks: true, shares_terminal: false }
    }

    #[test]
    fn before_the_start_few_lines_are_said() {
        let mut progress = Progress::new(manner(Voice::Lines, 10_000), Concurrency::Fixed, Some(1));
        let mut said = Vec::new();
        for left in (0..3600).rev().step_by(60) {
            let mut now = batch::Progress::default();
            now.starts_in = Some(Duration::from_secs(left));
            progress.update(&now);
            said.extend(progress.left.filter(|last| said.last() != Some(last)));
        }
        let minutes: Vec<_> = said.iter().map(|left| left.as_secs() / 60).collect();
        assert_eq!(minutes, [59, 49, 39, 29, 19, 9]);
        assert_eq!(progress.last, None);
    }

    #[test]
    fn messages_keep_their_distance_and_the_last_one_is_said() {
        let mut progress = Progress::new(manner(Voice::Bar, 100), Concurrency::Fixed, Some(1));
        for (ms, said) in [(50, None), (100, Some(100)), (150, Some(100)), (200, Some(200))] {
            let mut now = halfway();
            now.elapsed = Duration::from_millis(ms);
            progress.update(&now);
            assert_eq!(progress.last, said.map(Duration::from_millis), "{ms}");
            assert_eq!(progress.untold.is_some(), said != Some(ms), "{ms}");
        }
    }
}
