use super::*;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

fn fields(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// Five of nine bytes of the file with the tag `"a"`.
fn part() -> Plan {
    Plan { have: 5, length: Some(9), validator: Some("\"a\"".into()) }
}

fn whole() -> Plan {
    Plan { have: 9, ..part() }
}

#[test]
fn a_range_needs_a_part_and_a_validator() {
    assert_eq!(part().range(), Some((5, "\"a\"")));
    assert_eq!(Plan { have: 0, ..part() }.range(), None);
    assert_eq!(Plan { validator: None, ..part() }.range(), None);
}

#[test]
fn a_206_is_taken_only_where_it_goes_on_in_the_same_file() {
    let unknown = Plan { length: None, ..part() };
    let dated = "Sun, 15 Jun 2025 15:06:40 GMT";
    let by_date = Plan { validator: Some(dated.into()), ..part() };
    for (plan, pairs, fits) in [
        (part(), &[("content-range", "bytes 5-8/9")][..], true),
        (part(), &[("content-range", "Bytes  5-8/9 ")], true),
        (part(), &[("content-range", "bytes 5-8/9"), ("etag", "\"a\"")], true),
        (part(), &[("content-range", "bytes 5-8/9"), ("content-encoding", "identity")], true),
        (unknown.clone(), &[("content-range", "bytes 5-8/9")], true),
        (by_date.clone(), &[("content-range", "bytes 5-8/9"), ("last-modified", dated)], true),
        // Another beginning, end or total.
        (part(), &[("content-range", "bytes 4-8/9")], false),
        (part(), &[("content-range", "bytes 6-8/9")], false),
        (part(), &[("content-range", "bytes 0-8/9")], false),
        (part(), &[("content-range", "bytes 5-7/9")], false),
        (part(), &[("content-range", "bytes 5-9/10")], false),
        (part(), &[("content-range", "bytes 5-8/*")], false),
        (unknown, &[("content-range", "bytes 5-8/*")], false),
        (part(), &[("content-range", "bytes 5-9/9")], false),
        (part(), &[("content-range", "bytes 8-5/9")], false),
        // No range at all.
        (part(), &[], false),
        (part(), &[("content-range", "items 5-8/9")], false),
        (part(), &[("content-range", "bytes=5-8/9")], false),
        (part(), &[("content-range", "bytes 5-18446744073709551615/9")], false),
        (part(), &[("content-range", "bytes 5-8/99999999999999999999999")], false),
        // Another file, or other bytes.
        (part(), &[("content-range", "bytes 5-8/9"), ("etag", "\"b\"")], false),
        (part(), &[("content-range", "bytes 5-8/9"), ("etag", "W/\"a\"")], false),
        (by_date, &[("content-range", "bytes 5-8/9"), ("last-modified", "later")], false),
        (part(), &[("content-range", "bytes 5-8/9"), ("content-encoding", "gzip")], false),
    ] {
        let mut after = plan.clone();
        let verdict = after.answer(206, &fields(pairs)).unwrap();
        if fits {
            assert_eq!((verdict, after.length), (Verdict::Append, Some(9)), "{pairs:?}");
            assert_eq!((after.have, after.validator), (5, plan.validator));
        } else {
            assert_eq!((verdict, after), (Verdict::Again, Plan::default()), "{pairs:?}");
        }
    }
}

#[test]
fn a_416_is_the_end_only_where_the_total_is_what_is_there() {
    for (plan, range, verdict) in [
        (whole(), "bytes */9", Verdict::Complete),
        (Plan { length: None, ..whole() }, "bytes */9", Verdict::Complete),
        (whole(), "bytes */10", Verdict::Again),
        (whole(), "bytes */*", Verdict::Again),
        (whole(), "bytes 0-8/9", Verdict::Again),
        (whole(), "", Verdict::Again),
        (part(), "bytes */9", Verdict::Again),
        (part(), "bytes */5", Verdict::Again),
    ] {
        let mut after = plan.clone();
        assert_eq!(after.answer(416, &fields(&[("content-range", range)])).unwrap(), verdict);
        assert_eq!(after.have, if verdict == Verdict::Complete { 9 } else { 0 }, "{range}");
    }
    let other = fields(&[("content-range", "bytes */9"), ("etag", "\"b\"")]);
    assert_eq!(whole().answer(416, &other).unwrap(), Verdict::Again);
}

#[test]
fn a_200_is_a_new_beginning_with_its_own_length_and_validator() {
    for (pairs, length, validator) in [
        (&[("content-length", "7"), ("etag", "\"b\"")][..], Some(7), Some("\"b\"")),
        (&[("content-length", "7"), ("etag", "W/\"b\"")], Some(7), None),
        (&[("etag", "\"b\"")], None, Some("\"b\"")),
        (&[("content-length", "7"), ("transfer-encoding", "chunked")], None, None),
        (&[("content-length", "7"), ("etag", "\"b\""), ("content-encoding", "gzip")], None, None),
    ] {
        let mut plan = part();
        assert_eq!(plan.answer(200, &fields(pairs)).unwrap(), Verdict::Start);
        let wanted = Plan { have: 0, length, validator: validator.map(str::to_owned) };
        assert_eq!(plan, wanted, "{pairs:?}");
    }
}

#[test]
fn what_is_no_file_is_an_error() {
    let range = fields(&[("content-range", "bytes 0-8/9")]);
    for status in [206, 416] {
        let error = Plan::default().answer(status, &range).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{status}");
    }
    for status in [201, 204, 302, 304, 404, 500] {
        let error = part().answer(status, &range).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HttpStatus, "{status}");
    }
}

