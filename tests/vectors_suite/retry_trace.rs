//! Whole requests, attempt by attempt, against urllib3's `Retry`.
//!
//! Read twice: with urllib3's own view of what an error is charged to, which proves the engine,
//! and with ours, which shows what our view of errors changes.

use std::time::{Duration, SystemTime};

use http::Method;
use longhaul::error::{ErrorKind, Phase};
use longhaul::policy::{
    Backoff, Budget, Category, Counters, Decision, Exhausted, Methods, Outcome, Retry, RetryAfter,
    RetryState, WaitSource,
};
use longhaul::rng::Rng;
use longhaul::secs;
use serde_json::{Value, json};

use crate::policy::{is_decimal, wall};
use crate::verdict::{Vector, Verdict, wire};

pub(crate) fn by_urllib3s_categories(vector: &Vector) -> Option<Verdict> {
    Some(judge(vector, false))
}

pub(crate) fn by_our_categories(vector: &Vector) -> Option<Verdict> {
    Some(judge(vector, true))
}

fn judge(vector: &Vector, own: bool) -> Verdict {
    match play(vector, own) {
        Ok(None) => Verdict::Passed,
        Ok(Some(name)) => Verdict::Aside(name),
        Err(story) => Verdict::Failed(story),
    }
}

fn ensure(holds: bool, story: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(story()) }
}

/// Plays a vector to its end, or up to the first other answer that falls under a difference.
fn play(vector: &Vector, own: bool) -> Result<Option<&'static str>, String> {
    let mut state = retry(&vector.given["config"]).start();
    let steps = vector.out["steps"].as_array().unwrap();
    let played = vector.given["attempts"].as_array().unwrap();
    let plain = json!({"kind": "status", "status": 200, "retry_after": null, "location": null});
    let mut slept = Duration::ZERO;
    for (index, wanted) in steps.iter().enumerate() {
        let attempt = played.get(index).unwrap_or(&plain);
        let before = state.clone();
        let decision = step(&mut state, vector, wanted, attempt, own);
        if !same(&decision, &state, wanted, attempt) {
            if let Some(name) = difference(&vector.given, attempt, own) {
                tripped(before, vector, wanted, attempt)?;
                return Ok(Some(name));
            }
            return Err(format!("step {index} of {}\n  got {decision:?}", vector.line));
        }
        if let Decision::Retry { wait, .. } = decision {
            slept += wait;
        }
    }
    ensure(vector.out["attempts_made"] == steps.len(), || format!("attempts of {}", vector.line))?;
    ensure(close(slept, &vector.out["total_sleep"]), || format!("{slept:?} of {}", vector.line))?;
    Ok(None)
}

/// Whether a decision, and the state after it, are those of urllib3.
fn same(decision: &Decision, state: &RetryState, wanted: &Value, attempt: &Value) -> bool {
    let is_error = attempt["kind"] != "status";
    match (wanted["decision"].as_str().unwrap(), decision) {
        ("retry" | "redirect", Decision::Retry { wait, source }) => {
            let source = match source {
                WaitSource::Backoff => "backoff",
                WaitSource::RetryAfter => "retry_after",
                _ => "none",
            };
            let backoff = state.policy().backoff_shape().longest(state.consecutive());
            close(*wait, &wanted["sleep"])
                && source == wanted["sleep_source"]
                && json_counters(state.counters()) == wanted["counters"]
                && close(backoff, &wanted["backoff"])
                && state.charged() == wanted["history_len"]
        }
        ("return", Decision::Final) => !is_error,
        ("reraise", Decision::Final) => is_error,
        ("return_exhausted", Decision::Exhausted { raise, .. }) => !raise,
        ("raise_max_retry", Decision::Exhausted { raise, reason }) => {
            *raise && !matches!(reason, Exhausted::RetryAfter(_))
        }
        _ => false,
    }
}

