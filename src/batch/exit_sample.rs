//! By which addresses a run leaves, looked at while it runs.
//!
//! That the exits were fine at the start says little about the night. So every so many URLs the
//! endpoint of the exit check is put among them, as a job like any other: it takes whichever worker
//! is free and whichever proxy is due, and its answer is a sample of what the targets see. Two
//! numbers tell whether rotation rotates: how many of the samples showed an address that had been
//! seen before, and the share of the address that was seen most.
//!
//! A sample that shows the own address ends the run at once: what is in flight may be leaving by
//! it.

use super::exit_check::read_address;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{Request, Setting};
use crate::policy::Retry;
use crate::session::SessionBuilder;
use crate::workers::Finished;
use http::Method;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses that are told apart; samples that would need more of them are not counted.
const MOST_ADDRESSES: usize = 100_000;

/// What the samples of a run say of its exits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExitSamples {
    /// Samples that showed an address.
    pub samples: u64,
    /// Samples that failed, or showed none.
    pub failed: u64,
    /// Different addresses among them.
    pub distinct: u64,
    /// The share of samples, from 0 to 1, whose address an earlier one had shown.
    pub repeat_rate: f64,
    /// The address that was seen most.
    pub top: Option<String>,
    /// Its share of the samples, from 0 to 1.
    pub top_share: f64,
}

/// Where the samples of a run go in, and what they came to.
#[derive(Debug)]
pub(super) struct Sampling {
    url: String,
    /// After so many URLs.
    every: u64,
    /// The own address, where it is known.
    own: Option<IpAddr>,
    /// Whose sessions learn by which exit an identity leaves.
    recipe: SessionBuilder,
    seen: BTreeMap<IpAddr, u64>,
    failed: u64,
}

impl Sampling {
    pub(super) fn new(
        url: String,
        every: u64,
        own: Option<IpAddr>,
        recipe: SessionBuilder,
    ) -> Self {
        Self { url, every: every.max(1), own, recipe, seen: BTreeMap::new(), failed: 0 }
    }

    /// What the feed puts among the URLs.
    pub(super) fn plan(&self) -> SamplePlan {
        SamplePlan { url: self.url.clone(), every: self.every, since: 0 }
    }

    /// Takes what came of a sample; the address that it shows.
    ///
    /// # Errors
    /// `ExitLeak` where it shows the own address.
    pub(super) fn take(&mut self, finished: &Finished) -> Result<Option<IpAddr>, Error> {
        let seen = finished.result.as_ref().ok().and_then(|response| {
            let address = read_address(response).ok()?;
            Some((address, response))
        });
        let Some((address, response)) = seen else {
            self.failed += 1;
            return Ok(None);
        };
        if self.seen.len() < MOST_ADDRESSES || self.seen.contains_key(&address) {
            *self.seen.entry(address).or_default() += 1;
        }
        let connection = response.connection();
        if let Some(identity) = connection.identity.filter(|_| !connection.reused) {
            self.recipe.note_exit(identity, address);
        }
        match (self.own, response.proxy()) {
            (Some(own), Some(proxy)) if own == address => {
                let text = format!(
                    "in the middle of the run the world saw the own address {own} through {proxy}; \
                     everything was cut, check where this proxy leads"
                );
                Err(Error::new(ErrorKind::ExitLeak, Phase::Body, Fault::Proxy, text))
            }
            _ => Ok(Some(address)),
        }
    }

    /// What the samples came to.
    pub(super) fn summary(&self) -> ExitSamples {
        let samples: u64 = self.seen.values().sum();
        let distinct = self.seen.len() as u64;
        // Of several that are equal the lowest address, so that the answer is always the same.
        let top = self.seen.iter().rev().max_by_key(|(_, times)| **times);
        let share = |part: u64| {
            let share = if samples == 0 { 0.0 } else { part as f64 / samples as f64 };
            (share * 10_000.0).round() / 10_000.0
        };
        ExitSamples {
            samples,
            failed: self.failed,
            distinct,
            repeat_rate: share(samples - distinct),
            top: top.map(|(address, _)| address.to_string()),
            top_share: share(top.map_or(0, |(_, times)| *times)),
        }
    }
}

/// When a sample is due.
#[derive(Debug, Clone)]
pub(super) struct SamplePlan {
    url: String,
    every: u64,
    since: u64,
}

impl SamplePlan {
    /// The sample, where one is due; counts a URL where none is.
    pub(super) fn due(&mut self) -> Option<Request> {
        if self.since < self.every {
            self.since += 1;
            return None;
        }
        self.since = 0;
        let mut request = Request::new(Method::GET, &self.url);
        // A sample that fails says what it has to say.
        request.overrides.retry = Setting::Set(Retry::none());
        request.overrides.stream = Some(false);
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    #[test]
    fn a_sample_is_due_after_so_many_urls() {
        let sampling = Sampling::new("http://e/".to_owned(), 3, None, Session::builder());
        let mut plan = sampling.plan();
        let due: Vec<bool> = (0..9).map(|_| plan.due().is_some()).collect();
        assert_eq!(due, [false, false, false, true, false, false, false, true, false]);
    }

    #[test]
    fn the_numbers_tell_whether_rotation_rotates() {
        let mut sampling = Sampling::new(String::new(), 1, None, Session::builder());
        assert_eq!(sampling.summary(), ExitSamples::default());
        for (address, times) in [("192.0.2.2", 2), ("192.0.2.1", 2), ("192.0.2.3", 1)] {
            sampling.seen.insert(address.parse().unwrap(), times);
        }
        sampling.failed = 4;
        let summary = sampling.summary();
        assert_eq!((summary.samples, summary.failed, summary.distinct), (5, 4, 3));
        assert_eq!((summary.repeat_rate, summary.top_share), (0.4, 0.4));
        assert_eq!(summary.top.as_deref(), Some("192.0.2.1"));
    }
}
