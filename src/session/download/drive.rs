//! Steps the flight of a download, and moves bytes from its bodies to the disk.

use super::part::Part;
use super::plan::{Plan, Verdict};
use super::{Downloaded, Progress};
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{Request, Response, prepare};
use crate::session::Session;
use http::Method;
use std::io::{self, Write};
use std::path::PathBuf;

/// A download as it was described.
pub(super) struct Order<'a> {
    pub(super) request: Request,
    pub(super) path: PathBuf,
    pub(super) resume: bool,
    pub(super) progress: Option<Box<dyn FnMut(Progress) + 'a>>,
}

impl Order<'_> {
    pub(super) fn fetch(mut self, session: &Session) -> Result<Downloaded, Error> {
        self.check()?;
        let settings = session.settings();
        let ceiling = self.request.overrides.max_body_bytes.over(settings.max_body_bytes.as_ref());
        let ceiling = ceiling.copied().unwrap_or(u64::MAX);
        let url = prepare(settings, &self.request)?.url;
        let (mut part, mut plan) = Part::open(&self.path, &url, self.resume)?;
        let mut resumed_from = plan.range().map_or(0, |(from, _)| from);
        let mut flight = session.flight(self.asking(&plan));
        loop {
            let response = session.drive(&mut flight)?;
            let verdict = match plan.answer(response.status(), response.headers()) {
                Ok(verdict) => verdict,
                Err(error) => return Err(told(error, response)),
            };
            // The ceiling of a response is held by its reader; that of the file is over all of them.
            if let Some(length) = plan.length.filter(|length| *length > ceiling) {
                let text = format!(
                    "the file has {length} bytes, more than the ceiling of {ceiling} decoded bytes"
                );
                let error = Error::new(ErrorKind::TooLarge, Phase::Headers, Fault::Target, text);
                return Err(told(error, response));
            }
            if matches!(verdict, Verdict::Start | Verdict::Again) {
                resumed_from = 0;
            }
            let failure = match verdict {
                Verdict::Again => None,
                Verdict::Complete => {
                    part.begin(&plan)?;
                    part.finish()?;
                    return Ok(self.done(&plan, resumed_from, response));
                }
                Verdict::Append | Verdict::Start => {
                    part.begin(&plan)?;
                    let failure = self.fill(&mut part, &mut plan, resumed_from, &response)?;
                    if failure.is_none() {
                        part.finish()?;
                        return Ok(self.done(&plan, resumed_from, response));
                    }
                    failure
                }
            };
            if let Some(until) = flight.go_on(session, self.asking(&plan), response, failure)? {
                session.sleep_until(until);
            }
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.request.method != Method::GET {
            let method = &self.request.method;
            return Err(Error::config(format!("a download is a GET, and {method} was given")));
        }
        let own =
            |name: &str| ["range", "if-range"].iter().any(|own| name.eq_ignore_ascii_case(own));
        match self.request.headers.iter().find(|(name, _)| own(name)) {
            Some((name, _)) => Err(Error::config(format!(
                "a download sets the field {name} itself; take it away, or fetch with `send`"
            ))),
            None => Ok(()),
        }
    }

    /// The request for what is missing.
    fn asking(&self, plan: &Plan) -> Request {
        let mut request = self.request.clone().stream(true);
        let names_coding = |(name, _): &(String, _)| name.eq_ignore_ascii_case("accept-encoding");
        if !request.headers.iter().any(names_coding) {
            request = request.header("Accept-Encoding", "identity");
        }
        if let Some((from, validator)) = plan.range() {
            request =
                request.header("Range", format!("bytes={from}-")).header("If-Range", validator);
        }
        request
    }

    /// Writes the body into the part. What breaks the transfer is a value, since it is resumed; what
    /// breaks the disk is an error.
    fn fill(
        &mut self,
        part: &mut Part,
        plan: &mut Plan,
        resumed_from: u64,
        response: &Response,
    ) -> Result<Option<Error>, Error> {
        let progress = self.progress.as_deref_mut();
        let mut sink = Sink { part, plan, resumed_from, progress, failure: None };
        let copied = response.copy_to(&mut sink);
        let Sink { part, plan, failure, .. } = sink;
        if let Some(failure) = failure {
            return Err(failure.with_url(response.url().as_str()));
        }
        if plan.is_beyond() {
            // None of it can be trusted.
            let end = plan.end();
            plan.forget();
            part.begin(plan)?;
            return Ok(end.err());
        }
        Ok(match copied {
            Ok(_) => plan.end().err(),
            Err(error) => Some(error),
        })
    }

    fn done(self, plan: &Plan, resumed_from: u64, response: Response) -> Downloaded {
        let parts = response.into_parts();
        Downloaded {
            path: self.path,
            bytes: plan.have,
            resumed_from,
            attempts: parts.attempts,
            url: parts.url,
            headers: parts.headers,
        }
    }
}

/// The error, with where it happened and the response that it came of.
fn told(error: Error, response: Response) -> Error {
    let attempts = response.attempts().to_vec();
    error
        .with_url(response.url().as_str())
        .with_proxy(response.proxy())
        .with_attempts(attempts)
        .with_response(response)
}

/// Where the bytes of a body go.
struct Sink<'s, 'a> {
    part: &'s mut Part,
    plan: &'s mut Plan,
    resumed_from: u64,
    progress: Option<&'s mut (dyn FnMut(Progress) + 'a)>,
    /// Why the disk took no more.
    failure: Option<Error>,
}

impl Write for Sink<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.plan.add(bytes.len());
        if self.plan.is_beyond() {
            return Err(io::Error::other("more bytes than were promised"));
        }
        if let Err(error) = self.part.write(bytes) {
            self.failure = Some(error);
            return Err(io::Error::other("the disk takes no more"));
        }
        if let Some(progress) = &mut self.progress {
            progress(Progress {
                have: self.plan.have,
                total: self.plan.length,
                resumed_from: self.resumed_from,
            });
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
