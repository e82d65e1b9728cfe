//! The files of a run: what a resumption makes of every state that a results file can be left in.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end in a panic")]

use longhaul::ErrorKind;
use longhaul::batch::{Done, Existing, Journal, Key, Record, Source};
use longhaul::time::{Clock, SimClock};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const RESUME: Existing = Existing::Resume { retry_failed: false };
const RETRY: Existing = Existing::Resume { retry_failed: true };

/// A record of this item, with a name in the URL that takes several bytes a character.
fn line(id: &str, class: &str, kind: Option<&str>) -> String {
    let error = kind.map_or("null".to_owned(), |kind| {
        format!(
            r#"{{"kind":"{kind}","requests_name":"X","phase":"connect","fault":"target","message":"ü"}}"#
        )
    });
    let ok = class == "ok";
    let text = format!(
        r#"{{"v":1,"id":"{id}","url":"http://h/größe/{id}","final_url":null,"method":"GET","status":null,"reason":null,"ok":{ok},"class":"{class}","error":{error},"attempts":[],"proxy":null,"exit":null,"bytes_wire":0,"bytes_body":0,"body_file":null,"elapsed_ms":1.5,"timings":null,"pass":1,"at":"2025-06-15T15:06:40.000Z"}}"#
    );
    let record = Record::parse(text.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&record).unwrap(), text);
    text + "\n"
}

fn record(id: &str) -> Record {
    Record::parse(line(id, "ok", None).as_bytes()).unwrap()
}

fn results(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    fs::write(&path, content).unwrap();
    (folder, path)
}

