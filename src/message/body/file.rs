//! Files as bodies: of the length that they had when they were opened, or an error.
//!
//! A length is promised in the head, before the first byte is read. A file that another program
//! cuts or goes on writing meanwhile would break that promise: a short body leaves the server
//! waiting, a long one becomes the beginning of the next request. So the length is held to, and
//! the last piece is given only once the end was seen behind it: what changed on its way never
//! arrives as a complete body.
//!
//! Where we differ from requests:
//! - DIFFERENCE(changed-file): such a file is an error; requests sends what there is.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// A body that is opened, and its length where that is known.
pub(in crate::message) type Opened = (Box<dyn Read + Send>, Option<u64>);

/// Opens the file. Pipes and devices have no length, nor have files that claim to be empty and
/// are not (`/proc`): requests sends those in chunks, too.
pub(in crate::message) fn open(path: &Arc<Path>) -> io::Result<Opened> {
    let named = |error| named(path, &error);
    let mut file = File::open(path).map_err(named)?;
    let metadata = file.metadata().map_err(named)?;
    if metadata.is_dir() {
        // Opening one works, and reading fails only once the head has left.
        let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a folder and not a file");
        return Err(named(error));
    }
    if !metadata.is_file() {
        return Ok((Box::new(file), None));
    }
    if metadata.len() == 0 {
        let mut first = [0];
        return Ok(match file.read(&mut first).map_err(named)? {
            0 => (Box::new(io::empty()), Some(0)),
            _ => (Box::new(io::Cursor::new(first).chain(file)), None),
        });
    }
    let length = metadata.len();
    Ok((Box::new(Fixed::new(file, length, Some(Arc::clone(path)))), Some(length)))
}

/// The length of a file that [`open_later`] will open; `None` where only opening it tells.
pub(in crate::message) fn measure(path: &Path) -> io::Result<Option<u64>> {
    let metadata = std::fs::metadata(path).map_err(|error| named(path, &error))?;
    Ok(Some(metadata.len()).filter(|length| metadata.is_file() && *length > 0))
}

/// Opens a file that was measured before.
pub(in crate::message) fn open_later(
    path: &Arc<Path>,
    promised: u64,
) -> io::Result<Box<dyn Read + Send>> {
    let file = File::open(path).map_err(|error| named(path, &error))?;
    Ok(Box::new(Fixed::new(file, promised, Some(Arc::clone(path)))))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A part of a file from a position on, whoever else moves the cursor of the same handle.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) file: Arc<File>,
    pub(super) position: u64,
}

impl Read for Rest {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let count = std::os::unix::fs::FileExt::read_at(&*self.file, buf, self.position)?;
        #[cfg(windows)]
        let count = std::os::windows::fs::FileExt::seek_read(&*self.file, buf, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

/// Exactly as many bytes as were promised, and none behind them.
#[derive(Debug)]
pub(super) struct Fixed<R> {
    file: R,
    promised: u64,
    left: u64,
    path: Option<Arc<Path>>,
}

impl<R> Fixed<R> {
    pub(super) fn new(file: R, promised: u64, path: Option<Arc<Path>>) -> Self {
        Self { file, promised, left: promised, path }
    }

    fn changed(&self, how: &str) -> io::Error {
        let name = self.path.as_ref().map_or("the file".into(), |path| path.to_string_lossy());
        let promised = self.promised;
        io::Error::other(format!(
            "{name} {how} while it was sent; it had {promised} bytes when the request began"
        ))
    }
}

impl<R: Read> Read for Fixed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        if room == 0 {
            return Ok(0);
        }
        let count = self.file.read(buf.get_mut(..room).unwrap_or_default())?;
        if count == 0 {
            return Err(self.changed("became shorter"));
        }
        self.left -= count as u64;
        if self.left == 0 && self.file.read(&mut [0])? > 0 {
            return Err(self.changed("became longer"));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn path(name: &str, bytes: &[u8]) -> (tempfile::TempDir, Arc<Path>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (folder, Arc::from(path))
    }

    #[test]
    fn a_file_that_grows_or_shrinks_is_an_error_with_its_name() {
        for (change, wanted) in [(9, "became longer"), (2, "became shorter")] {
            let (_folder, path) = path("body", b"payload");
            let (mut reader, length) = open(&path).unwrap();
            assert_eq!(length, Some(7));
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(change).unwrap();
            let error = reader.read_to_end(&mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(wanted) && error.contains("body") && error.contains('7'));
        }
    }

    #[test]
    fn what_was_measured_is_held_to_when_it_is_opened_later() {
        let (_folder, path) = path("body", b"payload");
        assert_eq!(measure(&path).unwrap(), Some(7));
        let mut text = String::new();
        open_later(&path, 7).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "payload");
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"s").unwrap();
        open_later(&path, 7).unwrap().read_to_string(&mut text).unwrap_err();
    }

    #[test]
    fn a_folder_is_refused_and_an_empty_file_is_empty() {
        let (folder, path) = path("body", b"");
        let (mut reader, length) = open(&path).unwrap();
        assert_eq!((reader.read(&mut [0]).unwrap(), length), (0, Some(0)));
        let error = open(&Arc::from(folder.path())).err().unwrap().to_string();
        assert!(error.contains("is a folder"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_claims_to_be_empty_is_sent_all_the_same() {
        let path: Arc<Path> = Path::new("/proc/self/status").into();
        assert_eq!(measure(&path).unwrap(), None);
        let (mut reader, length) = open(&path).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("Name:"), "{text}");
        assert_eq!(length, None);
    }
}
