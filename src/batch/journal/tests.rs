use super::*;
use crate::batch::record::ErrorRecord;
use crate::batch::record::tests::SMALL;
use crate::batch::{Key, Output};
use crate::time::{Clock, SimClock};
use proptest::prelude::*;
use std::fs::File;
use std::path::PathBuf;
use tempfile::TempDir;

const RESUME: Existing = Existing::Resume { retry_failed: false };
const RETRY: Existing = Existing::Resume { retry_failed: true };

/// A record of this id; a failed one has words of the server in several lines.
fn record(id: &str, ok: bool) -> Record {
    let mut record = Record { id: id.to_owned(), ok, ..Record::parse(SMALL.as_bytes()).unwrap() };
    if !ok {
        record.class = "retryable".into();
        record.error = Some(ErrorRecord {
            kind: "connection".into(),
            requests_name: "ConnectionError".into(),
            phase: "headers".into(),
            fault: "target".into(),
            message: "it said \"no\",\r\nand left".to_owned(),
        });
    }
    record
}

fn write(writer: &mut RecordWriter, records: &[Record]) {
    let now = SimClock::default().now();
    for record in records {
        writer.write(record, now).unwrap();
    }
    writer.sync(now).unwrap();
}

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A file with these records.
    fn filled(&self, name: &str, records: &[Record]) -> Vec<u8> {
        let mut writer =
            Journal::open(self.path(name), Existing::Overwrite).unwrap().begin().unwrap();
        write(&mut writer, records);
        drop(writer);
        fs::read(self.path(name)).unwrap()
    }
}

/// What is read back from a table: ids and errors.
fn table(text: &str) -> Vec<(String, String)> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let at = |name: &str| names.iter().position(|column| column == name).unwrap();
    reader
        .records()
        .map(|row| {
            let row = row.unwrap();
            (row[at("id")].to_owned(), row[at("error.message")].to_owned())
        })
        .collect()
}

#[test]
fn a_table_torn_at_any_byte_is_whole_again() {
    let place = Place::new();
    let all = [record("1", true), record("2", false), record("=3", true), record("4", false)];
    let whole = place.filled("t.csv", &all);
    // Where rows end: line feeds between quotes are none.
    let mut ends = Vec::new();
    let mut quotes = 0;
    for (at, byte) in whole.iter().enumerate() {
        quotes += usize::from(*byte == b'"');
        if *byte == b'\n' && quotes % 2 == 0 {
            ends.push(at + 1);
        }
    }
    assert_eq!(ends.len(), 1 + all.len());
    for cut in 0..=whole.len() {
        fs::write(place.path("t.csv"), &whole[..cut]).unwrap();
        let journal = Journal::open(place.path("t.csv"), RESUME).unwrap();
        let kept = ends.iter().rposition(|end| *end <= cut);
        let end = kept.map_or(0, |at| ends[at]);
        let rows = kept.unwrap_or(0);
        let found = journal.found();
        assert_eq!(
            (found.ok + found.failed, found.torn),
            (rows as u64, (cut - end) as u64),
            "{cut}"
        );
        let left: Vec<_> =
            all.iter().filter(|one| !journal.done().contains(Key::of_id(&one.id))).collect();
        assert_eq!(left.len(), all.len() - rows);
        let left: Vec<_> = left.into_iter().cloned().collect();
        write(&mut journal.begin().unwrap(), &left);
        assert_eq!(fs::read(place.path("t.csv")).unwrap(), whole, "{cut}");
    }
}

#[test]
fn failed_rows_are_taken_out_of_a_table_and_its_names_stay() {
    for name in ["t.csv", "t.csv.zst"] {
        if cfg!(not(feature = "zstd")) && name.ends_with("zst") {
            continue;
        }
        let place = Place::new();
        place.filled(name, &[record("1", false), record("2", true), record("3", false)]);
        let journal = Journal::open(place.path(name), RETRY).unwrap();
        assert_eq!((journal.found().ok, journal.found().again), (1, 2));
        write(&mut journal.begin().unwrap(), &[record("3", true)]);
        let mut bytes = fs::read(place.path(name)).unwrap();
        #[cfg(feature = "zstd")]
        if name.ends_with("zst") {
            bytes = zstd::decode_all(bytes.as_slice()).unwrap();
        }
        let text = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
        let ids: Vec<_> = table(&text).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["2", "3"], "{text}");
    }
}

#[test]
fn what_a_table_holds_is_what_was_written() {
    let place = Place::new();
    let whole = place.filled("t.csv", &[record("1", true), record("2", false)]);
    let rows = table(std::str::from_utf8(&whole).unwrap());
    let wanted = [("1", ""), ("2", "it said \"no\",\r\nand left")];
    assert_eq!(rows, wanted.map(|(id, message)| (id.to_owned(), message.to_owned())));
}

