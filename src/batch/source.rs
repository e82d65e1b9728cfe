//! Where the URLs come from: files, standard input, arguments.
//!
//! The input is read line by line while the run goes on, so ten million lines need no more memory
//! than ten, apart from the keys by which repeated lines are told (12 to 18 bytes a distinct line;
//! none where repeated lines are wanted). A line with a
//! mistake is found in one of two ways. Where the input can be read twice, [`Source::check`] goes
//! through all of it before the first request leaves, because a typing error in line 7 should not
//! be found out after a night. What can be read only once is not held back for that: there the bad
//! line becomes a result of its own, and the run goes on.

use super::Key;
use super::done_before::{Before, DoneBefore};
use super::item::{Item, Place, at, at_url};
use super::journal::Done;
use super::keyset::{KeySet, Met};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How the place of an argument is called.
pub(super) const ARGUMENT: &str = "argument";
const STDIN: &str = "standard input";

/// A line beyond this is a mistake (a binary file, say), and would have to be held in memory.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// How often a wait for input looks up whether the run is over.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The input of a run, of one part or of several in order.
#[derive(Debug, Default)]
#[must_use]
pub struct Source {
    parts: Vec<Part>,
    repeats: bool,
}

enum Part {
    File(PathBuf),
    Stdin,
    List(Vec<String>),
    Reader(Arc<str>, Box<dyn BufRead + Send>),
}

/// What [`Source::check`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Checked {
    /// Items that a run has to do: without repeated lines, and without those done before.
    pub items: u64,
    /// Items that the results hold already.
    pub done: u64,
    /// Repeated lines.
    pub repeated: u64,
    /// Whether all of the input was counted; not where a part can be read only once.
    pub complete: bool,
}

impl Source {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A file of one URL or JSON object a line; `-` is standard input.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Self::new().add_file(path)
    }

    /// URLs (or JSON objects) from arguments or from the program's own list.
    pub fn urls<T: Into<String>>(urls: impl IntoIterator<Item = T>) -> Self {
        Self::new().add_urls(urls)
    }

    /// Adds a file; `-` is standard input.
    pub fn add_file(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let part =
            if path == Path::new("-") { Part::Stdin } else { Part::File(path.to_path_buf()) };
        self.parts.push(part);
        self
    }

    /// Adds standard input.
    pub fn add_stdin(mut self) -> Self {
        self.parts.push(Part::Stdin);
        self
    }

    /// Adds URLs (or JSON objects).
    pub fn add_urls<T: Into<String>>(mut self, urls: impl IntoIterator<Item = T>) -> Self {
        self.parts.push(Part::List(urls.into_iter().map(Into::into).collect()));
        self
    }

    /// Adds anything that can be read once; `name` stands in front of its line numbers.
    pub fn add_reader(
        mut self,
        name: impl Into<Arc<str>>,
        reader: impl BufRead + Send + 'static,
    ) -> Self {
        self.parts.push(Part::Reader(name.into(), Box::new(reader)));
        self
    }

    /// Whether a line that stands in the input twice is done twice. Default: once.
    ///
    /// Lines are the same where they bring the same id, or no id and the same method, URL and
    /// body. Without this, a run holds a key for each distinct line.
    pub fn repeats(mut self, repeats: bool) -> Self {
        self.repeats = repeats;
        self
    }

    /// Whether there is no part at all.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Goes through all of the input that can be read twice, and counts it.
    ///
    /// # Errors
    /// `Io` for a file that cannot be read. Otherwise the error of the first bad line, with file,
    /// line and remedy, and the number of bad lines after it: `InvalidJson`, `InvalidHeader`,
    /// `Config`, and those of [`prepare_url`](crate::message::prepare_url).
    pub fn check(&self, done: &Done) -> Result<Checked, Error> {
        Ok(self.survey(done)?.0)
    }

    /// As [`check`](Self::check), and keeps what a run over the same input would find out again.
    pub(super) fn survey(&self, done: &Done) -> Result<(Checked, Known), Error> {
        self.check_with(done, &|url| crate::message::prepare_url(url, &[]).map(drop))
    }

    fn check_with(
        &self,
        done: &Done,
        usable: &dyn Fn(&str) -> Result<(), Error>,
    ) -> Result<(Checked, Known), Error> {
        let mut checked = Checked { complete: true, ..Checked::default() };
        let mut parts = Vec::new();
        for part in &self.parts {
            match part {
                Part::File(path) if is_regular(path)? => parts.push(Part::File(path.clone())),
                Part::List(list) => parts.push(Part::List(list.clone())),
                Part::File(_) | Part::Stdin | Part::Reader(..) => checked.complete = false,
            }
        }
        let source = Self { parts, repeats: self.repeats };
        let mut items = Items::new(source, Known::of(done.clone()));
        let mut bad: Option<(Error, u64)> = None;
        for read in items.by_ref() {
            let item = match read {
                Entry::Item(item) => item,
                Entry::Bad { error, .. } => {
                    note(&mut bad, error);
                    continue;
                }
                Entry::Broken(error) => return Err(error),
            };
            match usable(&item.request.url) {
                Ok(()) => checked.items += 1,
                Err(error) => note(&mut bad, at_url(&item.place, &item.request.url, &error)),
            }
        }
        checked.done = items.skipped_done();
        checked.repeated = items.skipped_repeated();
        match bad {
            None => Ok((checked, Known { done: done.clone(), before: Arc::new(items.seen) })),
            Some((error, 0)) => Err(error),
            Some((error, more)) => {
                let text = format!("{} (and {more} more like it)", error.message());
                Err(Error::local(error.kind(), text))
            }
        }
    }

    /// The items one by one, without those done before.
    pub fn items(self, done: Done) -> Items {
        Items::new(self, Known::of(done))
    }

    /// Whether a line may have to be waited for, as from a pipe.
    pub(super) fn may_block(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::List(_) => false,
            Part::File(path) => !is_regular(path).unwrap_or_default(),
            Part::Stdin | Part::Reader(..) => true,
        })
    }

    /// As [`items`](Self::items), after a [`survey`](Self::survey).
    pub(super) fn surveyed(self, known: Known) -> Items {
        Items::new(self, known)
    }
}

