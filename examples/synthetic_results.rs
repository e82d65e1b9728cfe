//! Results of a run that never was, for trying out what reads results: a night with an hour in which
//! a site is slow, one in which it throttles, and a proxy that dies.
//!
//! ```sh
//! cargo run --release --example synthetic_results -- 1000000 1 > results.jsonl
//! ```
//!
//! Everything random follows from the seed, and the moments from a fixed date, so the same numbers
//! give the same file.

use longhaul::rng::Rng;
use serde_json::{Map, Value, json};
use std::io::{self, BufWriter, Write};
use std::time::{Duration, SystemTime};

/// Seconds since 1970: 2026-03-01T22:00:00Z.
const BEGAN: u64 = 1_772_402_400;

/// What the run had promised for one URL, in milliseconds.
const PROMISED_MS: f64 = 334_800.0;

fn main() -> io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>());
    let (Some(Ok(count)), seed) = (numbers.next(), numbers.next()) else {
        eprintln!("usage: synthetic_results COUNT [SEED]");
        std::process::exit(2);
    };
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    for record in records(count, seed.and_then(Result::ok).unwrap_or(1)) {
        writeln!(out, "{record}")?;
    }
    out.flush()
}

/// So many records, in the order in which their URLs ended.
pub(crate) fn records(count: u64, seed: u64) -> impl Iterator<Item = Value> {
    let mut rng = Rng::seeded(seed);
    (0..count).map(move |number| {
        // A night of eight hours, however many URLs it has, and now faster, now slower.
        let share = (number + 1) as f64 / count as f64;
        let share = share + 0.03 * (6.0 * std::f64::consts::PI * share).sin();
        record(number, 8.0 * 3_600_000.0 * share, &mut rng)
    })
}

/// What is wrong at this time of the night.
#[derive(Clone, Copy)]
struct Weather {
    slow: bool,
    throttling: bool,
    dead_proxy: bool,
}

fn record(number: u64, ended_ms: f64, rng: &mut Rng) -> Value {
    let hour = ended_ms / 3_600_000.0;
    let weather = Weather {
        slow: (2.0..3.0).contains(&hour),
        throttling: (4.5..5.5).contains(&hour),
        dead_proxy: hour > 6.0,
    };
    // A few hosts have most of the URLs.
    let host = (40.0 * rng.unit().powi(3)) as u64;
    let url = format!("https://shop{host}.example/page/{number}");
    let mut attempts = Vec::new();
    let (mut elapsed, mut timings, mut ok) = (0.0, Value::Null, false);
    for n in 1..=5 {
        let (mut attempt, phases) = attempt(n, host, weather, rng);
        let took = attempt.get("elapsed_ms").and_then(Value::as_f64).unwrap_or_default();
        elapsed += took;
        timings = phases;
        let status = attempt.get("status").and_then(Value::as_u64);
        ok = status.is_some_and(|status| status < 400);
        let is_final = ok || matches!(status, Some(403 | 404)) || n == 5;
        if !is_final {
            let (wait, reason) = match status {
                Some(429) => (5000.0 * f64::from(n), "retry_after"),
                Some(503) if rng.unit() < 0.3 => (20_000.0, "cooldown"),
                _ => (600.0 * f64::from(1 << (n - 1)), "backoff"),
            };
            elapsed += wait;
            attempt.insert("wait_ms".to_owned(), json!(wait));
            attempt.insert("wait_reason".to_owned(), json!(reason));
        }
        attempts.push(attempt);
        if is_final {
            break;
        }
    }
    let last = attempts.last_mut();
    let of_last = |name: &str| last.as_ref().and_then(|last| last.get(name)).cloned();
    let (status, error) = (of_last("status"), of_last("error"));
    let (proxy, exit) = (of_last("proxy"), of_last("exit"));
    let refused = last.and_then(|last| last.remove("refused"));
    let class = match status.as_ref().and_then(Value::as_u64) {
        _ if ok => "ok",
        Some(403) => "refused",
        Some(404) => "permanent",
        _ => "retryable",
    };
    let bytes = if ok { 4000 + rng.below(60_000) } else { 0 };
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(BEGAN) + millis(ended_ms);
    let mut record = json!({
        "v": 1, "id": format!("{number:032x}"), "url": url,
        "final_url": status.as_ref().map(|_| &url), "method": "GET", "status": status,
        "reason": status.as_ref().map(|_| "-"), "ok": ok, "class": class, "error": error,
        "attempts": attempts, "proxy": proxy, "exit": exit, "bytes_wire": bytes,
        "bytes_body": bytes * 4, "body_file": null, "elapsed_ms": rounded(elapsed),
        "timings": timings, "pass": 1, "at": humantime::format_rfc3339_millis(at).to_string(),
        "promised_ms": PROMISED_MS,
    });
    if let (Some(refused), Some(record)) = (refused, record.as_object_mut()) {
        record.insert("refused".to_owned(), refused);
    }
    record
}