/// The items of 1 to 5 that a run over this file would do.
fn left(journal: &Journal) -> Vec<String> {
    let source = Source::urls((1..=5).map(|id| format!(r#"{{"url":"u","id":{id}}}"#)));
    source
        .items(journal.done().clone())
        .map(|entry| match entry {
            longhaul::batch::Entry::Item(item) => item.id(),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn ids(path: &Path) -> Vec<String> {
    let content = fs::read(path).unwrap();
    assert!(content.is_empty() || content.ends_with(b"\n"));
    content
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| Record::parse(line).unwrap().id)
        .collect()
}

/// Resumes and does everything that is left.
fn resume(path: &Path, existing: Existing) -> Vec<String> {
    let journal = Journal::open(path, existing).unwrap();
    let left = left(&journal);
    let mut sink = journal.begin().unwrap();
    let clock = SimClock::default();
    for id in &left {
        sink.write(&record(id), clock.now()).unwrap();
    }
    left
}

#[test]
fn c151_a_line_torn_at_any_byte_costs_that_line_and_nothing_else() {
    let whole =
        [line("1", "ok", None), line("2", "permanent", None), line("3", "ok", None)].concat();
    let last = whole.len() - line("3", "ok", None).len();
    for cut in last..=whole.len() {
        let (_folder, path) = results(&whole.as_bytes()[..cut]);
        let torn = cut < whole.len() - 1;
        let done_again = resume(&path, RESUME);
        let wanted: &[&str] = if torn { &["3", "4", "5"] } else { &["4", "5"] };
        assert_eq!(done_again, wanted, "{cut}");
        assert_eq!(ids(&path), ["1", "2", "3", "4", "5"], "{cut}");
    }
}

#[test]
fn c151_a_file_torn_at_any_byte_ends_with_every_item_once() {
    let whole = (1..=3).map(|id| line(&id.to_string(), "ok", None)).collect::<String>();
    for cut in 0..=whole.len() {
        let (_folder, path) = results(&whole.as_bytes()[..cut]);
        resume(&path, RESUME);
        assert_eq!(ids(&path), ["1", "2", "3", "4", "5"], "{cut}");
    }
}

#[test]
fn c151_torn_bytes_and_what_is_kept_are_told_before_anything_is_changed() {
    let content =
        line("1", "ok", None) + &line("2", "retryable", Some("read_timeout")) + "{\"v\":1,\"i";
    let (_folder, path) = results(&content);
    let journal = Journal::open(&path, RESUME).unwrap();
    let found = journal.found();
    assert_eq!((found.ok, found.failed, found.again, found.torn), (1, 1, 0, 9));
    drop(journal);
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
}

#[test]
fn zeros_that_a_crash_left_at_the_end_are_a_torn_line() {
    let mut content = line("1", "ok", None).into_bytes();
    content.extend_from_slice(&[0; 4096]);
    let (_folder, path) = results(content);
    assert_eq!(resume(&path, RESUME), ["2", "3", "4", "5"]);
    assert_eq!(ids(&path), ["1", "2", "3", "4", "5"]);
}

/// Asserts that these results are not gone on with, and that the third line is why.
#[track_caller]
fn assert_refused_at_line_3(path: &Path, what: &str) {
    let error = Journal::open(path, RESUME).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidJson);
    let text = error.to_string();
    assert!(text.starts_with(&format!("{}:3: {what}", path.display())), "{text}");
    assert!(text.ends_with("repair or remove this line, or name another file"), "{text}");
}

#[test]
fn c151_garbage_in_the_middle_is_reported_with_its_line_and_left_alone() {
    let good = line("1", "ok", None);
    let (torn, _) = good.split_at(20);
    for (garbage, what) in [
        (format!("{torn}{}", line("2", "ok", None)).into_bytes(), "not a record: "),
        (b"hello\n".to_vec(), "not a record: "),
        (b"{\"id\":\"2\"}\n".to_vec(), "not a record: missing field `v`"),
        (b"{\"v\":1,\"id\":\"\xff\"}\n".to_vec(), "not a record: "),
        (b"\0\0\0\n".to_vec(), "not a record: "),
        (good.replace("\"v\":1", "\"v\":9").into_bytes(), "a record of version 9; "),
    ] {
        let content = [good.as_bytes(), b"\n", &garbage, good.as_bytes()].concat();
        let (_folder, path) = results(&content);
        assert_refused_at_line_3(&path, what);
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn c152_a_second_writer_is_refused_in_every_mode() {
    let (_folder, path) = results("");
    let journal = Journal::open(&path, RESUME).unwrap();
    let refused = || {
        for existing in [Existing::Refuse, Existing::Overwrite, RESUME, RETRY] {
            let error = Journal::open(&path, existing).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert_eq!(
                error.to_string(),
                format!(
                    "{} is being written by another run; wait for its end, or name another file",
                    path.display()
                )
            );
        }
    };
    refused();
    let sink = journal.begin().unwrap();
    refused();
    drop(sink);
    assert!(Journal::open(&path, RESUME).is_ok());
}

#[test]
fn the_file_stays_locked_when_it_is_rewritten() {
    let (_folder, path) = results(line("1", "retryable", Some("read_timeout")));
    let sink = Journal::open(&path, RETRY).unwrap().begin().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    assert_eq!(Journal::open(&path, RESUME).unwrap_err().kind(), ErrorKind::Config);
    drop(sink);
}

#[test]
fn failed_items_again_only_on_request() {
    let content = [
        line("1", "ok", None),
        line("2", "retryable", Some("read_timeout")),
        line("3", "permanent", None),
        line("4", "ok", None),
    ]
    .concat();
    let (_folder, path) = results(&content);
    assert_eq!(resume(&path, RESUME), ["5"]);
    assert_eq!(ids(&path), ["1", "2", "3", "4", "5"]);
    let (folder, path) = results(content + "{\"torn");
    assert_eq!(resume(&path, RETRY), ["2", "3", "5"]);
    assert_eq!(ids(&path), ["1", "4", "2", "3", "5"]);
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["results.jsonl"]);
}

#[test]
fn failures_of_the_run_are_always_done_again() {
    let content = [
        line("1", "proxy_auth", Some("proxy_auth")),
        line("2", "ok", None),
        line("3", "retryable", Some("no_proxy_alive")),
        line("4", "retryable", Some("proxy_unreachable")),
    ]
    .concat();
    let (_folder, path) = results(content);
    assert_eq!(resume(&path, RESUME), ["1", "3", "5"]);
    assert_eq!(ids(&path), ["2", "4", "1", "3", "5"]);
}

#[test]
fn a_leftover_of_a_broken_rewriting_is_no_obstacle() {
    let (folder, path) = results(line("1", "permanent", None) + &line("2", "ok", None));
    fs::write(folder.path().join("results.jsonl.rewriting"), "{\"half").unwrap();
    assert_eq!(resume(&path, RETRY), ["1", "3", "4", "5"]);
    assert_eq!(ids(&path), ["2", "1", "3", "4", "5"]);
}

#[cfg(unix)]
#[test]
fn a_rewritten_file_keeps_its_link_and_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = results(line("1", "permanent", None));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    resume(&link, RETRY);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(ids(&path), ["1", "2", "3", "4", "5"]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn results_are_never_overwritten_by_accident() {
    let content = line("1", "ok", None);
    let (_folder, path) = results(&content);
    let error = Journal::open(&path, Existing::Refuse).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(
        error.to_string(),
        format!(
            "{} already holds results; resume the run, overwrite them on purpose, or name another \
             file",
            path.display()
        )
    );
    drop(Journal::open(&path, Existing::Overwrite).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), content, "not before the run begins");
    drop(Journal::open(&path, Existing::Overwrite).unwrap().begin().unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    assert!(Journal::open(&path, Existing::Refuse).is_ok());
}

#[test]
fn a_run_that_does_not_begin_leaves_no_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    drop(Journal::open(&path, Existing::Refuse).unwrap());
    assert!(!path.exists());
    drop(Journal::open(&path, RESUME).unwrap().begin().unwrap());
    assert!(path.exists());
    drop(Journal::open(&path, RESUME).unwrap());
    assert!(path.exists(), "it was there before");
}

#[test]
fn an_unwritable_place_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("results.jsonl");
    let error = Journal::open(&path, Existing::Refuse).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(
        error.to_string(),
        format!(
            "{} cannot be opened for writing: No such file or directory (os error 2); name a file \
             in a folder that is there and may be written to",
            path.display()
        )
    );
    assert_eq!(Journal::open(folder.path(), Existing::Refuse).unwrap_err().kind(), ErrorKind::Io);
}

#[cfg(unix)]
#[test]
fn a_device_takes_records_and_cannot_be_resumed() {
    for existing in [Existing::Refuse, Existing::Overwrite] {
        let mut sink = Journal::open("/dev/null", existing).unwrap().begin().unwrap();
        sink.write(&record("1"), SimClock::default().now()).unwrap();
    }
    let error = Journal::open("/dev/null", RESUME).unwrap_err();
    assert_eq!(error.to_string(), "/dev/null is not a file, so nothing tells what is done");
}

#[test]
fn blank_lines_a_byte_order_mark_and_crlf_are_no_garbage() {
    let content =
        format!("\u{feff}{}\r\n\n  \n{}", line("1", "ok", None).trim_end(), line("2", "ok", None));
    let (_folder, path) = results(content);
    assert_eq!(left(&Journal::open(&path, RESUME).unwrap()), ["3", "4", "5"]);
}

#[test]
fn an_item_without_an_id_is_known_by_what_it_asks_for() {
    let key = Key::of_request(&http::Method::GET, "http://h/a", b"");
    let (_folder, path) = results(line(&key.to_string(), "ok", None));
    let journal = Journal::open(&path, RESUME).unwrap();
    let source = Source::urls([
        "http://h/b",
        "http://h/a",
        r#"{"url":"http://h/a","method":"get"}"#,
        r#"{"url":"http://h/a","body":"x"}"#,
    ]);
    let mut items = source.items(journal.done().clone());
    assert_eq!(items.by_ref().count(), 2);
    assert_eq!((items.skipped_done(), items.skipped_repeated()), (1, 1));
}

#[test]
fn the_check_of_an_input_names_file_line_and_remedy_and_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("urls.txt");
    for (bad, kind) in [
        ("htp://h/", ErrorKind::InvalidScheme),
        ("www.example.com/x", ErrorKind::MissingScheme),
        ("http://user:S3CRET@h:99999/", ErrorKind::InvalidUrl),
        ("http://user:S3/CRET@h/", ErrorKind::InvalidUrl),
        ("http://", ErrorKind::InvalidUrl),
        ("{\"url\":\"http://h/\"", ErrorKind::InvalidJson),
    ] {
        fs::write(&path, format!("{}{bad}\nhttp://h/\n", "http://h/\n".repeat(6))).unwrap();
        let error = Source::file(&path).check(&Done::default()).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(text.starts_with(&format!("{}:7: ", path.display())), "{text}");
        assert!(text.ends_with("; correct or remove this line"), "{text}");
        assert!(!text.contains("CRET"), "{text}");
    }
}

/// Results under zstd.
#[cfg(feature = "zstd")]
mod packed {
    use super::*;

    fn frame(lines: &str) -> Vec<u8> {
        zstd::encode_all(lines.as_bytes(), 1).unwrap()
    }

    fn packed(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl.zst");
        fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn ids(path: &Path) -> Vec<String> {
        let text = zstd::decode_all(fs::read(path).unwrap().as_slice()).unwrap();
        assert!(text.is_empty() || text.ends_with(b"\n"));
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| Record::parse(line).unwrap().id).collect()
    }

    /// Resumes and does everything that is left, in a frame of its own.
    fn resume(path: &Path, existing: Existing) -> Vec<String> {
        let journal = Journal::open(path, existing).unwrap();
        let left = left(&journal);
        let mut sink = journal.begin().unwrap();
        let clock = SimClock::default();
        for id in &left {
            sink.write(&record(id), clock.now()).unwrap();
        }
        sink.sync(clock.now()).unwrap();
        left
    }

    #[test]
    fn a_run_writes_frames_that_a_resumption_reads() {
        let (_folder, path) = packed("");
        assert_eq!(resume(&path, RESUME), ["1", "2", "3", "4", "5"]);
        assert!(fs::read(&path).unwrap().starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
        assert_eq!(ids(&path), ["1", "2", "3", "4", "5"]);
        assert!(resume(&path, RESUME).is_empty());
    }

    #[test]
    fn a_file_torn_at_any_byte_of_its_last_frames_ends_with_every_item_once() {
        let frames = [
            frame(&line("1", "ok", None)),
            frame(&(line("2", "permanent", None) + &line("3", "ok", None))),
            frame(&line("4", "ok", None)),
        ];
        let whole = frames.concat();
        let ends = [0, frames[0].len(), whole.len() - frames[2].len(), whole.len()];
        for cut in 0..=whole.len() {
            let (_folder, path) = packed(&whole[..cut]);
            let kept = ends.iter().rposition(|end| *end <= cut).unwrap();
            let wanted = &["1", "2", "3", "4", "5"][[0, 1, 3, 4][kept]..];
            assert_eq!(resume(&path, RESUME), wanted, "{cut}");
            assert_eq!(ids(&path), ["1", "2", "3", "4", "5"], "{cut}");
        }
    }

    #[test]
    fn failed_items_again_only_on_request() {
        let content = [
            frame(&(line("1", "ok", None) + &line("2", "retryable", Some("read_timeout")))),
            frame(&line("3", "ok", None)),
        ];
        let (folder, path) = packed(content.concat());
        assert_eq!(resume(&path, RESUME), ["4", "5"]);
        assert_eq!(resume(&path, RETRY), ["2"]);
        assert_eq!(ids(&path), ["1", "3", "4", "5", "2"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn garbage_is_reported_with_its_line_and_left_alone() {
        let good = frame(&(line("1", "ok", None) + &line("2", "ok", None)));
        let at = good.len();
        for (garbage, what) in [
            (frame("hello\n"), "not a record: ".to_owned()),
            (b"{\"v\":1}\n".to_vec(), format!("no whole frame of zstd, at byte {at} of the file")),
            ([&good[..at - 9], &good].concat(), format!("no whole frame of zstd, at byte {at} of")),
        ] {
            let content = [&good[..], &garbage].concat();
            let (_folder, path) = packed(&content);
            assert_refused_at_line_3(&path, &what);
            assert_eq!(fs::read(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_file_that_something_else_compressed_is_gone_on_with() {
        // One frame over everything, whose last line is torn or lacks its end.
        let two = line("1", "ok", None) + &line("2", "ok", None);
        for (text, done_again) in [
            (two.trim_end(), &["3", "4", "5"][..]),
            (&two[..two.len() - 20], &["2", "3", "4", "5"]),
        ] {
            let (_folder, path) = packed(frame(text));
            assert_eq!(resume(&path, RESUME), done_again);
            assert_eq!(ids(&path), ["1", "2", "3", "4", "5"]);
        }
    }
}

#[cfg(not(feature = "zstd"))]
#[test]
fn without_zstd_a_name_that_asks_for_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = Journal::open(folder.path().join("results.jsonl.zst"), RESUME).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("build with the feature zstd"), "{error}");
}