fn note(bad: &mut Option<(Error, u64)>, error: Error) {
    match bad {
        None => *bad = Some((error, 0)),
        Some((_, more)) => *more += 1,
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Stdin => f.write_str("Stdin"),
            // URLs may hold credentials.
            Self::List(list) => write!(f, "List({})", list.len()),
            Self::Reader(name, _) => write!(f, "Reader({name})"),
        }
    }
}

/// What comes out of the input.
#[allow(clippy::exhaustive_enums, reason = "an item, a bad line, or no more input")]
#[allow(clippy::large_enum_variant, reason = "items are the rule, and moved once")]
#[derive(Debug)]
pub enum Entry {
    /// An item.
    Item(Item),
    /// A line that describes none.
    Bad {
        /// What is wrong, with its place.
        error: Error,
        /// Where.
        place: Place,
        /// What it is recognised by.
        key: Key,
        /// What can be shown of the line.
        text: String,
    },
    /// The input cannot be read on; nothing comes after this.
    Broken(Error),
}

impl Entry {
    /// What a line describes; `None` for a blank one and for a comment.
    pub(super) fn of_line(text: &str, place: Place) -> Option<Self> {
        match Item::parse(text, place.clone()) {
            Ok(item) => item.map(Self::Item),
            Err(error) => {
                let text = text.trim();
                let key = Key::of_request(&http::Method::GET, text, b"");
                Some(Self::Bad { error, place, key, text: bad_text(text) })
            }
        }
    }

    fn key(&self) -> Option<Key> {
        match self {
            Self::Item(item) => Some(item.key),
            Self::Bad { key, .. } => Some(*key),
            Self::Broken(_) => None,
        }
    }
}

/// What a line of the input is to a run.
enum Line {
    /// To be done.
    Fresh,
    /// Done before.
    Done,
    /// There already.
    Repeated,
}

/// The keys that are known before the input is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) done: Done,
    /// The other lines of the input, where it was read before: then a run needs no further memory
    /// to tell which of them it has met.
    before: Arc<KeySet>,
}

impl Known {
    /// What the results hold, of an input that was not read before.
    pub(super) fn of(done: Done) -> Self {
        Self { done, before: Arc::default() }
    }
}

/// The items of a [`Source`], read as they are asked for.
pub struct Items {
    parts: VecDeque<Part>,
    open: Option<Lines>,
    repeats: bool,
    done: DoneBefore,
    before: Arc<KeySet>,
    met_before: Met,
    seen: KeySet,
    skipped_done: u64,
    skipped_repeated: u64,
    is_over: Option<IsOver>,
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items")
            .field("parts", &self.parts)
            .field("open", &self.open)
            .field("done", &self.done.len())
            .finish_non_exhaustive()
    }
}