#[test]
fn tables_that_cannot_be_gone_on_with() {
    let place = Place::new();
    let whole = String::from_utf8(place.filled("t.csv", &[record("1", true)])).unwrap();
    let mut lines = whole.lines();
    let (names, row) = (lines.next().unwrap(), lines.next().unwrap());
    for (text, wanted) in [
        ("id,url,status\r\n1,http://h/,200\r\n".to_owned(), "has no column ok"),
        (format!("{names},extra\r\n"), "has other columns than those that are to be written"),
        (format!("{names}\r\n1,2,3\r\n"), "t.csv:2: a row of 3 cells, where there are 19 columns"),
        (
            format!("{names}\r\n{row}\r\n\"{row}\r\n{row}\r\n{row}\r\n"),
            "t.csv:3: a quote that does not end, with whole rows behind it",
        ),
        (format!("{SMALL}\n"), "has no column id"),
    ] {
        fs::write(place.path("t.csv"), &text).unwrap();
        let error = Journal::open(place.path("t.csv"), RESUME).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!(place.read("t.csv"), text, "nothing was changed");
    }
    // Other columns, where they are asked for.
    let columns: Format = Format::Csv("id,ok,class,error.kind".parse().unwrap());
    fs::write(place.path("t.csv"), "").unwrap();
    let journal = Journal::open_as(place.path("t.csv"), RESUME, columns).unwrap();
    write(&mut journal.begin().unwrap(), &[record("=1", false)]);
    let wanted = "id,ok,class,error.kind\r\n'=1,false,retryable,connection\r\n";
    assert_eq!(place.read("t.csv"), wanted);
}

#[test]
fn a_tally_cannot_be_recounted_from_a_table() {
    let place = Place::new();
    place.filled("t.csv", &[record("1", false)]);
    let journal = Journal::open(place.path("t.csv"), RESUME).unwrap();
    let error = journal.each_record(|_| ()).unwrap_err();
    assert!(error.to_string().contains("leave the tally out"), "{error}");
}

/// A journal over parts of this size.
fn in_parts(path: &Path, existing: Existing, size: u64) -> RecordWriter {
    Journal::open(path, existing).unwrap().part_size(size).begin().unwrap()
}

#[test]
fn results_go_on_in_another_file_and_are_read_as_one() {
    for name in ["r.jsonl", "r.csv", "r.jsonl.zst"] {
        if cfg!(not(feature = "zstd")) && name.ends_with("zst") {
            continue;
        }
        let place = Place::new();
        let path = place.path(name);
        let mut writer = in_parts(&path, Existing::Refuse, 300);
        for number in 0..7 {
            // A sync ends a frame.
            write(&mut writer, &[record(&number.to_string(), number % 3 > 0)]);
        }
        assert_eq!((writer.written(), writer.durable()), (7, 7));
        let parts = parts_of(&path).unwrap();
        assert!(parts.len() > 2, "{parts:?}");
        let error = Journal::open(&path, RESUME).unwrap_err();
        assert!(error.to_string().contains("is being written by another run"), "{error}");
        drop(writer);
        let error = Journal::open(&path, Existing::Refuse).unwrap_err();
        assert!(error.to_string().contains("already holds results"), "{error}");

        let journal = Journal::open(&path, RETRY).unwrap();
        assert_eq!((journal.found().ok, journal.found().again), (4, 3));
        drop(journal);
        // The last part is torn, and goes on.
        let last = File::options().append(true).open(parts.last().unwrap()).unwrap();
        let length = last.metadata().unwrap().len();
        last.set_len(length - 2).unwrap();
        let journal = Journal::open(&path, RETRY).unwrap();
        let found = journal.found();
        assert!(found.torn > 0 || found.again < 3, "{found:?}");
        let left: Vec<_> = (0..7)
            .map(|number| record(&number.to_string(), true))
            .filter(|record| !journal.done().contains(Key::of_id(&record.id)))
            .collect();
        let mut writer = journal.part_size(300).begin().unwrap();
        write(&mut writer, &left);
        drop(writer);
        let journal = Journal::open(&path, RETRY).unwrap();
        assert_eq!((journal.found().ok, journal.found().again), (7, 0), "{name}");
        drop(journal);

        let mut writer = in_parts(&path, Existing::Overwrite, 300);
        assert_eq!(parts_of(&path).unwrap(), std::slice::from_ref(&path));
        write(&mut writer, &[record("1", true)]);
        drop(writer);
        assert_eq!(Journal::open(&path, RESUME).unwrap().found().ok, 1);
    }
}

