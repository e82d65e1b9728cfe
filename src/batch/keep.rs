//! What is kept of the answers beside the records: nothing, bodies as files, or the messages as WARC.

use super::bodies::Bodies;
use super::record::Record;
use super::sink::SinkError;
use super::warc::Warc;
use crate::workers::Finished;
use http::header::CONTENT_TYPE;
use std::path::PathBuf;
use std::time::SystemTime;

/// Keeps answers.
#[derive(Debug)]
pub(super) enum Keep {
    Nothing,
    Bodies(Bodies),
    Warc(Box<Warc>),
}

impl Keep {
    /// Keeps the answer that a record is about, and tells the record where.
    pub(super) fn store(
        &mut self,
        finished: &Finished,
        record: &mut Record,
        now: SystemTime,
    ) -> Result<(), SinkError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Bodies(bodies) => store_body(bodies, finished, record),
            Self::Warc(warc) => warc.store(finished.attempts(), Some(record), now),
        }
    }

    /// Keeps the answers of a pass that another one follows, which has the record. An archive has what
    /// came; a body that is superseded is of no use.
    pub(super) fn store_earlier(
        &mut self,
        finished: &Finished,
        now: SystemTime,
    ) -> Result<(), SinkError> {
        match self {
            Self::Nothing | Self::Bodies(_) => Ok(()),
            Self::Warc(warc) => warc.store(finished.attempts(), None, now),
        }
    }

    /// The files that are not synced yet. A record must not outlive what it names, so whoever writes
    /// one sees to them first.
    pub(super) fn unsynced(&mut self) -> Option<&mut Vec<PathBuf>> {
        match self {
            Self::Nothing => None,
            Self::Bodies(bodies) => Some(bodies.unsynced()),
            Self::Warc(warc) => Some(warc.unsynced()),
        }
    }
}

fn store_body(
    bodies: &mut Bodies,
    finished: &Finished,
    record: &mut Record,
) -> Result<(), SinkError> {
    let response = match &finished.result {
        Ok(response) => Some(response),
        Err(error) => error.response(),
    };
    if let Some(response) = response.filter(|response| !response.body().is_empty()) {
        let media_type = response.headers().get(CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok());
        let kept = bodies.store(response.body(), media_type, response.url());
        record.body_file =
            Some(kept.map_err(|error| SinkError::of_bodies(error, bodies.folder()))?);
    }
    Ok(())
}