impl Items {
    /// Gives up waiting for input that may block, as soon as `is_over` says so.
    ///
    /// Without this, an input that stays silent (a terminal, a pipe) keeps the thread that reads.
    #[must_use]
    pub fn until(mut self, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.is_over = Some(Arc::new(is_over));
        self
    }

    fn new(source: Source, known: Known) -> Self {
        Self {
            parts: source.parts.into(),
            open: None,
            repeats: source.repeats,
            done: DoneBefore::new(known.done),
            met_before: Met::none_of(&known.before),
            before: known.before,
            seen: KeySet::default(),
            skipped_done: 0,
            skipped_repeated: 0,
            is_over: None,
        }
    }

    /// Items left out so far because they were done before.
    pub fn skipped_done(&self) -> u64 {
        self.skipped_done
    }

    /// Items left out so far because they stand in the input more than once.
    pub fn skipped_repeated(&self) -> u64 {
        self.skipped_repeated
    }

    fn is_wanted(&mut self, key: Key) -> bool {
        match self.known_as(key) {
            Line::Fresh => return true,
            Line::Done => self.skipped_done += 1,
            Line::Repeated => self.skipped_repeated += 1,
        }
        false
    }

    /// What a line with this key is. Each key is noted in one place only: at its record, else where
    /// an earlier reading of the input has put it, else among those that are new.
    fn known_as(&mut self, key: Key) -> Line {
        match self.done.meet(key) {
            Before::Never => {}
            Before::Done => return Line::Done,
            Before::Met if !self.repeats => return Line::Repeated,
            Before::Met if self.done.meet_further(key) => return Line::Done,
            Before::Met => return Line::Fresh,
        }
        if self.repeats {
            return Line::Fresh;
        }
        let is_first = match self.before.find(key) {
            Some(place) => self.met_before.is_first(place),
            None => self.seen.insert(key),
        };
        if is_first { Line::Fresh } else { Line::Repeated }
    }

    fn line(&mut self) -> Option<Text> {
        loop {
            if self.open.is_none() {
                match Lines::open(self.parts.pop_front()?, self.is_over.as_ref()) {
                    Ok(lines) => self.open = Some(lines),
                    Err(error) => {
                        self.parts.clear();
                        return Some(Text::Broken(error));
                    }
                }
            }
            match self.open.as_mut().and_then(Lines::read) {
                None => self.open = None,
                Some(Text::Broken(error)) => {
                    self.open = None;
                    self.parts.clear();
                    return Some(Text::Broken(error));
                }
                other => return other,
            }
        }
    }
}

impl Iterator for Items {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let (text, place) = match self.line()? {
                Text::Line(text, place) => (text, place),
                Text::Broken(error) => return Some(Entry::Broken(error)),
                Text::Bad(error, place) => {
                    let key = Key::of_id(&place.to_string());
                    let text = String::new();
                    return Some(Entry::Bad { error, place, key, text });
                }
            };
            if let Some(entry) = Entry::of_line(&text, place)
                && entry.key().is_none_or(|key| self.is_wanted(key))
            {
                return Some(entry);
            }
        }
    }
}

/// A broken object may hold a credential anywhere, so only its `url` is shown, if it can be found.
fn bad_text(line: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Url {
        url: String,
    }
    let url = serde_json::from_str::<Url>(line).map(|found| found.url).unwrap_or_default();
    super::redact::shown(&url).into_owned()
}

/// What comes of reading a line.
enum Text {
    Line(String, Place),
    /// This line alone cannot be used.
    Bad(Error, Place),
    /// Nothing comes after this.
    Broken(Error),
}

/// Says whether the run is over, so that nobody waits for input any more.
type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// A stream that may stay silent for hours, read so that the wait for it can be given up.
///
/// A thread of its own reads ahead by a few blocks. It cannot be woken out of the system call, so
/// it is left behind when the run ends first.
struct Patient {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: io::Cursor<Vec<u8>>,
    is_over: IsOver,
}

