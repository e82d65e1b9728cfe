//! The main job: a list of URLs into a results file, whatever happens on the way.
//!
//! A list of forty thousand URLs takes a night, and in a night something always happens: a proxy
//! dies, a site throttles, the disk fills up, somebody presses Ctrl-C. So a [`Batch`] is built
//! around one sentence: **every URL stands in the results exactly once, and the results are all
//! that has to survive.** The input is read as the workers ask for more, the records are written as
//! URLs end, and what is in the file decides what a resumption still has to do.
//!
//! ```text
//! source ─► (left out: done before, repeated) ─► worker pool ─► record ─► bodies ─► sink
//!                                                  ▲   │
//!                                                  └───┘ failed, and passes left: held back
//! ```
//!
//! What this layer decides: which lines are the same ([`Key`]), which failures get another pass,
//! what is in a [`Record`], when a record counts as durable ([`Sink`]), what a resumption takes
//! again ([`Journal`]), and when a run is over ([`Stopped`]). How a request is sent and retried is
//! the business of the layers below.
//!
//! **Sources and sinks.** Both ends are traits. A [`JobSource`] hands jobs out, perhaps under leases,
//! and is told what became of them, a job as done only when its record is durable in the [`Sink`].
//! Lines are a [`Source`], which nobody has to be told anything; [`IterSource`] takes any iterator.
//!
//! **Refusals.** A URL that is refused (403, or what the user calls a block page) goes through the slow
//! lane within its pass; see [`BatchBuilder::slow_lane`].
//!
//! **Passes.** With more than one pass, URLs of the classes *retryable* and *refused* are held back
//! when they fail and are sent again after the input has ended, through whatever proxies are
//! healthy by then. The record is written at the end of the last of them, with the attempts of all.
//! Held back are at most 100 000 URLs, with their requests and attempts; one that fails beyond that
//! is written as failed at once. Of jobs under a lease no more are held back than there are permits.
//! The deadline and the promised worst case hold for each pass.

mod analysis;
mod bodies;
mod builder;
mod claims;
mod columns;
mod content;
mod done_before;
mod exit_check;
mod exit_sample;
mod feed;
mod format;
#[cfg(feature = "zstd")]
mod frames;
mod input;
mod item;
mod iter_source;
mod job_source;
mod journal;
mod keep;
mod key;
mod keyset;
mod lease_book;
mod line_jobs;
#[cfg(any(test, feature = "lab"))]
mod memory_queue;
mod pace;
mod parallel;
mod parts;
mod proxy_check;
mod record;
mod redact;
mod report;
mod run;
mod settling;
#[cfg(test)]
mod simulated;
mod sink;
mod source;
mod stop;
mod syncing;
mod tally;
mod tally_file;
mod torn;
mod warc;
mod watch;
mod window;
mod writer;

pub use analysis::{
    Analysis, AttemptsPerUrl, Comparison, Difference, ExceptionsByHour, ExitsSeen, Hour, OverTime,
    Percentiles, PhaseTimes, Promise, REPORT_VERSION, Refusal, Refusals, Report, Row, Rows, Sign,
    SlowUrl, Step, Unit, Verdict, Waits,
};
pub use bodies::Bodies;
pub use builder::{Batch, BatchBuilder};
pub use columns::Columns;
pub use exit_check::{Exits, address_in, exit_check};
pub use exit_sample::ExitSamples;
pub use format::Format;
pub use input::Input;
pub use item::{Item, Meta, Place};
pub use iter_source::{IntoJob, IterSource};
pub use job_source::{Claimed, JobSource, Lease, LeaseId, Lost, Supply};
pub use journal::{Done, Existing, Found, Journal};
pub use key::Key;
#[cfg(any(test, feature = "lab"))]
pub use memory_queue::{DeadLetter, MemoryQueue};
pub use parts::parts_of;
pub use proxy_check::{
    CheckedProxy, ExitCount, Field, HeaderChanges, ProxyCheck, ProxyChecks, ProxyState, Rotates,
    WayCheck,
};
pub use record::{
    AttemptRecord, ErrorRecord, Record, RefusedRecord, TimingsRecord, VERSION, class_of,
};
pub use report::{FoundConcurrency, Plan, Progress, Summary};
pub use sink::{FnSink, Sink, SinkError};
pub use source::{Checked, Entry, Items, Source};
pub use stop::{Outcome, Stopped, exit_code_of};
pub use syncing::Durable;
pub use tally::{Exceptions, Longest, Tally, Way};
pub use warc::{Warc, WarcFiles};
pub use writer::{Output, RecordWriter};
