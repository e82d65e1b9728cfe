//! What is said of the progress, as a text and as an object: functions of the library's numbers.

use longhaul::batch::Progress;
use longhaul::error::WaitReason;
use longhaul::policy::format_duration;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// What stands right of the bar.
pub(super) fn message(now: &Progress, adaptive: bool) -> String {
    let mut text = format!("{:.1}/s", now.recent_rate);
    // At the end nobody asks how long it still takes.
    if let Some(eta) = now.eta().map(whole_seconds).filter(|eta| !eta.is_zero()) {
        let _ = write!(text, ", ETA {}", format_duration(eta));
    }
    let _ = write!(text, ", ok {}, failed {}", now.ok, now.failed);
    let _ = write!(text, ", in flight {}, waiting {}", now.in_flight, now.waiting);
    let reasons: Vec<_> = reasons(now)
        .map(|(reason, count)| format!("{} {count}", reason.name().replace('_', " ")))
        .collect();
    if !reasons.is_empty() {
        let _ = write!(text, " ({})", reasons.join(", "));
    }
    for (name, count) in
        [("for another pass", now.held), ("refusals", now.refusals), ("exits", now.exits)]
    {
        if count > 0 {
            let _ = write!(text, ", {name} {count}");
        }
    }
    if adaptive {
        let _ = write!(text, ", {} at once", now.concurrency);
    }
    if now.pass > 1 {
        let _ = write!(text, ", pass {}", now.pass);
    }
    if let Some(share) = now.disconnect_share.filter(|_| now.alarm) {
        let _ = write!(text, ", {:.1} % disconnects, more than before", 100.0 * share);
    }
    text
}

/// How many wait for which reason, as far as any do.
fn reasons(now: &Progress) -> impl Iterator<Item = (WaitReason, u64)> {
    let counts = WaitReason::ALL.iter().map(|reason| (*reason, now.waiting_for(*reason)));
    counts.filter(|(_, count)| *count > 0)
}

/// The line of a log file.
pub(super) fn line(now: &Progress, adaptive: bool) -> String {
    let total = now.total.map(|total| format!("/{total}")).unwrap_or_default();
    format!(
        "longhaul: {}{total} after {}: {}",
        now.done(),
        format_duration(whole_seconds(now.elapsed)),
        message(now, adaptive)
    )
}

/// The object of a program; `docs/progress.md` describes it.
pub(super) fn json(now: &Progress) -> String {
    let round = |value: f64| (value * 1000.0).round() / 1000.0;
    json!({
        "elapsed_s": round(now.elapsed.as_secs_f64()),
        "total": now.total,
        "done": now.done(),
        "ok": now.ok,
        "failed": now.failed,
        "held": now.held,
        "ready": now.ready,
        "waiting": now.waiting,
        "waiting_for": reasons(now).map(|(reason, count)| (reason.name(), count)).collect::<BTreeMap<_, _>>(),
        "in_flight": now.in_flight,
        "concurrency": now.concurrency,
        "attempts": now.attempts,
        "refusals": now.refusals,
        "disconnects": now.disconnects,
        "disconnect_share": now.disconnect_share.map(round),
        "alarm": now.alarm,
        "exits": now.exits,
        "per_second": round(now.rate()),
        "recent_per_second": round(now.recent_rate),
        "eta_s": now.eta().map(|eta| whole_seconds(eta).as_secs()),
        "pass": now.pass,
    })
    .to_string()
}

/// The object before the start.
pub(super) fn json_before(left: Duration) -> String {
    json!({"starts_in_s": whole_seconds(left).as_secs()}).to_string()
}

/// Rounded to seconds, of which nobody wants fractions here.
pub(super) fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.saturating_add(Duration::from_millis(500)).as_secs())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn halfway() -> Progress {
        let mut now = Progress::default();
        now.elapsed = Duration::from_millis(80_400);
        now.total = Some(2000);
        (now.ok, now.failed) = (760, 44);
        (now.waiting, now.in_flight, now.attempts) = (28, 24, 901);
        (now.concurrency, now.recent_rate) = (30, 12.04);
        now.pass = 1;
        now
    }

    #[test]
    fn the_line_of_a_log() {
        let mut now = halfway();
        assert_eq!(
            line(&now, false),
            format!(
                "longhaul: 804/2000 after {}: 12.0/s, ok 760, failed 44, in flight 24, waiting 28",
                format_duration(Duration::from_secs(80)),
            )
        );
        assert!(line(&now, true).ends_with(", waiting 28, 30 at once"));
        (now.total, now.pass, now.held, now.refusals, now.exits) = (None, 2, 3, 7, 12);
        (now.alarm, now.disconnect_share) = (true, Some(0.0817));
        assert!(line(&now, false).starts_with("longhaul: 804 after "));
        assert!(line(&now, false).ends_with(
            ", waiting 28, for another pass 3, refusals 7, exits 12, pass 2, 8.2 % disconnects, \
             more than before"
        ));
        now.alarm = false;
        assert!(line(&now, false).ends_with(", pass 2"));
    }

    #[test]
    fn the_object_of_a_program() {
        assert_eq!(
            json(&halfway()),
            r#"{"alarm":false,"attempts":901,"concurrency":30,"disconnect_share":null,"disconnects":0,"done":804,"elapsed_s":80.4,"eta_s":null,"exits":0,"failed":44,"held":0,"in_flight":24,"ok":760,"pass":1,"per_second":10.0,"ready":0,"recent_per_second":12.04,"refusals":0,"total":2000,"waiting":28,"waiting_for":{}}"#
        );
        let start = json(&Progress::default());
        let start: serde_json::Value = serde_json::from_str(&start).unwrap();
        assert_eq!(start["total"], serde_json::Value::Null);
        assert_eq!(json_before(Duration::from_millis(1600)), r#"{"starts_in_s":2}"#);
    }
}
