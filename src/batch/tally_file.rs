//! The tally in a file of its own, which is true at every moment.
//!
//! Somebody looks at it while the run goes on, and after the run was killed. So the file is never
//! written into: the whole table goes into a file beside it, which then takes its place. Whoever opens
//! it finds a whole table that is at most a second behind the records. What a kill has kept out of it
//! is counted again from the records by a resumption; what a resumption takes out of the records, since
//! those URLs are done again, stays in the table. Where both know a line, the higher count is the
//! truth: neither of them ever counts what did not happen.

use super::record::Record;
use super::sink::io_error;
use super::tally::Exceptions;
use crate::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The table is written at most this often, and no later after a change.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// A file that holds the table of a run.
#[derive(Debug)]
pub(super) struct TallyFile {
    /// Where links lead to.
    path: PathBuf,
    table: Exceptions,
    changed: bool,
    written: Option<Instant>,
    /// A failure was told.
    failed: bool,
}

/// Whether a tally at this path leaves the results alone, which are in these files and open. The table
/// takes the place of whatever has its name, so another spelling and a link are told, too.
///
/// # Errors
/// `Config` where it would replace one of them.
pub(super) fn check_apart<'a>(
    path: &Path,
    results: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Error> {
    let target = target_of(path);
    let taken = [beside(&target), target];
    for result in results {
        if taken.contains(&target_of(result)) {
            return Err(Error::config(format!(
                "the tally {} would take the place of the results in {}; name another file",
                path.display(),
                result.display()
            )));
        }
    }
    Ok(())
}

impl TallyFile {
    /// The file of a run, which is not changed yet; where the run is `resumed`, with what it holds.
    ///
    /// # Errors
    /// `Config` for a path that is no file or in no folder, for a file with content where nothing is
    /// resumed, and for one that holds something else. `Io` where it cannot be read.
    pub(super) fn open(path: &Path, resumed: bool, overwrite: bool) -> Result<Self, Error> {
        let name = path.display();
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_path_buf(),
            Err(error) => return Err(unusable(path, error)),
        };
        let folder = folder_of(&target);
        if !folder.is_dir() {
            return Err(Error::config(format!(
                "the folder of the tally {name} is not there; make it, or name another file"
            )));
        }
        let text = match fs::metadata(&target) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(unusable(path, error)),
            Ok(found) if !found.is_file() => {
                return Err(Error::config(format!(
                    "the tally {name} is no regular file; name one, which may be new"
                )));
            }
            Ok(found) if found.len() > 0 && !resumed && !overwrite => {
                return Err(Error::config(format!(
                    "the tally {name} already holds something; resume the run, or name another file"
                )));
            }
            Ok(_) if overwrite => String::new(),
            Ok(_) => fs::read_to_string(&target).map_err(|error| unusable(path, error))?,
        };
        let table = Exceptions::parse_tsv(&text)
            .map_err(|(line, wrong)| Error::config(format!("{name}:{line}: {wrong}")))?;
        Ok(Self { path: target, table, changed: true, written: None, failed: false })
    }

    /// Takes what the records say that were there before.
    pub(super) fn recount(&mut self, records: &Exceptions) {
        self.table.raise_to(records);
        self.changed = true;
    }

    /// Counts a record that was written.
    pub(super) fn add(&mut self, record: &Record, now: Instant) {
        if record.attempts.iter().any(|attempt| attempt.error.is_some()) {
            self.table.add(record);
            self.changed = true;
            self.tick(now);
        }
    }

    /// Writes the table where it has changed and it is time to.
    pub(super) fn tick(&mut self, now: Instant) {
        let is_time =
            self.written.is_none_or(|last| now.saturating_duration_since(last) >= WRITE_EVERY);
        if self.changed && is_time {
            self.written = Some(now);
            self.write(false);
        }
    }

    /// Writes what has changed, and lets it be durable.
    pub(super) fn end(&mut self) {
        if self.changed {
            self.write(true);
        }
    }

    fn write(&mut self, durable: bool) {
        match self.replace(durable) {
            Ok(()) => (self.changed, self.failed) = (false, false),
            // The records have it all, so the run goes on; once is enough to be told.
            Err(error) if !self.failed => {
                self.failed = true;
                log::warn!(
                    target: "longhaul::tally",
                    "{} is not up to date, since it cannot be written: {error}; a resumption counts it \
                     again",
                    self.path.display()
                );
            }
            Err(_) => {}
        }
    }

    fn replace(&self, durable: bool) -> io::Result<()> {
        let beside = beside(&self.path);
        let replaced = File::create(&beside).and_then(|file| {
            if let Ok(old) = fs::metadata(&self.path) {
                file.set_permissions(old.permissions())?;
            }
            let mut out = BufWriter::new(&file);
            self.table.write_tsv(&mut out)?;
            out.flush()?;
            drop(out);
            if durable {
                file.sync_all()?;
            }
            fs::rename(&beside, &self.path)
        });
        if replaced.is_err() {
            let _gone = fs::remove_file(&beside);
        }
        replaced
    }
}

/// The file that the table is written into before it takes its place.
fn beside(target: &Path) -> PathBuf {
    let mut beside: OsString = target.into();
    beside.push(".writing");
    beside.into()
}

