//! `docs/report.md` names every field of the object, and no other.

use super::{Desk, synthetic};
use serde_json::Value;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../docs/report.md");

/// The names of all fields, but not those that are names of things.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    const BY_NAME: [&str; 3] = ["classes", "statuses", "exceptions"];
    match value {
        Value::Array(list) => list.iter().for_each(|value| fields(value, found)),
        Value::Object(object) => {
            for (name, value) in object {
                found.insert(name.clone());
                if !BY_NAME.contains(&name.as_str()) {
                    fields(value, found);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_page_of_the_report_names_every_field() {
    let desk = Desk::new();
    desk.write("r.jsonl", &synthetic::records(500, 1).collect::<Vec<_>>());
    let mut found = BTreeSet::new();
    fields(&desk.json(&["r.jsonl", "r.jsonl"]), &mut found);
    let (_, section) = PAGE.split_once("\n## The object\n").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    // A row may name several fields.
    let documented: BTreeSet<String> = rows
        .flat_map(|row| row.split(" | ").next().unwrap().split(", "))
        .map(|name| name.trim_matches('`').to_owned())
        .collect();
    assert_eq!(documented, found);
}
