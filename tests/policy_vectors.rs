//! The retry policy against what urllib3 really did; see `tests/vectors/README.md`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a vector that is not as described fails the test"
)]

use http::Method;
use longhaul::error::{ErrorKind, Phase};
use longhaul::policy::{
    Backoff, Bound, Budget, Category, Counters, Decision, Exhausted, Methods, Outcome, Retry,
    RetryAfter, RetryState, Timeouts, WaitSource, WorstCase, WorstCaseInput, WorstStep,
};
use longhaul::rng::Rng;
use longhaul::secs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

fn vectors(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/vectors/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn wall(vector: &Value) -> SystemTime {
    let now = vector["in"]["now"].as_u64().unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_secs(now)
}

/// What went over the wire: code points up to 0xFF are one byte each.
fn wire(text: &str) -> Vec<u8> {
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    bytes.unwrap_or_else(|_| text.as_bytes().to_vec())
}

// ---- Retry-After ----

#[test]
fn retry_after() {
    let mut differences = BTreeMap::new();
    for vector in vectors("retry_after") {
        let value = vector["in"]["value"].as_str().unwrap();
        let max = Duration::from_secs(vector["in"]["retry_after_max"].as_u64().unwrap());
        let parsed = RetryAfter::parse([&wire(value)[..]], None, wall(&vector));
        match vector["out"]["seconds"].as_f64() {
            Some(seconds) => {
                let parsed = parsed.map(|wait| wait.min(max));
                assert_eq!(parsed, Some(secs(seconds)), "{vector}");
                let sleeps = parsed.is_some_and(|wait| !wait.is_zero());
                assert_eq!(sleeps, vector["out"]["sleeps"], "{vector}");
            }
            // Not set aside: where urllib3 raises there is an answer here.
            None if is_decimal(value) => {
                let whole = value.trim().parse::<f64>().unwrap();
                assert_eq!(parsed, Some(secs(whole).min(RetryAfter::LONGEST)), "{vector}");
                *differences.entry("decimal-retry-after").or_insert(0) += 1;
            }
            // Python refuses to read that many digits.
            None if value.trim().bytes().all(|b| b.is_ascii_digit()) && value.len() > 4300 => {
                assert_eq!(parsed, Some(RetryAfter::LONGEST), "{vector}");
                *differences.entry("endless-retry-after").or_insert(0) += 1;
            }
            None => {
                assert_eq!(parsed, None, "{vector}");
                *differences.entry("unreadable-retry-after").or_insert(0) += 1;
            }
        }
    }
    println!("{differences:?}");
}

fn is_decimal(value: &str) -> bool {
    value.trim().split_once('.').is_some_and(|(whole, fraction)| {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        digits(whole) && digits(fraction)
    })
}

// ---- The engine of retries ----

fn budget(value: &Value) -> Budget {
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
    attempt["location"].is_string() && matches!(status, Some(301 | 302 | 303 | 307 | 308))
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
    vector: &Value,
    step: &Value,
    attempt: &Value,
    own: bool,
) -> Decision {
    let wall = wall(vector);
    if vector["in"]["redirect"] == true && is_followable(attempt) {
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

/// Plays a vector; gives the number of steps that agreed and the difference that ended it.
fn play(vector: &Value, own: bool) -> (usize, Option<&'static str>) {
    let config = &vector["in"]["config"];
    let mut state = retry(config).start();
    let steps = vector["out"]["steps"].as_array().unwrap();
    let played = vector["in"]["attempts"].as_array().unwrap();
    let plain = json!({"kind": "status", "status": 200, "retry_after": null, "location": null});
    let mut total_sleep = Duration::ZERO;
    for (index, wanted) in steps.iter().enumerate() {
        let attempt = played.get(index).unwrap_or(&plain);
        if let Some(name) = difference(&vector["in"], attempt, own) {
            return (index, Some(name));
        }
        let decision = step(&mut state, vector, wanted, attempt, own);
        let place = format!("step {index} of {vector}\ngot {decision:?}");
        let is_error = attempt["kind"] != "status";
        match (wanted["decision"].as_str().unwrap(), decision) {
            ("retry" | "redirect", Decision::Retry { wait, source }) => {
                let source = match source {
                    WaitSource::Backoff => "backoff",
                    WaitSource::RetryAfter => "retry_after",
                    _ => "none",
                };
                assert!(close(wait, &wanted["sleep"]), "{place}");
                assert_eq!(source, wanted["sleep_source"], "{place}");
                assert_eq!(json_counters(state.counters()), wanted["counters"], "{place}");
                let backoff = state.policy().backoff_shape().longest(state.consecutive());
                assert!(close(backoff, &wanted["backoff"]), "{place}");
                assert_eq!(json!(state.charged()), wanted["history_len"], "{place}");
                total_sleep += wait;
            }
            ("return", Decision::Final) => assert!(!is_error, "{place}"),
            ("reraise", Decision::Final) => assert!(is_error, "{place}"),
            ("return_exhausted", Decision::Exhausted { raise, .. }) => assert!(!raise, "{place}"),
            ("raise_max_retry", Decision::Exhausted { raise, reason }) => {
                assert!(raise, "{place}");
                assert!(!matches!(reason, Exhausted::RetryAfter(_)), "{place}");
            }
            _ => panic!("{place}"),
        }
    }
    assert_eq!(json!(steps.len()), vector["out"]["attempts_made"], "{vector}");
    assert!(close(total_sleep, &vector["out"]["total_sleep"]), "{vector}");
    (steps.len(), None)
}

fn play_all(own: bool) -> (usize, BTreeMap<&'static str, usize>) {
    let mut whole = 0;
    let mut differences = BTreeMap::new();
    for vector in vectors("retry_trace") {
        match play(&vector, own) {
            (_, None) => whole += 1,
            (_, Some(name)) => *differences.entry(name).or_insert(0) += 1,
        }
    }
    println!("{whole} to their end, the rest up to {differences:?}");
    (whole, differences)
}

#[test]
fn retry_trace_with_urllib3s_categories() {
    let (whole, differences) = play_all(false);
    assert!(whole * 100 >= (whole + differences.values().sum::<usize>()) * 85, "{differences:?}");
}

#[test]
fn retry_trace_with_our_categories() {
    let (whole, differences) = play_all(true);
    assert!(whole * 100 >= (whole + differences.values().sum::<usize>()) * 75, "{differences:?}");
}

#[test]
fn where_urllib3_trips_over_a_field_the_ordinary_backoff_applies() {
    for vector in vectors("retry_trace") {
        let config = &vector["in"]["config"];
        let policy = retry(config);
        let steps = vector["out"]["steps"].as_array().unwrap();
        let Some(tripped) =
            steps.iter().position(|step| step["decision"] == "raise_bad_retry_after")
        else {
            continue;
        };
        let attempt = &vector["in"]["attempts"][tripped];
        let wanted = parsed_retry_after(attempt, wall(&vector));
        assert_eq!(wanted.is_some(), is_decimal(attempt["retry_after"].as_str().unwrap()));
        let decision = step(&mut policy.start(), &vector, &steps[tripped], attempt, false);
        let status = attempt["status"].as_u64().unwrap().try_into().unwrap();
        match decision {
            // Retried because of the list, or because of a decimal that can be read.
            Decision::Retry { .. } | Decision::Exhausted { .. } => {
                assert!(
                    wanted.is_some()
                        || policy.statuses().contains(status)
                        || is_followable(attempt)
                );
            }
            Decision::Final => assert!(!policy.statuses().contains(status), "{vector}"),
            other => panic!("{other:?}"),
        }
    }
}

// ---- The worst case ----

fn millis(value: &Value) -> Duration {
    value.as_u64().map_or(Duration::MAX, Duration::from_millis)
}

fn worst_case_input(given: &Value, seed_series: bool) -> WorstCaseInput {
    let flag = |name: &str| given[name].as_bool().unwrap();
    let factor = millis(&given["backoff_factor_ms"]);
    let backoff = if seed_series { Backoff::exponential(factor) } else { Backoff::urllib3(factor) };
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
    WorstCaseInput::new(&retry, &timeouts)
        .phases(given["phases"].as_u64().unwrap().try_into().unwrap())
        .addresses(given["addresses"].as_u64().unwrap().try_into().unwrap())
        .drain(millis(&given["drain_ms"]))
        .follow_redirects(flag("follow_redirects"))
        .max_redirects(None)
        .method_retryable(flag("method_retryable"))
        .forced_status(flag("forced_status"))
        .urllib3_engine(true)
}

#[test]
fn worst_case() {
    for vector in vectors("worst_case") {
        let (given, wanted) = (&vector["in"], &vector["out"]);
        let seed_series = given["series"] == "seed";
        let worst = WorstCase::compute(&worst_case_input(given, seed_series));
        let steps = worst.sequence_with_redirects();
        match worst.with_redirects() {
            Bound::At(found) => {
                assert_eq!(wanted["unbounded"], false, "{vector}");
                assert_eq!(found, millis(&wanted["max_ms"]), "{steps:?} {vector}");
                assert_eq!(found, steps.iter().map(WorstStep::sum).sum::<Duration>(), "{vector}");
            }
            Bound::Unbounded { because } => {
                assert_eq!(wanted["unbounded"], true, "{because} {vector}");
                assert!(steps.is_empty() && !because.is_empty());
            }
        }
        if let Some(hops) = given["session_max_redirects"].as_u64().filter(|hops| *hops > 0)
            && wanted["max_ms_with_session_redirects"].is_number()
        {
            let session = worst.as_requests(hops.try_into().unwrap());
            assert_eq!(session, Bound::At(millis(&wanted["max_ms_with_session_redirects"])));
        }
        // The formula of these lines is always that of the seed series, and knows no cap.
        let mut uncapped = given.clone();
        uncapped["backoff_cap_ms"] = Value::Null;
        let formula = WorstCase::compute(&worst_case_input(&uncapped, true)).formula();
        let simple = wanted["simple_formula_ms"].as_u64().map(Duration::from_millis);
        assert_eq!(formula.duration(), simple, "{vector}");
    }
}
