//! The forecast as one object; `docs/cli.md` documents it.

use super::capacity::Run;
use super::forecast::{Figure, Forecast};
use super::night::Night;
use longhaul::policy::{Bound, Budget, Estimate, LongWait};
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
        "run": forecast.run.as_ref().map(run),
        "ceiling": forecast.ceiling.map(|(connections, by)| json!({
            "connections": connections,
            "by": by.name(),
        })),
        "simulation": forecast.night.as_ref().map(simulation),
    })
}

fn run(run: &Run) -> Value {
    let estimate = &run.estimate;
    json!({
        "pages": run.pages,
        "depth": run.depth,
        "workers": estimate.workers(),
        "failures": failures(estimate),
        "run_s": run.has_latency.then(|| seconds(Some(estimate.run_time()))),
        "latest_s": seconds(estimate.latest().filter(|_| run.has_latency)),
        "limited_by": run.has_latency.then(|| estimate.limited_by().name()),
        "pages_per_second": run.has_latency.then(|| estimate.urls_per_second()),
        "busy_workers": run.has_latency.then(|| estimate.busy_workers()),
        "useful_workers": run.has_latency.then_some(run.useful),
        "within": run.within.as_ref().map(|(time, estimate)| json!({
            "asked_s": seconds(Some(*time)),
            "workers": estimate.workers(),
            "run_s": seconds(Some(estimate.run_time())),
            "limited_by": estimate.limited_by().name(),
        })),
        "pool_connections": run.sizes.pool_connections,
        "pool_maxsize": run.sizes.pool_maxsize,
        "pool_maxsize_shared": run.sizes.pool_maxsize_shared,
    })
}

fn simulation(night: &Night) -> Value {
    let mut report = json!(night.report);
    if let Some(fields) = report.as_object_mut() {
        fields.insert("calculated_run_time".to_owned(), json!(seconds(Some(night.calculated))));
    }
    report
}

fn failures(estimate: &Estimate) -> Value {
    let bill = estimate.failures();
    let each = bill.each();
    json!({
        "pages": bill.urls(),
        "share_of_work": bill.share(),
        "each_s": seconds(Some(each.total())),
        "attempts": each.attempts(),
        "attempting_s": seconds(Some(each.attempting())),
        "waiting_s": seconds(Some(each.waiting())),
        "worker_s": seconds(Some(bill.worker_time())),
        "run_s": seconds(Some(bill.run_time())),
        "run_if_waits_hold_s": seconds(Some(estimate.failures_if_waits_hold().run_time())),
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
