//! What to ask for, and what an answer means for the part that is there; pure.
//!
//! Two halves of different files look like one file, so everything here is about not joining them.
//! A range is asked for only with `If-Range` and a strong validator, and a 206 is taken only where
//! its range begins where the part ends, its total is the one that was promised, its validator is
//! the same, and nothing is coded. Whatever is not exactly that is no failure: the file is begun
//! anew, without a range, so that the next answer cannot be such a surprise again.

use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::Validators;
use http::{HeaderMap, header};

/// The state of a download between two requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Plan {
    /// How many bytes of the file are there.
    pub(super) have: u64,
    /// How long the file is, where that is known.
    pub(super) length: Option<u64>,
    /// What a range has to be asked with; without it nothing can be resumed.
    pub(super) validator: Option<String>,
}

/// What a response head means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The body goes on where the part ends.
    Append,
    /// The body is the file from its beginning.
    Start,
    /// There is nothing left to fetch.
    Complete,
    /// It cannot be used: ask again, for the whole file.
    Again,
}

impl Plan {
    /// The range to ask for and its validator; `None` where the whole file has to come.
    pub(super) fn range(&self) -> Option<(u64, &str)> {
        let validator = self.validator.as_deref()?;
        (self.have > 0).then_some((self.have, validator))
    }

    /// Nothing that is there can be used.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// What the answer to a request for [`range`](Self::range) means.
    pub(super) fn answer(&mut self, status: u16, headers: &HeaderMap) -> Result<Verdict, Error> {
        let verdict = match status {
            200 | 203 => {
                self.begin(headers);
                return Ok(Verdict::Start);
            }
            206 | 416 if self.range().is_none() => {
                return Err(Error::new(
                    ErrorKind::Protocol,
                    Phase::Headers,
                    Fault::Target,
                    format!("status {status} answers a request for a range, and none was made"),
                ));
            }
            206 if self.fits(headers) => Verdict::Append,
            416 if self.is_whole(headers) => Verdict::Complete,
            206 | 416 => Verdict::Again,
            _ => {
                return Err(Error::new(
                    ErrorKind::HttpStatus,
                    Phase::Headers,
                    Fault::Target,
                    format!("status {status} is no file to be saved"),
                ));
            }
        };
        if verdict == Verdict::Again {
            self.forget();
        }
        Ok(verdict)
    }

    /// Bytes were added.
    pub(super) fn add(&mut self, count: usize) {
        self.have = self.have.saturating_add(count as u64);
    }

    /// More than there should be; no further byte can be right.
    pub(super) fn is_beyond(&self) -> bool {
        self.length.is_some_and(|length| self.have > length)
    }

    /// Whether the file is complete now that the body has come to its end.
    pub(super) fn end(&self) -> Result<(), Error> {
        match self.length {
            Some(length) if length != self.have => Err(Error::new(
                ErrorKind::IncompleteBody,
                Phase::Body,
                Fault::Target,
                format!("the file has {length} bytes, and {} came", self.have),
            )
            .with_received_bytes(self.have)),
            _ => Ok(()),
        }
    }

    /// A file from its beginning. What is coded has neither a length nor a validator that speak of
    /// the decoded bytes.
    fn begin(&mut self, headers: &HeaderMap) {
        self.forget();
        if is_coded(headers) {
            return;
        }
        self.validator = Validators::of(headers).if_range().map(str::to_owned);
        if !headers.contains_key(header::TRANSFER_ENCODING) {
            self.length = text(headers, header::CONTENT_LENGTH).and_then(|text| text.parse().ok());
        }
    }

    /// Whether a 206 goes on where the part ends, in the same file.
    fn fits(&mut self, headers: &HeaderMap) -> bool {
        let Some(ContentRange { first, last, total }) = ContentRange::of(headers) else {
            return false;
        };
        let fits = first == self.have
            && last.checked_add(1) == Some(total)
            && self.length.is_none_or(|length| length == total)
            && !is_coded(headers)
            && self.is_same(headers);
        if fits {
            self.length = Some(total);
        }
        fits
    }

    /// Whether a 416 says that all of the file is there.
    fn is_whole(&mut self, headers: &HeaderMap) -> bool {
        let total = text(headers, header::CONTENT_RANGE).and_then(|text| {
            let (unit, rest) = text.split_once(' ')?;
            let total = rest.trim().strip_prefix("*/")?;
            unit.eq_ignore_ascii_case("bytes").then(|| total.parse::<u64>().ok())?
        });
        let is_whole = total == Some(self.have)
            && self.length.is_none_or(|length| length == self.have)
            && self.is_same(headers);
        if is_whole {
            self.length = total;
        }
        is_whole
    }

    /// Whether the fields contradict the validator: some servers know ranges and not `If-Range`.
    fn is_same(&self, headers: &HeaderMap) -> bool {
        let Some(validator) = self.validator.as_deref() else { return false };
        let now = Validators::of(headers);
        let now = if validator.starts_with('"') { now.etag() } else { now.last_modified() };
        now.is_none_or(|now| now == validator)
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn is_coded(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).iter().any(|value| {
        value.as_bytes().split(|byte| *byte == b',').any(|name| {
            let name = name.trim_ascii();
            !name.is_empty() && !name.eq_ignore_ascii_case(b"identity")
        })
    })
}

/// `bytes FIRST-LAST/TOTAL`; a total that is not told is none that could be held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ContentRange {
    first: u64,
    last: u64,
    total: u64,
}

impl ContentRange {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let (unit, rest) = text(headers, header::CONTENT_RANGE)?.split_once(' ')?;
        let (range, total) = rest.trim().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let found = Self { first: number(first)?, last: number(last)?, total: number(total)? };
        (unit.eq_ignore_ascii_case("bytes")
            && found.first <= found.last
            && found.last < found.total)
            .then_some(found)
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
