//! What a run leaves behind: the form of its results and their parts, bodies, WARC files.

use super::BatchBuilder;
use crate::batch::bodies::Bodies;
use crate::batch::format::Format;
use crate::batch::journal::{Existing, Journal};
use crate::batch::keep::Keep;
use crate::batch::sink::io_error;
use crate::batch::warc::{Packer, WarcFiles};
use crate::error::Error;
use crate::session::SessionBuilder;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is to be left, and how.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    pub(super) format: Option<Format>,
    rotate_size: Option<u64>,
    bodies: Option<PathBuf>,
    warc: Option<PathBuf>,
    warc_size: Option<u64>,
    warc_credentials: bool,
    packer: Packer,
}

impl BatchBuilder {
    /// The form of the results; a sink of one's own has its own.
    ///
    /// A table of CSV is resumed from where it has the columns `id`, `ok`, `class` and `error.kind`.
    ///
    /// # Defaults
    /// That of the file's name ([`Format::of_name`]), and JSON Lines on standard output.
    pub fn format(mut self, format: Format) -> Self {
        self.outputs.format = Some(format);
        self
    }

    /// From how many bytes on the next record goes into another file: `results.1.jsonl`,
    /// `results.2.jsonl` and so on for `results.jsonl`. A resumption reads all of them
    /// ([`parts_of`](crate::batch::parts_of)).
    ///
    /// # Defaults
    /// One file.
    pub fn rotate_size(mut self, bytes: u64) -> Self {
        self.outputs.rotate_size = Some(bytes);
        self
    }

    /// Keeps the bodies of all responses as files in this folder; see [`Bodies`].
    ///
    /// # Defaults
    /// Bodies are not kept.
    pub fn bodies(mut self, folder: impl Into<PathBuf>) -> Self {
        self.outputs.bodies = Some(folder.into());
        self
    }

    /// Keeps what goes over the wire in WARC 1.1 files: for `PREFIX.warc.gz` these are
    /// `PREFIX-00000.warc.gz` and so on; see [`WarcFiles`]. Every answer is kept, with its request, those
    /// of redirects and of attempts that another one followed included. The record names the place of
    /// the last one.
    ///
    /// It takes the place of [`bodies`](Self::bodies). What an attempt carried is kept in memory until
    /// its URL has ended, beside the decoded body, and is bounded by what may be read of a body.
    ///
    /// # Defaults
    /// Not kept.
    pub fn warc(mut self, name: impl Into<PathBuf>) -> Self {
        self.outputs.warc = Some(name.into());
        self
    }

    /// From how many bytes on the next URL goes into a new WARC file.
    ///
    /// # Defaults
    /// 1 GiB.
    pub fn warc_size(mut self, bytes: u64) -> Self {
        self.outputs.warc_size = Some(bytes);
        self
    }

    /// Whether the credentials of requests (`Authorization`, cookies and the like) stand in the WARC
    /// files as they were sent.
    ///
    /// # Defaults
    /// No: `***` stands in their place.
    pub fn warc_credentials(mut self, written: bool) -> Self {
        self.outputs.warc_credentials = written;
        self
    }
}

impl Outputs {
    /// Whether it can be left; `is_file` is whether the results go into a file.
    pub(super) fn check(&self, is_file: bool) -> Result<(), Error> {
        if self.rotate_size == Some(0) {
            return Err(Error::config("results files of 0 bytes hold nothing; give a size"));
        }
        if self.rotate_size.is_some() && !is_file {
            return Err(Error::config(
                "only results in files go on in another one; name a file as the output",
            ));
        }
        if self.bodies.is_some() && self.warc.is_some() {
            return Err(Error::config(
                "bodies are kept as files or in WARC files, which have them too; leave one out",
            ));
        }
        if self.warc_size == Some(0) {
            return Err(Error::config("WARC files of 0 bytes hold nothing; give a size"));
        }
        Ok(())
    }

    /// The recipe of sessions that keep what is to be left.
    pub(super) fn heeded_by(&self, session: SessionBuilder) -> SessionBuilder {
        match self.warc {
            Some(_) => self.packer.of(session),
            None => session,
        }
    }

    pub(super) fn journal(&self, path: &Path, existing: Existing) -> Result<Journal, Error> {
        let format = self.format.clone().unwrap_or_else(|| Format::of_name(path));
        Ok(Journal::open_as(path, existing, format)?.part_size(self.rotate_size))
    }

    pub(super) fn warc_files(&self, existing: Existing) -> Result<Option<WarcFiles>, Error> {
        let Some(name) = &self.warc else { return Ok(None) };
        let files = WarcFiles::open(name, existing)?
            .packed_by(&self.packer)
            .credentials(self.warc_credentials);
        Ok(Some(match self.warc_size {
            Some(bytes) => files.size(bytes),
            None => files,
        }))
    }

    /// Begins with what is kept of the answers.
    pub(super) fn keep(&self, warc: Option<WarcFiles>, now: SystemTime) -> Result<Keep, Error> {
        Ok(match (&self.bodies, warc) {
            (_, Some(files)) => Keep::Warc(Box::new(files.begin(now)?)),
            (Some(folder), None) => Keep::Bodies(make_bodies(folder)?),
            (None, None) => Keep::Nothing,
        })
    }
}

fn make_bodies(folder: &Path) -> Result<Bodies, Error> {
    let name = folder.display().to_string();
    Bodies::new(folder).map_err(|error| {
        let text =
            format!("the folder {name} for bodies cannot be made: {error}; name another one");
        io_error(text, error)
    })
}