impl Patient {
    fn new(mut reader: Box<dyn BufRead + Send>, is_over: IsOver) -> io::Result<Self> {
        let (send, blocks) = crossbeam_channel::bounded(4);
        std::thread::Builder::new().name("longhaul-input".to_owned()).spawn(move || {
            loop {
                let block = match reader.fill_buf() {
                    Ok([]) => return,
                    Ok(block) => block.to_vec(),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        let _nobody_waits = send.send(Err(error));
                        return;
                    }
                };
                reader.consume(block.len());
                if send.send(Ok(block)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { blocks, block: io::Cursor::default(), is_over })
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.block.read(buffer)? {
                0 => {}
                length => return Ok(length),
            }
            match self.blocks.recv_timeout(LOOK_UP) {
                Ok(block) => self.block = io::Cursor::new(block?),
                Err(RecvTimeoutError::Timeout) if !(self.is_over)() => {}
                Err(_) => return Ok(0),
            }
        }
    }
}

/// The lines of one part.
enum Lines {
    Text { name: Arc<str>, line: u64, reader: Box<dyn BufRead + Send>, buffer: Vec<u8> },
    List { line: u64, list: std::vec::IntoIter<String> },
}

impl Lines {
    fn open(part: Part, is_over: Option<&IsOver>) -> Result<Self, Error> {
        let (name, mut reader, may_block): (Arc<str>, Box<dyn BufRead + Send>, bool) = match part {
            Part::List(list) => return Ok(Self::List { line: 0, list: list.into_iter() }),
            Part::Reader(name, reader) => (name, reader, true),
            Part::Stdin => (STDIN.into(), Box::new(BufReader::new(io::stdin())), true),
            Part::File(path) => {
                let wrong = |error| unreadable(&path, error);
                let file = File::open(&path).map_err(wrong)?;
                let may_block = !file.metadata().map_err(wrong)?.is_file();
                let name = path.display().to_string().into();
                (name, Box::new(BufReader::with_capacity(64 * 1024, file)), may_block)
            }
        };
        if let (Some(is_over), true) = (is_over, may_block) {
            let patient = Patient::new(reader, Arc::clone(is_over)).map_err(|error| {
                io_error(format!("no thread can be started to read {name}: {error}"), error)
            })?;
            reader = Box::new(BufReader::with_capacity(64 * 1024, patient));
        }
        Ok(Self::Text { name, line: 0, reader, buffer: Vec::new() })
    }

    /// The next line.
    fn read(&mut self) -> Option<Text> {
        let (name, line, reader, buffer) = match self {
            Self::List { line, list } => {
                *line += 1;
                let place = Place { source: ARGUMENT.into(), line: *line };
                return list.next().map(|text| Text::Line(text, place));
            }
            Self::Text { name, line, reader, buffer } => (name, line, reader, buffer),
        };
        buffer.clear();
        *line += 1;
        let place = Place { source: Arc::clone(name), line: *line };
        match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', buffer) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => {
                let text = format!(
                    "{place} cannot be read: {error}; make it readable or name another input, and \
                     resume"
                );
                return Some(Text::Broken(io_error(text, error)));
            }
        }
        let mut bytes = buffer.as_slice();
        if *line == 1 {
            if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
                let text = format!("{name} is UTF-16; save it as UTF-8");
                return Some(Text::Broken(Error::config(text)));
            }
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        if bytes.len() as u64 >= LONGEST_LINE {
            let text = format!("{place} is longer than 64 MiB; one URL or JSON object a line");
            return Some(Text::Broken(Error::config(text)));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Some(Text::Line(text.to_owned(), place)),
            Err(_invalid) => {
                let error = Error::local(ErrorKind::InvalidUrl, "the line is not UTF-8");
                Some(Text::Bad(at(&place, &error), place))
            }
        }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { name, line, .. } => write!(f, "{name}:{line}"),
            Self::List { line, .. } => write!(f, "{ARGUMENT} {line}"),
        }
    }
}

fn is_regular(path: &Path) -> Result<bool, Error> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let text = format!("{} is a folder; name a file of URLs", path.display());
            Err(Error::config(text))
        }
        Ok(metadata) => Ok(metadata.is_file()),
        Err(error) => Err(unreadable(path, error)),
    }
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    let text = format!(
        "{} cannot be read: {error}; name a file of one URL or JSON object a line, or - for \
         standard input",
        path.display()
    );
    io_error(text, error)
}

fn io_error(text: String, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, Phase::Prepare, Fault::Local, text).with_source(error)
}

#[cfg(test)]
mod tests;
