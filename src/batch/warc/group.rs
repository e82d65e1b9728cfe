//! The records of one URL: for each of its exchanges what came and what was sent, and behind them what
//! the run has to say of it.
//!
//! A payload that was written before is not written again: a *revisit* record has the head of the
//! response and names the record that has the body. The payload is compared, so the same page under
//! another address or in other chunks is found, too.

use super::fields::{Fields, Id, date};
use super::packed::Packed;
use super::payload::Digest;
use crate::batch::Record;
use crate::error::{Exchange, Message, Truncated};
use crate::rng::Rng;
use crate::transport::TracedHead;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The profile of a revisit that was told by its digest.
const PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
/// How many payloads are remembered, with the URLs they came from: about 15 MB. Of more, the later
/// ones are written in full.
const REMEMBERED: usize = 65_536;

/// The payloads that stand in the files of this run. Those who pack answers look here too.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<HashMap<Digest, Original>>);

#[derive(Debug, Clone)]
struct Original {
    id: Id,
    url: Box<str>,
    date: Box<str>,
}

/// Records that belong together, compressed and not written yet.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) bytes: Vec<u8>,
    rng: &'a mut Rng,
    /// The record that tells of the file.
    file: Id,
    credentials: bool,
    /// The response that was added last.
    last: Option<Answer>,
    /// Payloads that are new with these records.
    new: Vec<(Digest, Original)>,
}

/// A response in a group.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    id: Id,
    url: String,
    /// Where its record begins in the group.
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl<'a> Group<'a> {
    /// An empty one. `credentials` is whether those of requests are written.
    pub(super) fn new(rng: &'a mut Rng, file: Id, credentials: bool) -> Self {
        Self { bytes: Vec::new(), rng, file, credentials, last: None, new: Vec::new() }
    }

    /// Adds the response of an exchange, and its request; nothing where no response came.
    pub(super) fn add(&mut self, exchange: &Exchange, seen: &Seen) -> io::Result<()> {
        let response = exchange.response();
        if response.head().is_empty() {
            return Ok(());
        }
        let (offset, id) = (self.bytes.len() as u64, Id::random(self.rng));
        let date = date(exchange.at());
        let length = self.add_response(id, &date, exchange, &response, seen)?;

        let request = exchange.request();
        let head = match self.credentials {
            true => Cow::Borrowed(request.head()),
            false => Cow::Owned(TracedHead::new(request.head()).redacted()),
        };
        self.fields("request", &date, exchange.url())
            .add_some("WARC-IP-Address", exchange.address())
            .add("WARC-Concurrent-To", id)
            .add_some("WARC-Truncated", request.truncated().map(Truncated::name))
            .write(&mut self.bytes, "application/http;msgtype=request", &[&head, request.body()])?;
        self.last = Some(Answer { id, url: exchange.url().to_owned(), offset, length });
        Ok(())
    }

    fn add_response(
        &mut self,
        id: Id,
        date: &str,
        exchange: &Exchange,
        response: &Message,
        seen: &Seen,
    ) -> io::Result<u64> {
        const MEDIA_TYPE: &str = "application/http;msgtype=response";
        let packed_now;
        let packed = match exchange.noted::<Packed>() {
            Some(packed) => packed,
            None => {
                packed_now = Packed::of(response, seen)?;
                &packed_now
            }
        };
        let digest = packed.payload;
        let fields = |kind| {
            Fields::new(kind, id, date)
                .add("WARC-Warcinfo-ID", self.file)
                .add("WARC-Target-URI", exchange.url())
                .add_some("WARC-IP-Address", exchange.address())
        };
        let before = digest.and_then(|digest| {
            let of_this_group = self.new.iter().find(|(new, _)| *new == digest);
            of_this_group.map(|(_, original)| original.clone()).or_else(|| seen.original(digest))
        });
        if let (Some(digest), Some(original)) = (digest, before) {
            return fields("revisit")
                .add("WARC-Profile", PROFILE)
                .add("WARC-Payload-Digest", digest.text())
                .add("WARC-Refers-To", original.id)
                .add("WARC-Refers-To-Target-URI", &original.url)
                .add("WARC-Refers-To-Date", &original.date)
                .write(&mut self.bytes, MEDIA_TYPE, &[response.head()]);
        }
        // Of a body in chunks the standard means another digest than the tools that check it do, which
        // leave the chunks in; none is right by both.
        let told = digest.filter(|_| !response.is_chunked());
        let fields = fields("response")
            .add_some("WARC-Payload-Digest", told.map(|digest| digest.text()))
            .add_some("WARC-Truncated", response.truncated().map(Truncated::name));
        if let Some(digest) = digest {
            let original = Original { id, url: exchange.url().into(), date: date.into() };
            self.new.push((digest, original));
        }
        match &packed.part {
            Some(part) => {
                let length = response.bytes().len();
                fields.write_packed(&mut self.bytes, MEDIA_TYPE, part, length, packed.block)
            }
            None => fields.write(&mut self.bytes, MEDIA_TYPE, &[response.bytes()]),
        }
    }

    /// Adds the record of the run about the answer that was added last, if there is one.
    pub(super) fn add_metadata(&mut self, record: &Record, now: SystemTime) -> io::Result<()> {
        let Some(Answer { id, url, .. }) = &self.last else { return Ok(()) };
        let (id, url) = (*id, url.clone());
        let json = serde_json::to_vec(record)?;
        self.fields("metadata", &date(now), &url).add("WARC-Concurrent-To", id).write(
            &mut self.bytes,
            "application/json",
            &[&json],
        )?;
        Ok(())
    }

    /// The response that was added last.
    pub(super) fn last(&self) -> Option<&Answer> {
        self.last.as_ref()
    }

    /// The payloads that are new with these records, for [`Seen::add`].
    pub(super) fn into_new(self) -> NewPayloads {
        NewPayloads(self.new)
    }

    fn fields(&mut self, kind: &str, date: &str, url: &str) -> Fields {
        Fields::new(kind, Id::random(self.rng), date)
            .add("WARC-Warcinfo-ID", self.file)
            .add("WARC-Target-URI", url)
    }
}

/// Payloads of records that are about to be written.
pub(super) struct NewPayloads(Vec<(Digest, Original)>);

impl Seen {
    /// Remembers the payloads of records that were written.
    pub(super) fn add(&self, new: NewPayloads) {
        let mut seen = self.lock();
        for (digest, original) in new.0 {
            if seen.len() < REMEMBERED {
                seen.entry(digest).or_insert(original);
            }
        }
    }

    pub(super) fn contains(&self, digest: Digest) -> bool {
        self.lock().contains_key(&digest)
    }

    fn original(&self, digest: Digest) -> Option<Original> {
        self.lock().get(&digest).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Original>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the record that tells of the file itself.
pub(super) fn write_info(
    out: &mut Vec<u8>,
    id: Id,
    file_name: &str,
    now: SystemTime,
) -> io::Result<()> {
    let block = concat!(
        "software: longhaul/",
        env!("CARGO_PKG_VERSION"),
        "\r\n",
        "format: WARC File Format 1.1\r\n",
        "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
        "robots: none\r\n",
    );
    Fields::new("warcinfo", id, &date(now)).add("WARC-Filename", file_name).write(
        out,
        "application/warc-fields",
        &[block.as_bytes()],
    )?;
    Ok(())
}
