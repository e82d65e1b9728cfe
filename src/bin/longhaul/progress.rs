//! How far the run is, on standard error.
//!
//! Three voices for three readers: a bar for a person at a terminal, a plain line now and then for
//! a log file, and one JSON object each second for a program. Which one speaks is settled once;
//! what is said is a pure function of the library's [`batch::Progress`], so it can be tested without
//! a run.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use longhaul::batch;
use longhaul::policy::{Concurrency, format_duration};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::LazyLock;
use std::time::Duration;

/// Which voice speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// None.
    Silent,
    /// A bar on a terminal.
    Bar,
    /// A line every ten seconds.
    Lines,
    /// A JSON object every second.
    Json,
}

impl Voice {
    /// The least time between two messages.
    pub(crate) fn interval(self) -> Duration {
        match self {
            Self::Silent => Duration::MAX,
            Self::Bar => Duration::from_millis(100),
            Self::Lines => Duration::from_secs(10),
            Self::Json => Duration::from_secs(1),
        }
    }
}

/// Counts up to `total` on a terminal, and is silent elsewhere.
pub(crate) fn counter(total: u64, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{pos} of {len} {msg}");
    let bar = ProgressBar::new(total).with_message(what);
    SCREEN.add(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
}

/// Speaks with one voice about one run; leaves the terminal as it was when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    voice: Voice,
    /// Whether the number of attempts at once is news.
    adaptive: bool,
    bar: Option<ProgressBar>,
    last: Option<Duration>,
    told: u64,
}

impl Progress {
    pub(crate) fn new(voice: Voice, concurrency: Concurrency, total: Option<u64>) -> Self {
        let bar = (voice == Voice::Bar).then(|| SCREEN.add(bar(total)));
        let adaptive = concurrency == Concurrency::Adaptive;
        Self { voice, adaptive, bar, last: None, told: 0 }
    }

    /// Says how far the run is, if it is time to.
    pub(crate) fn update(&mut self, now: &batch::Progress) {
        let last = self.last.unwrap_or_default();
        // At the end it is always time to.
        let is_over = now.total == Some(now.done()) && self.told != now.done();
        if is_over || now.elapsed.saturating_sub(last) >= self.voice.interval() {
            self.say(now);
        }
    }

    fn say(&mut self, now: &batch::Progress) {
        self.last = Some(now.elapsed);
        self.told = now.done();
        match self.voice {
            Voice::Silent => {}
            Voice::Bar => {
                if let Some(bar) = &self.bar {
                    bar.set_position(now.done());
                    bar.set_message(message(now, self.adaptive));
                }
            }
            Voice::Lines => print(&line(now, self.adaptive)),
            Voice::Json => print(&json(now)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
            SCREEN.remove(&bar);
        }
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden()),
            "{bar:30} {pos}/{len} {msg}",
        ),
        None => (
            ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()),
            "{spinner} {pos} {msg}",
        ),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// What stands right of the bar.
fn message(now: &batch::Progress, adaptive: bool) -> String {
    let mut text = format!("{:.1}/s", now.rate());
    // At the end nobody asks how long it still takes.
    if let Some(eta) = now.eta().map(whole_seconds).filter(|eta| !eta.is_zero()) {
        let _ = write!(text, ", ETA {}", format_duration(eta));
    }
    let _ = write!(text, ", ok {}, failed {}, waiting {}", now.ok, now.failed, now.waiting);
    if adaptive {
        let _ = write!(text, ", {} at once", now.concurrency);
    }
    if now.pass > 1 {
        let _ = write!(text, ", pass {}", now.pass);
    }
    text
}

/// The line of a log file.
pub(crate) fn line(now: &batch::Progress, adaptive: bool) -> String {
    let total = now.total.map(|total| format!("/{total}")).unwrap_or_default();
    format!(
        "longhaul: {}{total} after {}: {}",
        now.done(),
        format_duration(whole_seconds(now.elapsed)),
        message(now, adaptive)
    )
}

/// The object of a program.
pub(crate) fn json(now: &batch::Progress) -> String {
    let round = |value: f64| (value * 1000.0).round() / 1000.0;
    json!({
        "elapsed_s": round(now.elapsed.as_secs_f64()),
        "total": now.total,
        "done": now.done(),
        "ok": now.ok,
        "failed": now.failed,
        "waiting": now.waiting,
        "in_flight": now.in_flight,
        "concurrency": now.concurrency,
        "attempts": now.attempts,
        "per_second": round(now.rate()),
        "eta_s": now.eta().map(|eta| whole_seconds(eta).as_secs()),
        "pass": now.pass,
    })
    .to_string()
}

/// Rounded to seconds, of which nobody wants fractions here.
fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.saturating_add(Duration::from_millis(500)).as_secs())
}

/// The terminal, which bars and log lines share.
static SCREEN: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Prints a line to standard error without tearing a bar. Nobody may be there to read it any more,
/// which is no reason to stop.
pub(crate) fn print(text: &str) {
    SCREEN.suspend(|| {
        let _ = writeln!(io::stderr().lock(), "{text}");
    });
}

/// Standard error for the logger, so that its lines go above the bar.
#[derive(Debug)]
pub(crate) struct LogTarget;

impl Write for LogTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SCREEN.suspend(|| io::stderr().lock().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halfway() -> batch::Progress {
        let mut now = batch::Progress::default();
        now.elapsed = Duration::from_millis(80_400);
        now.total = Some(2000);
        (now.ok, now.failed) = (760, 44);
        (now.waiting, now.in_flight, now.attempts) = (28, 24, 901);
        now.concurrency = 30;
        now.pass = 1;
        now
    }

    #[test]
    fn the_line_of_a_log() {
        let mut now = halfway();
        assert_eq!(
            line(&now, false),
            format!(
                "longhaul: 804/2000 after {}: 10.0/s, ETA {}, ok 760, failed 44, waiting 28",
                format_duration(Duration::from_secs(80)),
                format_duration(Duration::from_secs(120)),
            )
        );
        assert!(line(&now, true).ends_with(", waiting 28, 30 at once"));
        now.total = None;
        now.pass = 2;
        assert!(!line(&now, false).contains("ETA"));
        assert!(line(&now, false).starts_with("longhaul: 804 after "));
        assert!(line(&now, false).ends_with(", pass 2"));
    }

    #[test]
    fn the_object_of_a_program() {
        assert_eq!(
            json(&halfway()),
            r#"{"attempts":901,"concurrency":30,"done":804,"elapsed_s":80.4,"eta_s":120,"failed":44,"in_flight":24,"ok":760,"pass":1,"per_second":10.0,"total":2000,"waiting":28}"#
        );
        let start = json(&batch::Progress::default());
        let start: serde_json::Value = serde_json::from_str(&start).unwrap();
        assert_eq!(start["total"], serde_json::Value::Null);
        assert_eq!(start["eta_s"], serde_json::Value::Null);
    }

    #[test]
    fn messages_keep_their_distance() {
        let mut progress = Progress::new(Voice::Silent, Concurrency::Fixed, Some(1));
        progress.update(&halfway());
        assert_eq!(progress.last, None);
        let mut progress = Progress::new(Voice::Bar, Concurrency::Fixed, Some(1));
        for (ms, said) in [(50, None), (100, Some(100)), (150, Some(100)), (200, Some(200))] {
            let mut now = halfway();
            now.elapsed = Duration::from_millis(ms);
            progress.update(&now);
            assert_eq!(progress.last, said.map(Duration::from_millis), "{ms}");
        }
    }
}
