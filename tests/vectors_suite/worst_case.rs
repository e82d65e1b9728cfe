//! The worst case against a search over all sequences of outcomes.

use std::time::Duration;

use longhaul::policy::{Backoff, Bound, Retry, Timeouts, WorstCase, WorstCaseInput, WorstStep};
use serde_json::Value;

use crate::retry_trace::budget;
use crate::verdict::{Vector, Verdict};

pub(crate) fn worst_case(vector: &Vector) -> Option<Verdict> {
    let wanted = &vector.out;
    let worst = compute(&vector.given);
    let steps = worst.sequence_with_redirects();
    let found = worst.with_redirects();
    let same = match &found {
        Bound::At(found) => {
            wanted["unbounded"] == false
                && *found == millis(&wanted["max_ms"])
                && *found == steps.iter().map(WorstStep::sum).sum::<Duration>()
        }
        Bound::Unbounded { because } => {
            wanted["unbounded"] == true && steps.is_empty() && !because.is_empty()
        }
    };
    Verdict::new(same, None, || format!("{found:?} {steps:?} of {}", vector.line))
}

/// requests follows redirects itself, and arms all budgets anew for each hop.
pub(crate) fn as_requests(vector: &Vector) -> Option<Verdict> {
    let hops = vector.given["session_max_redirects"].as_u64().filter(|hops| *hops > 0)?;
    let wanted = vector.out["max_ms_with_session_redirects"].as_u64()?;
    let found = compute(&vector.given).as_requests(hops.try_into().unwrap());
    let same = found == Bound::At(Duration::from_millis(wanted));
    Verdict::new(same, None, || format!("{found:?} of {}", vector.line))
}

/// The formula of these vectors is always that of the seed series, and knows no cap.
pub(crate) fn formula(vector: &Vector) -> Option<Verdict> {
    let mut uncapped = vector.given.clone();
    uncapped["backoff_cap_ms"] = Value::Null;
    uncapped["series"] = Value::from("seed");
    let found = compute(&uncapped).formula();
    let wanted = vector.out["simple_formula_ms"].as_u64().map(Duration::from_millis);
    let same = found.duration() == wanted;
    Verdict::new(same, None, || format!("{found:?} of {}", vector.line))
}

fn millis(value: &Value) -> Duration {
    value.as_u64().map_or(Duration::MAX, Duration::from_millis)
}

fn compute(given: &Value) -> WorstCase {
    let flag = |name: &str| given[name].as_bool().unwrap();
    let factor = millis(&given["backoff_factor_ms"]);
    let backoff = if given["series"] == "seed" {
        Backoff::exponential(factor)
    } else {
        Backoff::urllib3(factor)
    };
    let retry = Retry::urllib3()
        .total(budget(&given["total"]))
        .connect(budget(&given["connect"]))
        .read(budget(&given["read"]))
        .redirect(budget(&given["redirect"]))
        .status(budget(&given["status"]))
        .other(budget(&given["other"]))
        .backoff(backoff.with_max(millis(&given["backoff_cap_ms"])))
        .respect_retry_after_header(flag("respect_retry_after"))
        .retry_after_max(millis(&given["retry_after_cap_ms"]))
        .redirects_count_in_total(flag("redirect_counts_in_total"))
        .raise_on_status(flag("raise_on_status"))
        .raise_on_redirect(flag("raise_on_redirect"));
    let timeouts =
        Timeouts::from((millis(&given["connect_timeout_ms"]), millis(&given["read_timeout_ms"])));
    let input = WorstCaseInput::new(&retry, &timeouts)
        .phases(given["phases"].as_u64().unwrap().try_into().unwrap())
        .addresses(given["addresses"].as_u64().unwrap().try_into().unwrap())
        .drain(millis(&given["drain_ms"]))
        .follow_redirects(flag("follow_redirects"))
        .max_redirects(None)
        .method_retryable(flag("method_retryable"))
        .forced_status(flag("forced_status"))
        .urllib3_engine(true);
    WorstCase::compute(&input)
}
