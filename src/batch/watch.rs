//! Who watches a run while it goes on: the pace, the alarm, the tally in its file.
//!
//! All of it is told on the thread that takes the results, and none of it changes what the run does.

use super::pace::{Bounds, Pace};
use super::record::Record;
use super::report::Progress;
use super::tally_file::TallyFile;
use crate::policy::{DisconnectAlarm, DisconnectRise};
use crate::workers::{Finished, PoolStats};
use std::time::Instant;

/// Is told when connections begin to break more often.
pub(super) type OnAlarm = Box<dyn FnMut(&DisconnectRise) + Send>;
/// Is told of each URL at the end of each of its passes.
pub(super) type OnPassEnd = Box<dyn FnMut(&Record) + Send>;

/// What is wanted of it.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) bounds: Bounds,
    pub(super) tally: Option<TallyFile>,
    pub(super) on_alarm: Option<OnAlarm>,
    pub(super) on_pass_end: Option<OnPassEnd>,
}

/// The watch over one run.
pub(super) struct Watch {
    wanted: Wanted,
    pace: Pace,
    alarm: DisconnectAlarm,
}

impl Watch {
    /// A run of so many URLs begins.
    pub(super) fn begin(wanted: Wanted, total: Option<u64>, now: Instant) -> Self {
        let mut watch = Self {
            pace: Pace::new(total, wanted.bounds, now),
            alarm: DisconnectAlarm::new(),
            wanted,
        };
        if let Some(tally) = &mut watch.wanted.tally {
            tally.tick(now);
        }
        watch
    }

    /// Another pass begins, over so many URLs.
    pub(super) fn begin_pass(&mut self, pass: u32, size: usize, now: Instant) {
        log::info!(target: "longhaul::run", "pass {pass}: {size} URLs that failed before");
        self.pace.begin_pass(size, now);
    }

    /// A URL has come to the end of its pass; `record` has the attempts of this pass alone.
    pub(super) fn pass_end(&mut self, finished: &Finished, record: &Record, held: bool) {
        self.pace.note(finished, held);
        if let Some(told) = &mut self.wanted.on_pass_end {
            told(record);
        }
    }

    /// A record was written.
    pub(super) fn written(&mut self, record: &Record, now: Instant) {
        if let Some(tally) = &mut self.wanted.tally {
            tally.add(record, now);
        }
    }

    /// The world was seen from this address.
    pub(super) fn note_exit(&mut self, exit: std::net::IpAddr) {
        self.pace.note_exit(&exit.to_string());
    }

    /// Time goes on.
    pub(super) fn tick(&mut self, stats: &PoolStats, now: Instant) {
        if let Some(rise) = self.alarm.note(stats.attempts, stats.disconnects, now) {
            log::warn!(target: "longhaul::alarm", "{rise}");
            if let Some(told) = &mut self.wanted.on_alarm {
                told(&rise);
            }
        }
        if let Some(tally) = &mut self.wanted.tally {
            tally.tick(now);
        }
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self) {
        if let Some(tally) = &mut self.wanted.tally {
            tally.end();
        }
    }

    /// What there is to tell of the progress.
    pub(super) fn complete(
        &mut self,
        progress: Progress,
        stats: &PoolStats,
        now: Instant,
    ) -> Progress {
        let (recent_rate, eta) = self.pace.look(stats, now);
        Progress {
            recent_rate,
            eta,
            exits: self.pace.exits(),
            alarm: self.alarm.is_raised(),
            disconnect_share: self.alarm.share(),
            ..progress.with_stats(*stats)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_rise_is_told_once_and_stands_in_the_progress() {
        let told: Arc<Mutex<Vec<DisconnectRise>>> = Arc::default();
        let seen = Arc::clone(&told);
        let on_alarm: OnAlarm = Box::new(move |rise| seen.lock().unwrap().push(*rise));
        let wanted = Wanted { on_alarm: Some(on_alarm), ..Wanted::default() };
        let start = SimClock::default().now();
        let mut watch = Watch::begin(wanted, None, start);
        let mut stats = PoolStats::default();
        let mut raised = Vec::new();
        for second in 0..1000_u64 {
            stats.attempts += 50;
            stats.disconnects += if (500..700).contains(&second) { 4 } else { 1 };
            let now = start + secs(second as f64);
            watch.tick(&stats, now);
            let progress = watch.complete(Progress::default(), &stats, now);
            if raised.last().is_none_or(|(_, last)| *last != progress.alarm) {
                raised.push((second, progress.alarm));
            }
            assert_eq!(progress.disconnects, stats.disconnects);
            if !(60..80).contains(&second) {
                assert_eq!(progress.disconnect_share.is_some(), second >= 80, "{second}");
            }
        }
        assert_eq!(told.lock().unwrap().len(), 1);
        assert_eq!(
            raised.iter().map(|(_, alarm)| *alarm).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert!(raised[1].0 > 500 && raised[1].0 < 560, "{raised:?}");
        assert!(raised[2].0 > 700 && raised[2].0 < 790, "{raised:?}");
    }
}