#[test]
fn the_end_has_to_be_where_it_was_promised() {
    whole().end().unwrap();
    Plan { length: None, ..part() }.end().unwrap();
    let error = part().end().unwrap_err();
    assert_eq!((error.kind(), error.received_bytes()), (ErrorKind::IncompleteBody, Some(5)));
    let mut plan = whole();
    assert!(!plan.is_beyond());
    plan.add(1);
    assert!(plan.is_beyond() && plan.end().is_err());
}

proptest! {
    /// Whatever a server says: a part is kept only for a range that begins where it ends, and an
    /// answer that cannot be used is never asked for a second time.
    #[test]
    fn no_answer_joins_what_does_not_belong_together(
        have in 0..12u64, length in proptest::option::of(0..12u64), tagged: bool,
        status in proptest::sample::select(vec![200u16, 203, 206, 416]),
        first in 0..12u64, last in 0..12u64, total in 0..12u64,
        tag in proptest::sample::select(vec!["\"a\"", "\"b\"", "W/\"a\""]), unsatisfied: bool,
    ) {
        let validator = tagged.then(|| "\"a\"".to_owned());
        let mut plan = Plan { have, length, validator };
        let before = plan.clone();
        let range = match unsatisfied {
            true => format!("bytes */{total}"),
            false => format!("bytes {first}-{last}/{total}"),
        };
        let headers = fields(&[("content-range", &range), ("etag", tag)]);
        match plan.answer(status, &headers) {
            Ok(Verdict::Append) => {
                prop_assert!(before.range().is_some() && status == 206 && tag == "\"a\"");
                prop_assert!(first == have && last + 1 == total && plan.have == have);
                prop_assert!(length.is_none_or(|length| length == total));
            }
            Ok(Verdict::Complete) => {
                prop_assert!(before.range().is_some() && status == 416 && total == have);
                prop_assert!(tag == "\"a\"");
            }
            Ok(Verdict::Start) => prop_assert_eq!(plan.have, 0),
            Ok(Verdict::Again) => prop_assert!(plan.range().is_none()),
            Err(_) => prop_assert!(before.range().is_none()),
        }
    }
}