/// One attempt and its phases.
fn attempt(n: u32, host: u64, weather: Weather, rng: &mut Rng) -> (Map<String, Value>, Value) {
    let proxy = rng.below(25);
    let mut attempt = Map::new();
    let mut set = |name: &str, value: Value| {
        attempt.insert(name.to_owned(), value);
    };
    set("n", json!(n));
    set("proxy", json!(format!("http://***@gate{proxy}.example:3128")));
    set("exit", json!(format!("198.51.{}.{}", proxy % 4, exit_of(rng))));
    let luck = rng.unit();
    let dead = weather.dead_proxy && proxy == 7;
    let failed = match luck {
        _ if dead => Some(("proxy_unreachable", "ProxyError", "connect", 21.0)),
        luck if luck < 0.004 => Some(("connect_timeout", "ConnectTimeout", "connect", 5000.0)),
        luck if luck < 0.010 => Some(("connection", "ConnectionError", "headers", 340.0)),
        luck if weather.slow && host < 5 && luck < 0.3 => {
            Some(("read_timeout", "ReadTimeout", "headers", 25_000.0))
        }
        luck if luck < 0.014 => Some(("read_timeout", "ReadTimeout", "headers", 25_000.0)),
        luck if luck < 0.0145 => Some(("tls", "SSLError", "tls", 180.0)),
        _ => None,
    };
    if let Some((kind, requests_name, phase, took)) = failed {
        set(
            "error",
            json!({"kind": kind, "requests_name": requests_name, "phase": phase,
            "fault": "target", "message": format!("{kind} after {took} ms")}),
        );
        set("elapsed_ms", json!(rounded(took * rng.uniform(1.0, 1.05))));
        return (attempt, Value::Null);
    }
    let status = match luck {
        luck if weather.throttling && host.is_multiple_of(3) && luck > 0.6 => 429,
        luck if luck > 0.99 => 404,
        luck if luck > 0.975 => 403,
        luck if luck > 0.965 => 503,
        _ => 200,
    };
    // Most pages are quick, a few are very slow.
    let slowness = 1.0 / (1.0 - 0.999 * rng.unit());
    let kept = rng.unit() < 0.7;
    let (connect, handshake, tls) =
        (rng.uniform(8.0, 40.0), rng.uniform(20.0, 90.0), rng.uniform(15.0, 60.0));
    let before = if kept { 0.0 } else { connect + handshake + tls };
    let first_byte = before + 60.0 * slowness.sqrt() + rng.uniform(0.0, 200.0);
    let total = first_byte + rng.uniform(0.5, 120.0) * slowness.sqrt();
    let mut timings = json!({"first_byte_ms": rounded(first_byte), "total_ms": rounded(total)});
    if let (false, Some(timings)) = (kept, timings.as_object_mut()) {
        for (name, ms) in [
            ("dns_ms", rng.uniform(0.2, 12.0)),
            ("connect_ms", connect),
            ("proxy_ms", handshake),
            ("tls_ms", tls),
        ] {
            timings.insert(name.to_owned(), json!(rounded(ms)));
        }
    }
    set("status", json!(status));
    set("elapsed_ms", json!(rounded(total)));
    if kept {
        set("reused", json!(true));
    }
    if status == 403 || status == 429 {
        let shield = host.is_multiple_of(2);
        set(
            "refused",
            json!({
                "server": if shield { "cloudflare" } else { "nginx" },
                "cf_ray": shield.then(|| format!("{:016x}-FRA", rng.below(usize::MAX))),
                "x_cache": null, "via": null,
                "retry_after": (status == 429).then_some("5"),
                "set_cookie_names": if shield { json!(["__cf_bm"]) } else { json!([]) },
            }),
        );
    }
    (attempt, timings)
}

/// Some exits are taken far more often than others.
fn exit_of(rng: &mut Rng) -> u64 {
    1 + (250.0 * rng.unit().powi(2)) as u64
}

fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

fn millis(ms: f64) -> Duration {
    Duration::from_secs_f64(ms.max(0.0) / 1000.0)
}