/// Where urllib3 trips over a field, the ordinary backoff applies here, or the decimal.
fn tripped(
    mut state: RetryState,
    vector: &Vector,
    wanted: &Value,
    attempt: &Value,
) -> Result<(), String> {
    if wanted["decision"] != "raise_bad_retry_after"
        || vector.given["config"]["allowed_methods"] == json!([])
    {
        return Ok(());
    }
    let field = attempt["retry_after"].as_str().unwrap();
    let readable = parsed_retry_after(attempt, wall(vector));
    let statuses = state.policy().statuses().clone();
    let decision = step(&mut state, vector, wanted, attempt, false);
    let holds = readable.is_some() == is_decimal(field)
        && match decision {
            // Retried because of the list, or because of a decimal that can be read.
            Decision::Retry { .. } | Decision::Exhausted { .. } => {
                let status = attempt["status"].as_u64().unwrap().try_into().unwrap();
                readable.is_some() || statuses.contains(status) || is_followable(attempt)
            }
            Decision::Final => {
                let status = attempt["status"].as_u64().unwrap().try_into().unwrap();
                !statuses.contains(status)
            }
            _ => false,
        };
    ensure(holds, || format!("tripped: {decision:?} {}", vector.line))
}

pub(crate) fn budget(value: &Value) -> Budget {
    match value {
        Value::Null => Budget::Unlimited,
        Value::Bool(on) => Budget::from(*on),
        number => Budget::Times(number.as_u64().unwrap().try_into().unwrap()),
    }
}

fn seconds(value: &Value) -> Duration {
    secs(value.as_f64().unwrap())
}

fn method(name: &Value) -> Method {
    Method::from_bytes(name.as_str().unwrap().as_bytes()).unwrap()
}

fn retry(config: &Value) -> Retry {
    let methods = match &config["allowed_methods"] {
        Value::Null => Methods::Any,
        Value::Array(names) => Methods::Only(names.iter().map(method).collect()),
        default => {
            assert_eq!(default, "default");
            Methods::idempotent()
        }
    };
    let forcelist = config["status_forcelist"].as_array().unwrap();
    let statuses: Vec<u16> =
        forcelist.iter().map(|status| status.as_u64().unwrap().try_into().unwrap()).collect();
    Retry::urllib3()
        .total(budget(&config["total"]))
        .connect(budget(&config["connect"]))
        .read(budget(&config["read"]))
        .redirect(budget(&config["redirect"]))
        .status(budget(&config["status"]))
        .other(budget(&config["other"]))
        .allowed_methods(methods)
        .status_forcelist(statuses)
        .backoff(Backoff::urllib3(seconds(&config["backoff_factor"])))
        .backoff_max(seconds(&config["backoff_max"]))
        .retry_after_max(seconds(&config["retry_after_max"]))
        .respect_retry_after_header(config["respect_retry_after_header"].as_bool().unwrap())
        .raise_on_status(config["raise_on_status"].as_bool().unwrap())
        .raise_on_redirect(config["raise_on_redirect"].as_bool().unwrap())
}

/// The category by urllib3's own rules: the class of the exception.
fn urllib3s_category(attempt: &Value) -> Category {
    let name = match attempt["kind"].as_str().unwrap() {
        "proxy" => &attempt["inner"],
        _ => &attempt["error"],
    };
    let proxied = attempt["kind"] == "proxy";
    match name.as_str().unwrap() {
        "ConnectTimeoutError" | "NewConnectionError" | "NameResolutionError" => Category::Connect,
        _ if attempt["kind"] == "read" && !proxied => Category::Read,
        _ => Category::Other,
    }
}

/// What longhaul makes of the same event.
fn own_outcome(attempt: &Value) -> Outcome {
    let proxied = attempt["kind"] == "proxy";
    let name = if proxied { &attempt["inner"] } else { &attempt["error"] };
    let (kind, phase) = match (proxied, name.as_str().unwrap()) {
        (false, "ConnectTimeoutError") => (ErrorKind::ConnectTimeout, Phase::Connect),
        (false, "NewConnectionError") => (ErrorKind::Connection, Phase::Connect),
        (false, "NameResolutionError") => (ErrorKind::NameLookup, Phase::Dns),
        (false, "ReadTimeoutError") => (ErrorKind::ReadTimeout, Phase::Headers),
        (false, "SSLError" | "ssl.SSLError") => (ErrorKind::Certificate, Phase::Tls),
        (false, "BadStatusLine") => (ErrorKind::Protocol, Phase::Headers),
        (false, "TimeoutError") => (ErrorKind::ConnectTimeout, Phase::Tls),
        (false, _) => (ErrorKind::Connection, Phase::Headers),
        // "Tunnel connection failed: 407".
        (true, "OSError") => (ErrorKind::ProxyAuth, Phase::Proxy),
        (true, "NameResolutionError") => (ErrorKind::NameLookup, Phase::Dns),
        (true, "ReadTimeoutError") => (ErrorKind::ConnectTimeout, Phase::Proxy),
        (true, "SSLError") => (ErrorKind::Certificate, Phase::Tls),
        (true, _) => (ErrorKind::ProxyUnreachable, Phase::Connect),
    };
    Outcome::of_error(kind, phase, None)
}