#[test]
fn parts_with_a_gap_are_refused_and_left_as_they_are() {
    for gone in 0..3 {
        let place = Place::new();
        let path = place.path("r.jsonl");
        let all: Vec<_> = (0..4).map(|number| record(&number.to_string(), true)).collect();
        write(&mut in_parts(&path, Existing::Refuse, 1), &all);
        let parts = parts_of(&path).unwrap();
        assert_eq!(parts.len(), 4);
        fs::rename(&parts[gone], place.path("elsewhere")).unwrap();
        for existing in [Existing::Refuse, RESUME, RETRY, Existing::Overwrite] {
            let error = Journal::open(&path, existing).unwrap_err().to_string();
            let wanted = format!(
                "{} is missing, and {} is there",
                parts[gone].display(),
                parts[gone + 1].display()
            );
            assert!(error.contains(&wanted), "{error}");
            for (number, part) in parts.iter().enumerate() {
                assert_eq!(part.exists(), number != gone);
            }
        }
        fs::rename(place.path("elsewhere"), &parts[gone]).unwrap();
        assert_eq!(Journal::open(&path, RESUME).unwrap().found().ok, 4);
    }
}

#[test]
fn parts_are_thrown_away_from_the_last_to_the_first() {
    let place = Place::new();
    let path = place.path("r.jsonl");
    let all: Vec<_> = (0..4).map(|number| record(&number.to_string(), true)).collect();
    write(&mut in_parts(&path, Existing::Refuse, 1), &all);
    let parts = parts_of(&path).unwrap();
    let journal = Journal::open(&path, Existing::Overwrite).unwrap();
    // One that cannot be removed: what stands before it is as it was.
    fs::remove_file(&parts[1]).unwrap();
    fs::create_dir(&parts[1]).unwrap();
    let error = journal.begin().unwrap_err().to_string();
    assert!(error.contains("r.1.jsonl cannot be written"), "{error}");
    assert_eq!(parts_of(&path).unwrap(), parts[..2]);
    assert_eq!(place.read("r.jsonl").lines().count(), 1);
}

#[test]
fn a_run_over_empty_parts_goes_on_in_the_first() {
    let place = Place::new();
    let path = place.path("r.jsonl");
    for name in ["r.jsonl", "r.1.jsonl", "r.2.jsonl"] {
        fs::write(place.path(name), "").unwrap();
    }
    let mut writer = in_parts(&path, Existing::Refuse, 1);
    assert_eq!(parts_of(&path).unwrap(), std::slice::from_ref(&path));
    write(&mut writer, &[record("1", true), record("2", true)]);
    drop(writer);
    assert_eq!(parts_of(&path).unwrap().len(), 2);
    assert_eq!(place.read("r.jsonl").lines().count(), 1);
    assert_eq!(Journal::open(&path, RESUME).unwrap().found().ok, 2);
}

#[test]
fn the_lock_is_held_while_the_parts_change() {
    let place = Place::new();
    let path = place.path("r.jsonl");
    place.filled("r.jsonl", &[record("1", false), record("2", true)]);
    // The first part is rewritten, and is another file then.
    let mut writer = Journal::open(&path, RETRY).unwrap().part_size(100).begin().unwrap();
    write(&mut writer, &[record("3", true), record("4", true)]);
    assert_eq!(parts_of(&path).unwrap().len(), 3);
    let first = File::options().read(true).write(true).open(&path).unwrap();
    assert!(first.try_lock().is_err(), "a second writer gets in");
}

proptest! {
    #[test]
    fn parts_lose_nothing_wherever_the_last_one_is_torn(
        count in 1..12u32,
        size in 1..1500u64,
        cut in any::<prop::sample::Index>(),
        csv in any::<bool>(),
    ) {
        let place = Place::new();
        let path = place.path(if csv { "r.csv" } else { "r.jsonl" });
        let all: Vec<_> =
            (0..count).map(|number| record(&number.to_string(), number % 2 == 0)).collect();
        write(&mut in_parts(&path, Existing::Refuse, size), &all);
        let last = parts_of(&path).unwrap().pop().unwrap();
        let mut file = File::options().append(true).open(&last).unwrap();
        let length = file.metadata().unwrap().len();
        Output::cut(&mut file, cut.index(length as usize + 1) as u64).unwrap();
        drop(file);
        let journal = Journal::open(&path, RESUME).unwrap();
        let left: Vec<_> = all
            .iter()
            .filter(|record| !journal.done().contains(Key::of_id(&record.id)))
            .cloned()
            .collect();
        write(&mut journal.part_size(size).begin().unwrap(), &left);
        let journal = Journal::open(&path, RESUME).unwrap();
        let found = journal.found();
        prop_assert_eq!((found.ok + found.failed, found.torn), (u64::from(count), 0));
        prop_assert_eq!(journal.done().len(), count as usize);
    }
}
