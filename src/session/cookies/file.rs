//! Cookies from files and into files, in two formats that are told apart by what stands in them.
//!
//! A bad line is an error with its place and not passed over: the cookie that is missing would show
//! up as a login that does not work, an hour into a run. What an error quotes is never a name or a
//! value.

use super::{CookieJar, IN_ALL, PER_DOMAIN, json, netscape};
use crate::error::{Error, ErrorKind};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A larger file than this is none of cookies: 3000 of them need 24 MiB at most.
const LARGEST: u64 = 64 << 20;
/// The end of the year 9999, beyond which other programs do not calculate.
const LAST_SECOND: u64 = 253_402_300_799;

impl CookieJar {
    /// The cookies of a file in memory: Netscape's format or JSON, by what stands in it. What is
    /// over by `now` is left out.
    ///
    /// Where there are more than the jar holds, those that stand last are kept, with a warning.
    ///
    /// # Errors
    /// `Config`, with the line, or the number of the cookie in JSON, and what would be right there.
    ///
    /// # Examples
    /// ```
    /// use longhaul::session::CookieJar;
    /// use std::time::SystemTime;
    ///
    /// let file = b".example.com\tTRUE\t/\tFALSE\t0\tsession\t4f2a\n";
    /// let jar = CookieJar::parse(file, SystemTime::now())?;
    /// assert_eq!(jar.len(), 1);
    /// # Ok::<(), longhaul::Error>(())
    /// ```
    pub fn parse(file: &[u8], now: SystemTime) -> Result<Self, Error> {
        parse(file, now).map_err(|faulty| Error::config(faulty.shown("the cookie file", "line ")))
    }

    /// The cookies of a file, as [`parse`](Self::parse).
    ///
    /// # Errors
    /// `Config` as `file:line: what is wrong`, `Io` where it cannot be read.
    pub fn load(path: impl AsRef<Path>, now: SystemTime) -> Result<Self, Error> {
        let path = path.as_ref();
        let shown = path.display();
        let file = read(path).map_err(|error| {
            Error::local(ErrorKind::Io, format!("{shown} cannot be read: {error}"))
        })?;
        parse(&file, now)
            .map_err(|faulty| Error::config(faulty.shown(&shown.to_string(), &format!("{shown}:"))))
    }

    /// The cookies that are not over, as a file in Netscape's format, for curl, wget and Python's
    /// `MozillaCookieJar`.
    ///
    /// A cookie that holds a tab is left out with a warning, since the format cannot hold it.
    pub fn to_netscape(&self, now: SystemTime) -> Vec<u8> {
        netscape::render(self.iter().filter(|cookie| !cookie.is_expired(now)))
    }

    /// The cookies that are not over, as JSON; a name or value that is not UTF-8 is written as
    /// `nameBase64`, `valueBase64`. The schema is in the guide to cookies.
    pub fn to_json(&self, now: SystemTime) -> String {
        json::render(self.iter().filter(|cookie| !cookie.is_expired(now)))
    }

    /// Writes the cookies that are not over: as JSON where the name ends in `.json`, in Netscape's
    /// format otherwise.
    ///
    /// The file is replaced at once and only as a whole, and its owner alone can read it (mode
    /// 0600), whatever it was before.
    ///
    /// # Errors
    /// `Io` where it cannot be written; the file that was there is unchanged then.
    pub fn save(&self, path: impl AsRef<Path>, now: SystemTime) -> Result<(), Error> {
        let path = path.as_ref();
        let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let file = if is_json { self.to_json(now).into_bytes() } else { self.to_netscape(now) };
        replace(path, &file).map_err(|error| {
            let text = format!("{} cannot be written: {error}", path.display());
            Error::local(ErrorKind::Io, text).with_source(error)
        })
    }
}

/// What is wrong with a file, and where.
#[derive(Debug)]
pub(super) struct Faulty {
    place: Place,
    why: String,
}

#[derive(Debug)]
enum Place {
    File,
    Line(usize),
    Cookie(usize),
}

impl Faulty {
    pub(super) fn at_line(line: usize, why: impl Into<String>) -> Self {
        Self { place: Place::Line(line), why: why.into() }
    }

    pub(super) fn at_cookie(number: usize, why: impl Into<String>) -> Self {
        Self { place: Place::Cookie(number), why: why.into() }
    }

    pub(super) fn of_file(why: impl Into<String>) -> Self {
        Self { place: Place::File, why: why.into() }
    }

    /// With the name of the file, and what stands before the number of a line.
    fn shown(&self, file: &str, line: &str) -> String {
        let why = &self.why;
        match self.place {
            Place::File => format!("{file} {why}"),
            Place::Line(number) => format!("{line}{number}: the line {why}"),
            Place::Cookie(number) => format!("{file}: cookie {number} {why}"),
        }
    }
}

fn parse(file: &[u8], now: SystemTime) -> Result<CookieJar, Faulty> {
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let cookies = if is_json(file) { json::parse(file)? } else { netscape::parse(file)? };
    let mut jar = CookieJar::new();
    let mut dropped = 0;
    for cookie in cookies.into_iter().filter(|cookie| !cookie.is_expired(now)) {
        let room = jar.len() + usize::from(!jar.holds(&cookie));
        jar.take(cookie, now);
        dropped += room - jar.len();
    }
    if dropped > 0 {
        log::warn!(
            target: "longhaul::cookies",
            "{dropped} cookies of a file are dropped: {IN_ALL} are kept, {PER_DOMAIN} for a domain"
        );
    }
    Ok(jar)
}

/// A line of Netscape's may begin with `[` too, with an IPv6 address behind it.
fn is_json(file: &[u8]) -> bool {
    let text = file.trim_ascii_start();
    match text.strip_prefix(b"[") {
        Some(rest) => matches!(rest.trim_ascii_start().first(), Some(b'{' | b']')),
        None => text.starts_with(b"{"),
    }
}

/// Whole seconds since 1970, and 1 for what was before.
pub(super) fn seconds(time: SystemTime) -> u64 {
    // 0 would mean the end of the session.
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs().max(1))
}

/// The time of these seconds, or the last one that other programs know.
pub(super) fn time_of(seconds: u64) -> SystemTime {
    let since = Duration::from_secs(seconds.min(LAST_SECOND));
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other("it is larger than 64 MiB, and so no file of cookies"));
    }
    Ok(bytes)
}

/// Puts a file of these bytes, for its owner alone, in the place of what is there.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // What a link leads to is replaced, and not the link; what is no file (a device, a pipe) must
    // not become one.
    let target = match fs::metadata(path) {
        Ok(found) if found.is_file() => fs::canonicalize(path)?,
        Ok(_) => return Err(io::Error::other("it is no regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(error),
    };
    let (file, draft) = draft(&target)?;
    let written = write(file, bytes).and_then(|()| fs::rename(&draft, &target));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

fn write(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// A new file beside the target, under a name that nobody has.
fn draft(target: &Path) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut number = 0_u32;
    loop {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{number}.part", std::process::id()));
        let path = target.with_file_name(name);
        match options.open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
