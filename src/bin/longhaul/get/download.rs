//! `--continue`: into a file, from where an earlier download broke off.
//!
//! What has come is in a file beside the one that it will be, and stays there whatever happens. So
//! nothing has to be finished or cleared away when somebody wants the end of it.

use super::{Broken, Get, tell};
use crate::args::GetArgs;
use crate::exit::Exit;
use crate::progress;
use crate::signals;
use crate::usage::UsageError;
use http::Method;
use longhaul::session::Downloaded;
use longhaul::time::{Clock, SystemClock};
use longhaul::{Error, Request, Session};
use std::path::Path;

/// Refuses what cannot be gone on with.
pub(super) fn check(args: &GetArgs, request: &Request) -> Result<(), UsageError> {
    let refused =
        |what: String| Err(UsageError::new("--continue", format!("{what}; leave one of them out")));
    if request.method != Method::GET || !request.body.is_empty() {
        return refused(format!(
            "only a GET without a body can be gone on with, and no {}",
            request.method
        ));
    }
    for (given, flag) in [(args.raw, "--raw"), (args.json_result, "--json-result")] {
        if given {
            return refused(format!("contradicts {flag}"));
        }
    }
    Ok(())
}

impl Get {
    /// Fetches into the file, and tells what of it was there.
    pub(super) fn download(&self, session: &Session, path: &Path) -> Result<Exit, UsageError> {
        signals::leave_on_interrupt();
        let begun = SystemClock.now();
        let fetched = self.fetch_part(session, path);
        let took = SystemClock.now().saturating_duration_since(begun);
        let file = match fetched {
            Ok(file) => file,
            Err(error) => {
                return match super::usage(&error) {
                    Some(usage) => Err(usage),
                    None => Ok(self.failed(&error)),
                };
            }
        };
        let mut screen = super::Screen::new(std::io::stdout().lock(), false);
        if let Err(Broken::Output(error)) = self.print_heads(&mut screen) {
            return Ok(super::unwritable(&error));
        }
        if self.steps {
            progress::print(&tell::downloaded(&file, took));
        }
        Ok(Exit::SUCCESS)
    }

    fn fetch_part(&self, session: &Session, path: &Path) -> Result<Downloaded, Error> {
        let mut request = session.get(&self.request.url);
        for (name, value) in &self.request.headers {
            request = match value {
                Some(value) => request.header(name, value.as_slice()),
                None => request.remove_header(name),
            };
        }
        request.download(path).send()
    }
}
