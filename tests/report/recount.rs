//! Every number counted a second time, with all records in memory and without any bound.

use super::{Desk, synthetic, write_packed};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

const RECORDS: u64 = 4000;

fn counts<K: ToString + Ord>(names: impl Iterator<Item = K>) -> Value {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name.to_string()).or_default() += 1);
    json!(counts)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn attempts(record: &Value) -> &Vec<Value> {
    record["attempts"].as_array().unwrap()
}

fn since_1970(rfc3339: &Value) -> Duration {
    let at = humantime::parse_rfc3339(text(rfc3339)).unwrap();
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

fn moment(seconds: u64) -> String {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    humantime::format_rfc3339_seconds(at).to_string()
}

/// The value that so large a share does not exceed.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil().max(1.0) as usize;
    values[rank - 1]
}

fn near(have: &Value, wanted: f64, by: f64, what: &str) {
    let have = number(have);
    assert!((have - wanted).abs() <= wanted.abs() * by + 1e-6, "{what}: {have}, not {wanted}");
}

/// The spread of these times, against the one that is told.
fn same_spread(told: &Value, mut values: Vec<f64>, what: &str) {
    assert_eq!(told["count"], values.len(), "{what}");
    for (field, share) in [("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99)] {
        near(&told[field], percentile(&mut values, share), 0.0011, &format!("{what} {field}"));
    }
    near(&told["longest_ms"], percentile(&mut values, 1.0), 0.0, what);
}

#[test]
fn all_numbers_are_those_of_a_second_count() {
    let records: Vec<Value> = synthetic::records(RECORDS, 3).collect();
    let desk = Desk::new();
    desk.write("plain.jsonl", &records);
    write_packed(&desk.path("packed.jsonl.zst"), &records);
    let told = desk.json(&["plain.jsonl"]);
    let mut packed = desk.json(&["packed.jsonl.zst"]);
    packed["source"] = told["source"].clone();
    assert_eq!(packed, told, "the form of the file makes no difference");

    let all = || records.iter();
    let every_attempt = || records.iter().flat_map(attempts);
    assert_eq!(told["urls"], RECORDS);
    assert_eq!(told["ok"], all().filter(|record| record["ok"] == true).count());
    assert_eq!(told["failed"], all().filter(|record| record["ok"] == false).count());
    let recovered = all().filter(|record| record["ok"] == true && attempts(record).len() > 1);
    assert_eq!(told["recovered"], recovered.count());
    assert_eq!(told["attempts"], every_attempt().count());
    assert_eq!(told["attempts_unlisted"], 0);
    for field in ["bytes_wire", "bytes_body"] {
        let sum: u64 = all().map(|record| record[field].as_u64().unwrap()).sum();
        assert_eq!(told[field], sum, "{field}");
    }
    assert_eq!(told["classes"], counts(all().map(|record| text(&record["class"]))));
    assert_eq!(told["statuses"], counts(all().filter_map(|record| record["status"].as_u64())));
    let failures = all().filter_map(|record| record["error"]["requests_name"].as_str());
    assert_eq!(told["exceptions"], counts(failures));

    time(&told, &records);
    latency(&told, &records);
    waits(&told, &records);
    ways(&told, &records);
    refusals(&told, &records);
    slowest(&told, &records);
}

/// Span, rate, steps and hours.
fn time(told: &Value, records: &[Value]) {
    let end = |record: &Value| since_1970(&record["at"]);
    let took = |record: &Value| Duration::from_secs_f64(number(&record["elapsed_ms"]) / 1000.0);
    let first =
        records.iter().map(|record| end(record).saturating_sub(took(record))).min().unwrap();
    let last = records.iter().map(end).max().unwrap();
    let span = (last - first).as_secs_f64();
    near(&told["span_ms"], span * 1000.0, 1e-9, "span");
    near(&told["rate"], records.len() as f64 / span, 0.01, "rate");

    let width = told["over_time"]["width_s"].as_u64().unwrap();
    assert_eq!(width, 300, "eight hours in at most 240 steps");
    let mut steps: BTreeMap<u64, (u64, BTreeMap<&str, u64>, u64)> = BTreeMap::new();
    for record in records {
        let step = steps.entry(end(record).as_secs() / width * width).or_default();
        step.0 += 1;
        *step.1.entry(text(&record["class"])).or_default() += 1;
        step.2 += record["bytes_wire"].as_u64().unwrap();
    }
    let mut exits: BTreeMap<&str, u64> = BTreeMap::new();
    let mut hours: BTreeMap<String, BTreeMap<&str, u64>> = BTreeMap::new();
    for record in records {
        let mut at = end(record).saturating_sub(took(record));
        for attempt in attempts(record) {
            at += Duration::from_secs_f64(number(&attempt["elapsed_ms"]) / 1000.0);
            let second = at.min(end(record)).as_secs();
            if let Some(exit) = attempt["exit"].as_str() {
                let first = exits.entry(exit).or_insert(second);
                *first = second.min(*first);
            }
            if let Some(name) = attempt["error"]["requests_name"].as_str() {
                let hour = hours.entry(moment(second / 3600 * 3600)).or_default();
                *hour.entry(name).or_default() += 1;
            }
            at += Duration::from_secs_f64(attempt["wait_ms"].as_f64().unwrap_or(0.0) / 1000.0);
        }
    }
    let mut met = 0;
    for step in told["over_time"]["steps"].as_array().unwrap() {
        let from = since_1970(&step["from"]).as_secs();
        let (urls, classes, bytes) = steps.remove(&from).unwrap_or_default();
        assert_eq!((&step["urls"], &step["bytes_wire"]), (&json!(urls), &json!(bytes)), "{from}");
        assert_eq!(step["classes"], json!(classes), "{from}");
        met += step["new_exits"].as_u64().unwrap();
        let wanted = exits.values().filter(|first| **first < from + width).count() as u64;
        assert_eq!(met, wanted, "exits by {from}");
    }
    assert!(steps.is_empty(), "{steps:?}");
    assert_eq!(met, exits.len() as u64);
    let mut told_hours = BTreeMap::new();
    for step in told["exceptions_by_hour"]["steps"].as_array().unwrap() {
        if step["exceptions"] != json!({}) {
            told_hours.insert(text(&step["from"]).to_owned(), step["exceptions"].clone());
        }
    }
    let hours: BTreeMap<_, _> =
        hours.into_iter().map(|(hour, names)| (hour, json!(names))).collect();
    // Attempts that end within a microsecond of the hour may fall to either side.
    assert_eq!(told_hours, hours);
}

fn latency(told: &Value, records: &[Value]) {
    let mut phases: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for record in records {
        let mut add = |phase, value: Option<f64>| phases.entry(phase).or_default().extend(value);
        let timings = &record["timings"];
        for phase in ["dns", "connect", "proxy", "tls", "first_byte"] {
            add(phase, timings[format!("{phase}_ms")].as_f64());
        }
        let first = timings["first_byte_ms"].as_f64();
        add("body", first.map(|first| number(&timings["total_ms"]) - first));
        add("url", record["elapsed_ms"].as_f64());
        attempts(record).iter().for_each(|attempt| add("attempt", attempt["elapsed_ms"].as_f64()));
    }
    let list = told["latency"].as_array().unwrap();
    assert_eq!(list.len(), phases.len());
    for phase in list {
        let name = text(&phase["phase"]);
        same_spread(phase, phases.remove(name).unwrap(), name);
    }
    let mut per_url: BTreeMap<usize, u64> = BTreeMap::new();
    records.iter().for_each(|record| *per_url.entry(attempts(record).len()).or_default() += 1);
    let wanted: Vec<Value> = per_url
        .into_iter()
        .map(|(attempts, urls)| json!({"attempts": attempts, "or_more": false, "urls": urls}))
        .collect();
    assert_eq!(told["attempts_per_url"], json!(wanted));
}

fn waits(told: &Value, records: &[Value]) {
    let mut waits: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for attempt in records.iter().flat_map(attempts) {
        if let Some(reason) = attempt["wait_reason"].as_str() {
            waits.entry(reason).or_default().push(number(&attempt["wait_ms"]));
        }
    }
    let list = told["waits"].as_array().unwrap();
    assert_eq!(list.len(), waits.len());
    for told in list {
        let values = waits.remove(text(&told["reason"])).unwrap();
        near(&told["total_ms"], values.iter().sum(), 1e-9, "total");
        same_spread(told, values, text(&told["reason"]));
    }
}

#[derive(Default)]
struct Way {
    urls: u64,
    ok: u64,
    bytes: u64,
    attempts: u64,
    failed: u64,
    refused: u64,
    throttled: u64,
    answered_ms: f64,
    longest_ms: f64,
}

fn ways(told: &Value, records: &[Value]) {
    let mut tables: [BTreeMap<String, Way>; 3] = Default::default();
    for record in records {
        let url = url::Url::parse(text(&record["url"])).unwrap();
        let host = url.host_str().unwrap();
        let names = |of: &Value| {
            [Some(host), of["proxy"].as_str(), of["exit"].as_str()]
                .map(|name| name.map(str::to_owned))
        };
        for (table, name) in tables.iter_mut().zip(names(record)) {
            let way = table.entry(name.unwrap()).or_default();
            way.urls += 1;
            way.ok += u64::from(record["ok"] == true);
            way.bytes += record["bytes_wire"].as_u64().unwrap();
        }
        for attempt in attempts(record) {
            for (table, name) in tables.iter_mut().zip(names(attempt)) {
                let way = table.entry(name.unwrap()).or_default();
                let took = number(&attempt["elapsed_ms"]);
                way.attempts += 1;
                way.longest_ms = way.longest_ms.max(took);
                match attempt["error"].is_object() {
                    true => way.failed += 1,
                    false => way.answered_ms += took,
                }
                let refused = attempt["status"] == 403 || attempt["refused"].is_object();
                way.refused += u64::from(refused);
                way.throttled += u64::from(attempt["status"] == 429 || attempt["status"] == 503);
            }
        }
    }
    let [hosts, proxies, mut exits] = tables;
    for (list, mut wanted) in [("hosts", hosts), ("proxies", proxies)] {
        let rows = told[list]["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &told[list]["others"]), (wanted.len(), &Value::Null), "{list}");
        let busy: Vec<u64> = rows.iter().map(|row| row["attempts"].as_u64().unwrap()).collect();
        assert!(busy.is_sorted_by(|a, b| a >= b), "{list}: the busiest first");
        rows.iter().for_each(|row| same_way(row, &wanted.remove(text(&row["name"])).unwrap()));
    }
    assert_eq!(told["exits"]["distinct"], exits.len());
    let all: u64 = exits.values().map(|way| way.attempts).sum();
    assert_eq!((&told["exits"]["known"], &told["exits"]["unknown"]), (&json!(all), &json!(0)));
    let mut busiest: Vec<u64> = exits.values().map(|way| way.attempts).collect();
    busiest.sort_unstable_by(|a, b| b.cmp(a));
    let share = busiest.iter().take(10).sum::<u64>() as f64 / all as f64;
    near(&told["exits"]["top_ten_share"], share, 1e-5, "share of the top ten");
    let ten = told["exits"]["top_ten"].as_array().unwrap();
    for (row, attempts) in ten.iter().zip(&busiest) {
        assert_eq!(row["attempts"], *attempts);
        same_way(row, &exits.remove(text(&row["name"])).unwrap());
    }
}

fn same_way(row: &Value, way: &Way) {
    for (field, wanted) in [
        ("urls", way.urls),
        ("ok", way.ok),
        ("attempts", way.attempts),
        ("answered", way.attempts - way.failed),
        ("failed", way.failed),
        ("refused", way.refused),
        ("throttled", way.throttled),
        ("bytes_wire", way.bytes),
    ] {
        assert_eq!(row[field], wanted, "{field} of {row}");
    }
    let answered = way.attempts - way.failed;
    if answered > 0 {
        near(&row["mean_ms"], way.answered_ms / answered as f64, 1e-4, "mean");
    }
    near(&row["longest_ms"], way.longest_ms, 0.0, "longest");
}

fn refusals(told: &Value, records: &[Value]) {
    let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut all = 0;
    let mut add = |status: &Value, refused: &Value| {
        let fields: Map<_, _> = [
            ("status".to_owned(), status.clone()),
            ("server".to_owned(), refused["server"].clone()),
            ("cookies".to_owned(), refused["set_cookie_names"].clone()),
        ]
        .into_iter()
        .collect();
        let kind = kinds.entry(json!(fields).to_string()).or_default();
        kind.0 += 1;
        kind.1 += u64::from(refused["cf_ray"].is_string());
        all += 1;
    };
    for record in records {
        if record["refused"].is_object() {
            add(&record["status"], &record["refused"]);
        }
        for attempt in attempts(record).iter().filter(|attempt| attempt["refused"].is_object()) {
            add(&attempt["status"], &attempt["refused"]);
        }
    }
    assert!(all > 0);
    assert_eq!((&told["refusals"]["count"], &told["refusals"]["others"]), (&json!(all), &json!(0)));
    for kind in told["refusals"]["kinds"].as_array().unwrap() {
        let fields = json!({"status": kind["status"], "server": kind["server"],
            "cookies": kind["set_cookie_names"]});
        let wanted = kinds.remove(&fields.to_string());
        let have = (kind["count"].as_u64().unwrap(), kind["cf_ray"]["count"].as_u64().unwrap());
        assert_eq!(wanted, Some(have), "{kind}");
    }
    assert!(kinds.is_empty(), "{kinds:?}");
}

fn slowest(told: &Value, records: &[Value]) {
    let mut times: Vec<f64> = records.iter().map(|record| number(&record["elapsed_ms"])).collect();
    times.sort_by(|a, b| b.total_cmp(a));
    let list = told["slowest"].as_array().unwrap();
    assert_eq!(list.len(), 20);
    let mut urls = BTreeSet::new();
    for (slow, time) in list.iter().zip(&times) {
        assert_eq!(number(&slow["elapsed_ms"]), *time);
        let record = records.iter().find(|record| record["id"] == slow["id"]).unwrap();
        for field in ["url", "class", "at"] {
            assert_eq!(slow[field], record[field]);
        }
        assert_eq!(slow["attempts"], attempts(record).len());
        urls.insert(text(&slow["url"]));
    }
    assert_eq!(urls.len(), 20);
    let promise = &told["promise"];
    assert_eq!((&promise["told"], &promise["broken"]), (&json!(records.len()), &json!(0)));
    assert_eq!(promise["promised_ms"], records[0]["promised_ms"]);
    assert_eq!(promise["longest"], list[0]);
}
