//! A URL into a file, with resume.
//!
//! requests leaves this to its users, and most of them write the loop that begins anew after every
//! break. What is hard about it is not the loop but what may be joined to what, which is decided in
//! `plan` alone and without I/O; `part` keeps the bytes and what they are a part of, `drive` steps
//! the flight.

mod drive;
mod part;
mod plan;

use super::{RequestBuilder, Session};
use crate::error::{Attempt, Error};
use crate::message::{Request, Validators};
use http::HeaderMap;
use std::fmt;
use std::path::PathBuf;
use url::Url;

/// A download that is being described; made by
/// [`RequestBuilder::download`](super::RequestBuilder::download).
#[must_use = "nothing is fetched before `send`"]
pub struct Download<'a> {
    session: Option<&'a Session>,
    request: Result<Request, Error>,
    path: PathBuf,
    resume: bool,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes of the file that are there, those of an earlier part included. It falls where the file
    /// has to be begun anew.
    pub have: u64,
    /// How many it will be, where the server says so.
    pub total: Option<u64>,
    /// Where this download began: what was left of an earlier one.
    pub resumed_from: u64,
}

/// A file that was fetched.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Downloaded {
    /// Where it is.
    pub path: PathBuf,
    /// How long it is.
    pub bytes: u64,
    /// How many of them were left from an earlier download; 0 where it was begun anew.
    pub resumed_from: u64,
    /// Every attempt that was made, oldest first.
    pub attempts: Vec<Attempt>,
    /// The final URL.
    pub url: Url,
    /// The fields of the last response.
    pub headers: HeaderMap,
}

impl Downloaded {
    /// The validators of the file, for [`RequestBuilder::if_changed`](super::RequestBuilder).
    pub fn validators(&self) -> Validators {
        Validators::of(&self.headers)
    }
}

impl<'a> RequestBuilder<'a> {
    /// Fetches the URL into the file `path`, going on where an earlier download broke off.
    ///
    /// The bytes are gathered in `PATH.part`, with `PATH.part.json` beside it. The file gets its name
    /// only when it is complete and on disk; until then what stands there stays. A download that
    /// breaks off, in this call or by the end of the program, is resumed where the server has given
    /// a strong validator (a strong `ETag`, or a `Last-Modified` of some age): with `Range` and
    /// `If-Range`, so that parts of different files are never joined. Otherwise it begins anew.
    ///
    /// Each break is charged to the `read` budget of the retry policy, and the deadline covers all
    /// of it; with no retries, which is the default of a session, a break is an error, and the next
    /// call goes on from there. `Accept-Encoding: identity` is sent. What a server codes all the
    /// same is decoded and cannot be resumed.
    ///
    /// # Errors
    /// From [`Download::send`].
    ///
    /// # Examples
    /// ```no_run
    /// # fn main() -> Result<(), longhaul::Error> {
    /// use longhaul::{Retry, Session};
    ///
    /// let session = Session::builder().retry(Retry::long_run()).build()?;
    /// let file = session.get("https://example.com/large.iso").download("large.iso").send()?;
    /// println!("{} bytes, {} of them from before", file.bytes, file.resumed_from);
    /// # Ok(())
    /// # }
    /// ```
    pub fn download(self, path: impl Into<PathBuf>) -> Download<'a> {
        let (session, request) = self.into_parts();
        Download { session, request, path: path.into(), resume: true, progress: None }
    }
}

impl<'a> Download<'a> {
    /// Whether what an earlier download left is gone on with; default on. A break within this one
    /// is resumed either way.
    pub fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// Calls `progress` after each piece that was written, of 64 KiB at most.
    pub fn on_progress(mut self, progress: impl FnMut(Progress) + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Fetches it.
    ///
    /// # Errors
    /// As [`Session::send`], and the first mistake in the description; `HttpStatus` with the response
    /// for one that is no file (every status but 200, 203 and 206); `Io` with the path where the disk
    /// fails; `Config` for a method other than GET, for a `Range` or `If-Range` field, for a path that
    /// names no file, and where another download writes it.
    pub fn send(self) -> Result<Downloaded, Error> {
        let Self { session, request, path, resume, progress } = self;
        let order = drive::Order { request: request?, path, resume, progress };
        match session {
            Some(session) => order.fetch(session),
            None => order.fetch(&Session::new()?),
        }
    }
}

impl fmt::Debug for Download<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("path", &self.path)
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}
