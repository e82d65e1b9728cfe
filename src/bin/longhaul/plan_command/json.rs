//! The forecast as one object; `docs/cli.md` documents it.

use super::forecast::{Figure, Forecast};
use longhaul::policy::{Bound, Budget, LongWait};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The forecast.
pub(super) fn object(forecast: &Forecast) -> Value {
    let figures: Map<String, Value> = forecast
        .figures
        .iter()
        .map(|figure| (figure.key.to_owned(), self::figure(figure)))
        .collect();
    json!({
        "policy": policy(forecast),
        "worst_case": figures,
        "enforced_s": seconds(forecast.policy.timeouts.deadline()),
        "sequence": sequence(forecast),
    })
}

fn policy(forecast: &Forecast) -> Value {
    let (retry, timeouts) = (&forecast.policy.retry, &forecast.policy.timeouts);
    let park_max = match retry.long_wait_policy() {
        LongWait::Park(most) => Some(most),
        LongWait::Clamp | LongWait::Fail => None,
    };
    let backoff = retry.backoff_shape();
    json!({
        "connect_timeout_s": seconds(timeouts.connect()),
        "read_timeout_s": seconds(timeouts.read()),
        "deadline_s": seconds(timeouts.deadline()),
        "deadline_is_default": forecast.policy.deadline_is_promise,
        "total": budget(retry.total_budget()),
        "connect": budget(retry.connect_budget()),
        "read": budget(retry.read_budget()),
        "status": budget(retry.status_budget()),
        "redirect": budget(retry.redirect_budget()),
        "other": budget(retry.other_budget()),
        "methods": retry.methods().to_string(),
        "forcelist": retry.statuses().to_string(),
        "backoff_factor_s": seconds(Some(backoff.factor())),
        "backoff_max_s": seconds(Some(backoff.max())),
        "retry_after_max_s": seconds(Some(retry.retry_after_ceiling())),
        "park_max_s": seconds(park_max),
    })
}

/// A number; null for no limit; `"off"`.
fn budget(budget: Budget) -> Value {
    match budget {
        Budget::Unlimited => Value::Null,
        Budget::Times(times) => json!(times),
        Budget::Off => json!("off"),
    }
}

fn figure(figure: &Figure) -> Value {
    match &figure.bound {
        Bound::At(time) => json!({"seconds": seconds(Some(*time)), "unbounded": null}),
        Bound::Unbounded { because } => json!({"seconds": null, "unbounded": because}),
    }
}

fn sequence(forecast: &Forecast) -> Vec<Value> {
    forecast
        .sequence()
        .iter()
        .map(|step| {
            json!({
                "outcome": step.outcome.name(),
                "times": step.times,
                "takes_s": seconds(Some(step.cost)),
                "wait_s": seconds(Some(step.wait)),
            })
        })
        .collect()
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}