/// Where links lead to, as far as anything is there.
fn target_of(path: &Path) -> PathBuf {
    if let Ok(target) = fs::canonicalize(path) {
        return target;
    }
    match (fs::canonicalize(folder_of(path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_path_buf(),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn unusable(path: &Path, error: io::Error) -> Error {
    let text = format!("the tally {} cannot be read: {error}; name another file", path.display());
    io_error(text, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::record::tests::SMALL;
    use crate::time::{Clock, SimClock, secs};

    const HEADER: &str = "hour\texception\texit\tcount\n";

    fn failed(at: &str) -> Record {
        let mut record = Record::parse(SMALL.as_bytes()).unwrap();
        record.at = at.to_owned();
        record.attempts[0].error = serde_json::from_str(
            r#"{"kind":"read_timeout","requests_name":"ReadTimeout","phase":"headers",
                "fault":"target","message":"silence"}"#,
        )
        .unwrap();
        record
    }

    fn table(records: &[Record]) -> Exceptions {
        let mut table = Exceptions::default();
        records.iter().for_each(|record| table.add(record));
        table
    }

    #[test]
    fn it_is_written_as_the_run_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tally.tsv");
        let start = SimClock::default().now();
        let after = |seconds| start + secs(seconds);
        let read = || fs::read_to_string(&path).unwrap();
        let mut tally = TallyFile::open(&path, false, false).unwrap();
        assert!(!path.exists());
        tally.tick(after(0.0));
        assert_eq!(read(), HEADER);
        let line = |count| format!("{HEADER}2025-06-15T15:00:00Z\tReadTimeout\tdirect\t{count}\n");
        let record = failed("2025-06-15T15:06:40.000Z");
        tally.add(&record, after(0.5));
        assert_eq!(read(), HEADER);
        tally.tick(after(1.0));
        assert_eq!(read(), line(1));
        tally.add(&record, after(1.1));
        tally.add(&record, after(2.1));
        assert_eq!(read(), line(3));
        tally.add(&record, after(2.2));
        tally.end();
        assert_eq!(read(), line(4));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_resumption_loses_nothing_and_counts_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tally.tsv");
        let (early, late) =
            (failed("2025-06-15T14:06:40.000Z"), failed("2025-06-15T15:06:40.000Z"));
        // The file lacks the last of three records, which a kill kept out; and the results lack the
        // first, since its URL is done again.
        let mut tally = TallyFile::open(&path, false, false).unwrap();
        tally.recount(&table(&[early.clone(), late.clone()]));
        tally.end();
        let mut tally = TallyFile::open(&path, true, false).unwrap();
        tally.recount(&table(&[late.clone(), late.clone()]));
        tally.end();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            format!(
                "{HEADER}2025-06-15T14:00:00Z\tReadTimeout\tdirect\t1\n\
                 2025-06-15T15:00:00Z\tReadTimeout\tdirect\t2\n"
            )
        );
    }

    #[test]
    fn what_is_no_tally_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tally.tsv");
        for (text, resumed, wanted) in [
            (HEADER, false, "already holds something; resume the run"),
            ("https://example.com/\n", true, "tally.tsv:1: "),
            ("hour\texception\texit\tcount\n2025-06-15T15:00:00Z\tX\ta\n", true, "tally.tsv:2: "),
        ] {
            fs::write(&path, text).unwrap();
            let error = TallyFile::open(&path, resumed, false).unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        TallyFile::open(&path, false, true).unwrap();
        let missing = folder.path().join("none/tally.tsv");
        let error = TallyFile::open(&missing, false, false).unwrap_err();
        assert!(error.to_string().contains("is not there; make it"), "{error}");
        let error = TallyFile::open(folder.path(), true, false).unwrap_err();
        assert!(error.to_string().contains("is no regular file"), "{error}");
    }

    #[test]
    fn it_never_takes_the_place_of_results() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for name in ["r.jsonl", "r.1.jsonl", "x.writing"] {
            fs::write(place(name), "").unwrap();
        }
        fs::create_dir(place("sub")).unwrap();
        let results = [place("r.jsonl"), place("r.1.jsonl"), place("x.writing")];
        let check = |name: &str| check_apart(&place(name), results.iter().map(PathBuf::as_path));
        let mut same = vec!["r.jsonl", "./r.jsonl", "sub/../r.1.jsonl", "x", "sub/../x"];
        if cfg!(unix) {
            #[cfg(unix)]
            std::os::unix::fs::symlink("r.jsonl", place("link")).unwrap();
            same.push("link");
        }
        for name in same {
            let error = check(name).unwrap_err().to_string();
            assert!(error.contains("would take the place of the results in "), "{name}: {error}");
            assert!(error.ends_with("; name another file"), "{name}: {error}");
        }
        for name in ["tally.tsv", "sub/r.jsonl", "none/r.jsonl", "r.2.jsonl"] {
            check(name).unwrap();
        }
    }

    #[test]
    fn a_full_disk_does_not_end_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone/tally.tsv");
        fs::create_dir(folder.path().join("gone")).unwrap();
        let mut tally = TallyFile::open(&path, false, false).unwrap();
        fs::remove_dir(folder.path().join("gone")).unwrap();
        tally.tick(SimClock::default().now());
        assert!(tally.failed && tally.changed);
        fs::create_dir(folder.path().join("gone")).unwrap();
        tally.end();
        assert_eq!(fs::read_to_string(&path).unwrap(), HEADER);
        assert!(!tally.failed);
    }
}
