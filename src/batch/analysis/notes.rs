//! What the numbers leave out, in sentences.

use super::{Analysis, Report};
use crate::policy::format_duration;
use std::time::Duration;

/// Of how many steps a stretch without any end is told.
const LEAST_QUIET: usize = 5;

impl Analysis {
    /// What has to be known to read the numbers right.
    pub(super) fn notes(&self, report: &Report) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |holds: bool, text: &dyn Fn() -> String| {
            if holds {
                notes.push(text());
            }
        };
        let (urls, attempts) = (self.urls, self.attempts);
        note(self.torn_bytes > 0, &|| {
            let bytes = self.torn_bytes;
            format!(
                "The last {bytes} bytes are torn, as a crash leaves them, or a run that still \
                 writes; they are left out."
            )
        });
        note(self.timeless > 0, &|| {
            let timeless = self.timeless;
            format!("{timeless} of {urls} records tell no time; nothing along time has them.")
        });
        if let Some((from, steps)) = quiet(report) {
            let width = Duration::from_secs(report.over_time.width_s);
            let time = format_duration(width.saturating_mul(steps));
            notes.push(format!(
                "Nothing ended for {time} from {from} on; the URLs per second count this time too."
            ));
        }
        let mut note = |holds: bool, text: &dyn Fn() -> String| {
            if holds {
                notes.push(text());
            }
        };
        note(report.attempts_unlisted > 0, &|| {
            let unlisted = report.attempts_unlisted;
            format!(
                "{unlisted} of {attempts} attempts are not listed, since a record lists 64 at most; \
                 tables, waits and exceptions are without them."
            )
        });
        note(self.earlier > 0, &|| {
            let earlier = self.earlier;
            format!(
                "Attempts made in passes before the last one of their URL: {earlier}. When they were is \
                 not known; they count as made when the last pass began."
            )
        });
        note(self.timed > 0, &|| {
            let timed = self.timed;
            format!(
                "Records have the phases of the last attempt alone, and where a response came: \
                 {timed} of {urls} URLs."
            )
        });
        note(report.exits.unknown > 0, &|| {
            let (unknown, listed) = (report.exits.unknown, self.listed);
            format!("The exit is not known of {unknown} of {listed} attempts.")
        });
        let promise = &report.promise;
        note(promise.told == 0 && promise.longest.is_some(), &|| {
            "No record tells what was promised: there was no deadline, or an earlier version wrote them."
                .to_owned()
        });
        note(promise.told > 0 && promise.told < self.phases.url.count(), &|| {
            let (told, all) = (promise.told, self.phases.url.count());
            format!("{told} of {all} URLs that were attempted tell what was promised.")
        });
        for (what, rows) in [("hosts", &report.hosts), ("proxies", &report.proxies)] {
            note(rows.others.is_some(), &|| {
                let most = rows.rows.len();
                format!("There are more {what} than {most}; those that came later are together.")
            });
        }
        note(report.exits.or_more, &|| {
            let most = report.exits.distinct;
            format!("There are more exits than {most}; those that came later are not told apart.")
        });
        notes
    }
}

/// Since when and for how many steps nothing ended, where that is long for the whole.
fn quiet(report: &Report) -> Option<(&str, u32)> {
    let steps = &report.over_time.steps;
    let (mut longest, mut since, mut begun) = (0, None, None);
    let mut length = 0;
    for step in steps {
        if step.urls > 0 {
            (length, begun) = (0, None);
            continue;
        }
        length += 1;
        begun = begun.or(Some(step.from.as_str()));
        if length > longest {
            (longest, since) = (length, begun);
        }
    }
    let is_long = longest >= LEAST_QUIET && longest * 10 >= steps.len();
    Some((since.filter(|_| is_long)?, u32::try_from(longest).ok()?))
}
