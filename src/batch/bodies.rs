//! A folder of bodies, each under its own digest.
//!
//! Two thousand URLs that answer with the same page need one file, and a file whose name is the
//! digest of its content is complete as soon as it has its name: it is written under another name
//! and renamed. The extension comes from the media type, so that the files open by a click.

use super::sink::SinkError;
use super::syncing::sync_bodies;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use url::Url;

/// How many digests of written files are remembered; beyond that the file system is asked.
const REMEMBERED: usize = 65_536;

/// Keeps bodies as files.
#[derive(Debug)]
pub struct Bodies {
    folder: PathBuf,
    written: HashSet<[u8; 32]>,
    unsynced: Vec<PathBuf>,
    number: u64,
}

impl Bodies {
    /// Keeps them in this folder, which is made where it is missing.
    ///
    /// # Errors
    /// Those of making the folder.
    pub fn new(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, written: HashSet::new(), unsynced: Vec::new(), number: 0 })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps a body and tells its place, relative to the folder and with `/` on every system:
    /// `ab/cdef….html`. The same body (with the same extension) is written once.
    ///
    /// # Errors
    /// Those of the file system; no file of this name exists then.
    pub fn store(
        &mut self,
        body: &[u8],
        media_type: Option<&str>,
        url: &Url,
    ) -> io::Result<String> {
        let mut named = Sha256::new();
        let digest = Sha256::digest(body);
        let extension = extension(media_type, url);
        named.update(digest);
        named.update(&extension);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let (folder, name) = hex.split_at_checked(2).unwrap_or(("", &hex));
        let relative = format!("{folder}/{name}.{extension}");
        let named: [u8; 32] = named.finalize().into();
        if self.written.contains(&named) {
            return Ok(relative);
        }
        let path = self.folder.join(folder).join(format!("{name}.{extension}"));
        if !path.try_exists()? {
            self.write(&path, body)?;
        }
        if self.written.len() < REMEMBERED {
            self.written.insert(named);
        }
        Ok(relative)
    }

    /// Returns once every body so far will survive a crash of the machine.
    ///
    /// # Errors
    /// [`SinkError::Full`] and [`SinkError::Failed`], with the file.
    pub fn sync(&mut self) -> Result<(), SinkError> {
        sync_bodies(&std::mem::take(&mut self.unsynced))
    }

    /// The files that are not synced yet; whoever takes them has to.
    pub(super) fn unsynced(&mut self) -> &mut Vec<PathBuf> {
        &mut self.unsynced
    }

    fn write(&mut self, path: &Path, body: &[u8]) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        self.number += 1;
        let unfinished =
            self.folder.join(format!(".unfinished-{}-{}", std::process::id(), self.number));
        let written = File::create(&unfinished)
            .and_then(|mut file| file.write_all(body))
            .and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            let _gone = fs::remove_file(&unfinished);
        }
        written?;
        self.unsynced.push(path.to_path_buf());
        Ok(())
    }
}

/// Whether a file has the place and name of a body.
pub(super) fn is_body(path: &Path) -> bool {
    let is_hex = |text: Option<&std::ffi::OsStr>, length| {
        text.and_then(|text| text.to_str())
            .is_some_and(|text| text.len() == length && text.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    is_hex(path.parent().and_then(Path::file_name), 2) && is_hex(path.file_stem(), 62)
}

/// The extension of a body: that of its media type, or else that of its URL, or else `bin`.
fn extension(media_type: Option<&str>, url: &Url) -> String {
    let essence = media_type
        .and_then(|text| text.split(';').next())
        .map(|text| text.trim().to_ascii_lowercase())
        .unwrap_or_default();
    // The registry lists every extension of a type in alphabetical order: `asm` for plain text.
    let usual = match essence.as_str() {
        "text/html" => "html",
        "text/plain" => "txt",
        "text/css" => "css",
        "text/xml" | "application/xml" => "xml",
        "text/javascript" | "application/javascript" => "js",
        "application/json" => "json",
        "application/pdf" => "pdf",
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/gif" => "gif",
        "image/svg+xml" => "svg",
        "image/tiff" => "tif",
        "video/mp4" => "mp4",
        "audio/mpeg" => "mp3",
        _ => "",
    };
    if !usual.is_empty() {
        return usual.to_owned();
    }
    let of_url = Path::new(url.path())
        .extension()
        .and_then(|text| text.to_str())
        .filter(|text| text.len() <= 8 && text.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .map(str::to_ascii_lowercase);
    let is_vague = essence.contains('*')
        || matches!(essence.as_str(), "" | "application/octet-stream" | "binary/octet-stream");
    if let Some(of_url) = of_url {
        let guesses = mime_guess::from_ext(&of_url);
        if is_vague && !guesses.is_empty() || guesses.iter().any(|guess| guess == essence.as_str())
        {
            return of_url;
        }
    }
    let registered = essence
        .split_once('/')
        .filter(|_| !is_vague)
        .and_then(|(top, sub)| mime_guess::get_extensions(top, sub))
        .and_then(<[_]>::first);
    registered.map_or("bin", |text| *text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn extensions() {
        for (media_type, path, wanted) in [
            (Some("text/html; charset=utf-8"), "x.php", "html"),
            (Some("TEXT/HTML"), "", "html"),
            (Some("text/plain"), "", "txt"),
            (Some("image/jpeg"), "a.jpeg", "jpg"),
            (Some("application/json"), "", "json"),
            (Some("application/zip"), "a.zip", "zip"),
            (Some("application/gzip"), "", "gz"),
            (Some("application/octet-stream"), "a.ZIP", "zip"),
            (Some("application/octet-stream"), "a.unheard", "bin"),
            (None, "a.png", "png"),
            (None, "a", "bin"),
            (Some("*/*"), "", "bin"),
            (Some("../../etc"), "a./../b", "bin"),
            (Some("application/*"), "", "bin"),
        ] {
            let at = url(&format!("http://h/{path}"));
            assert_eq!(extension(media_type, &at), wanted, "{media_type:?} {path}");
        }
    }

    #[test]
    fn one_file_a_digest_and_nothing_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        let at = url("http://h/");
        let mut bodies = Bodies::new(folder.path().join("bodies")).unwrap();
        let first = bodies.store(b"abc", Some("text/plain"), &at).unwrap();
        assert_eq!(first, "ba/7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.txt");
        assert_eq!(fs::read(bodies.folder().join(&first)).unwrap(), b"abc");
        // A file that is there is left as it is, in this run and in the next.
        fs::write(bodies.folder().join(&first), b"kept").unwrap();
        assert_eq!(bodies.store(b"abc", Some("text/plain"), &at).unwrap(), first);
        bodies.sync().unwrap();
        let mut bodies = Bodies::new(folder.path().join("bodies")).unwrap();
        assert_eq!(bodies.store(b"abc", Some("text/plain"), &at).unwrap(), first);
        assert_eq!(fs::read(bodies.folder().join(&first)).unwrap(), b"kept");
        assert_ne!(bodies.store(b"abc", Some("text/html"), &at).unwrap(), first);
        let names: Vec<_> = fs::read_dir(bodies.folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["ba"]);
    }
}