fn is_followable(attempt: &Value) -> bool {
    let status = attempt["status"].as_u64();
    // An empty Location is none.
    attempt["location"].as_str().is_some_and(|to| !to.is_empty())
        && matches!(status, Some(301 | 302 | 303 | 307 | 308))
}

fn outcome(attempt: &Value, own_categories: bool, wall: SystemTime) -> Outcome {
    let Some(status) = attempt["status"].as_u64() else {
        if own_categories {
            return own_outcome(attempt);
        }
        let category = urllib3s_category(attempt);
        return Outcome::Error { category, permanent: false, retry_after: None };
    };
    let status = status.try_into().unwrap();
    let retry_after = parsed_retry_after(attempt, wall);
    match is_followable(attempt) {
        true => Outcome::UnfollowedRedirect { status, retry_after },
        false => Outcome::Status { status, retry_after },
    }
}

fn parsed_retry_after(attempt: &Value, wall: SystemTime) -> Option<Duration> {
    let field = wire(attempt["retry_after"].as_str()?);
    RetryAfter::parse([&field[..]], None, wall)
}

/// The difference under which the rest of a vector falls from this attempt on, if any.
fn difference(given: &Value, attempt: &Value, own: bool) -> Option<&'static str> {
    let config = &given["config"];
    if config["allowed_methods"] == json!([]) {
        return Some("empty-methods");
    }
    if attempt["kind"] == "uncaught" {
        // A body that cannot be decoded leaves urllib3 past its Retry.
        return Some("body-failures-are-read-errors");
    }
    if attempt["kind"] == "status" {
        let field = attempt["retry_after"].as_str()?.trim();
        let followed = given["redirect"] == true && is_followable(attempt);
        let respected = config["respect_retry_after_header"] == true || followed;
        let readable = RetryAfter::parse([field.as_bytes()], None, SystemTime::UNIX_EPOCH);
        return match readable {
            _ if is_decimal(field) && respected => Some("decimal-retry-after"),
            // A present field triggers retries in urllib3 before anybody has read it.
            None if respected => Some("unreadable-retry-after"),
            _ => None,
        };
    }
    if !own {
        return None;
    }
    match own_outcome(attempt) {
        Outcome::Error { permanent: true, .. } => Some("permanent-failures"),
        Outcome::Error { category, .. } if category != urllib3s_category(attempt) => {
            Some("category-by-phase")
        }
        _ => None,
    }
}

fn step(
    state: &mut RetryState,
    vector: &Vector,
    step: &Value,
    attempt: &Value,
    own: bool,
) -> Decision {
    let wall = wall(vector);
    if vector.given["redirect"] == true && is_followable(attempt) {
        return state.redirect(parsed_retry_after(attempt, wall));
    }
    let outcome = outcome(attempt, own, wall);
    // Every wait here is without jitter, so the seed does not matter.
    state.decide(&method(&step["method"]), &outcome, &mut Rng::seeded(0))
}

fn json_budget(budget: Budget) -> Value {
    match budget {
        Budget::Unlimited => Value::Null,
        Budget::Times(times) => json!(times),
        Budget::Off => json!(false),
    }
}

fn json_counters(counters: Counters) -> Value {
    json!({
        "total": json_budget(counters.total),
        "connect": json_budget(counters.connect),
        "read": json_budget(counters.read),
        "redirect": json_budget(counters.redirect),
        "status": json_budget(counters.status),
        "other": json_budget(counters.other),
    })
}

fn close(found: Duration, wanted: &Value) -> bool {
    (found.as_secs_f64() - wanted.as_f64().unwrap()).abs() < 1e-6
}
