use super::*;
use crate::batch::record::tests::{SMALL, full};
use proptest::prelude::*;

fn record() -> Record {
    Record::parse(SMALL.as_bytes()).unwrap()
}

fn row(columns: &str, record: &Record) -> String {
    let mut out = Vec::new();
    columns.parse::<Columns>().unwrap().write(&mut out, record).unwrap();
    String::from_utf8(out).unwrap()
}

/// The paths of a JSON object, without those within lists.
fn paths(prefix: &str, value: &serde_json::Value, into: &mut Vec<String>) {
    for (name, value) in value.as_object().unwrap() {
        let path = format!("{prefix}{name}");
        match value {
            serde_json::Value::Object(_) => paths(&format!("{path}."), value, into),
            _ => into.push(path),
        }
    }
}

#[test]
fn every_plain_field_of_a_record_is_a_column_and_no_other() {
    let mut fields = Vec::new();
    paths("", &serde_json::to_value(full()).unwrap(), &mut fields);
    let mut columns: Vec<_> = KNOWN.iter().map(|(name, _)| (*name).to_owned()).collect();
    fields.sort();
    columns.sort();
    assert_eq!(columns, fields);
    // Of a full record each has something to say.
    let all = columns.join(",");
    assert!(!row(&all, &full()).contains(",,"), "{}", row(&all, &full()));
}

#[test]
fn the_usual_columns_tell_what_is_done() {
    let columns = Columns::default();
    assert_eq!(columns.names().count(), 19);
    for name in ["id", "ok", "class", "error.kind"] {
        assert!(columns.names().any(|column| column == name), "{name}");
    }
    assert_eq!(columns.to_string().parse::<Columns>().unwrap(), columns);
    let mut header = Vec::new();
    columns.write_header(&mut header).unwrap();
    assert_eq!(header, format!("{columns}\r\n").into_bytes());
}

#[test]
fn cells_are_quoted_where_they_have_to_be_and_empty_where_nothing_is() {
    let mut record = record();
    record.reason = Some("a \"b\",\nc".to_owned());
    record.meta = Some(r#"{"shop": "Köln, Süd","n":-1,"deep":{"a":1},"no":null}"#.parse().unwrap());
    for (columns, wanted) in [
        ("id,url,status,ok", "7,http://h/,200,true\r\n"),
        ("reason", "\"a \"\"b\"\",\nc\"\r\n"),
        ("error.kind,proxy,timings.dns_ms,timings.total_ms", ",,,1\r\n"),
        ("error.kind", "\"\"\r\n"),
        ("attempts", "1\r\n"),
        ("meta.shop,meta.n,meta.no,meta.none", "\"Köln, Süd\",-1,,\r\n"),
        ("meta.deep", "\"{\"\"a\"\":1}\"\r\n"),
        (" id , ok,", "7,true\r\n"),
    ] {
        assert_eq!(row(columns, &record), wanted, "{columns}");
    }
}

#[test]
fn no_text_is_a_formula() {
    for (reason, wanted) in [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0\r\n"),
        ("+1", "'+1\r\n"),
        ("-1", "'-1\r\n"),
        ("@SUM(A1)", "'@SUM(A1)\r\n"),
        ("'quoted", "''quoted\r\n"),
        ("plain = text", "plain = text\r\n"),
    ] {
        let record = Record { reason: Some(reason.to_owned()), ..record() };
        assert_eq!(row("reason", &record), wanted);
    }
}

#[test]
fn mistakes_name_what_may_be_meant() {
    for (text, part) in [
        ("id,kind", "there is no column \"kind\"; did you mean error.kind?"),
        ("statsu", "did you mean status?"),
        ("final-url", "did you mean final_url?"),
        ("total_ms", "did you mean timings.total_ms?"),
        ("colour", "docs/results.md lists them"),
        ("meta.", "there is no column \"meta.\"; did you mean meta?"),
        ("id,url,id", "the column id is given twice"),
        ("", "there is no column; give some"),
    ] {
        let error = text.parse::<Columns>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn what_is_read_back_is_what_was_written(id in "\\PC{0,12}", first in "[=+'@\t\r\n\",a-]{0,2}") {
        let id = format!("{first}{id}");
        let row = row("id,ok", &Record { id: id.clone(), ..record() });
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).from_reader(row.as_bytes());
        let read = reader.records().next().unwrap().unwrap();
        prop_assert_eq!(unguarded(&read[0]), id.as_str());
        prop_assert!(!read[0].starts_with(['=', '+', '-', '@']));
    }
}
