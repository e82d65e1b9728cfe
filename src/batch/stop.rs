//! Why a run ended before its input did, and what the command makes of it.

use super::report::Summary;
use super::sink::SinkError;
use super::tally::Tally;
use crate::error::{Error, ErrorKind};
use crate::policy::FailureShare;
use std::fmt;

/// Why a run was stopped.
#[non_exhaustive]
#[derive(Debug)]
pub enum Stopped {
    /// By its [`Stopper`](crate::workers::Stopper): a signal, usually.
    Interrupted,
    /// By a failure that more work cannot mend: the proxies refuse the credentials, none of them
    /// is alive, the own address leaks.
    Failure {
        /// The kind of the failure.
        kind: ErrorKind,
        /// Its sentence, without credentials.
        message: String,
    },
    /// By a rule of the user's, in the user's words.
    Rule(String),
    /// Too large a share of the last URLs failed.
    FailureShare {
        /// The rule.
        rule: FailureShare,
        /// How many of the last URLs failed.
        failures: u32,
    },
    /// By its own plan: the time to stop has come, or the longest time is over. Not a failure.
    TimeUp(String),
    /// The reader of the results has gone. Not a failure.
    SinkClosed,
    /// The results or bodies could not be written; what is in them is complete.
    SinkFailed(Error),
    /// The input could not be read to its end.
    SourceFailed(Error),
}

impl Stopped {
    pub(super) fn of_sink(error: SinkError) -> Self {
        match error {
            SinkError::Closed => Self::SinkClosed,
            SinkError::Full(error) | SinkError::Failed(error) => Self::SinkFailed(error),
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Failure { message, .. } => f.write_str(message),
            Self::Rule(cause) | Self::TimeUp(cause) => f.write_str(cause),
            Self::FailureShare { rule, failures } => write!(
                f,
                "{failures} of the last URLs failed, which is too many under {rule}; look at their \
                 records, and go on with --resume"
            ),
            Self::SinkClosed => f.write_str("the reader of the results has gone"),
            Self::SinkFailed(error) | Self::SourceFailed(error) => error.fmt(f),
        }
    }
}

/// What a run came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The numbers, to be shown or written as JSON.
    pub summary: Summary,
    /// The numbers in full, exceptions by hour among them.
    pub tally: Tally,
    /// Why the run was stopped; `None` where it came to its end.
    pub stopped: Option<Stopped>,
}

impl Outcome {
    /// The exit code: 0 where everything succeeded, 1 where some URL failed (in this run, or
    /// before and not tried again), 3 where the run was stopped, 4 where its time was up and URLs
    /// are left for a resumption, 130 where it was interrupted. A reader that has gone is success.
    ///
    /// A time that was up is no failure, and no success either: not every URL has a record.
    pub fn exit_code(&self) -> u8 {
        match &self.stopped {
            Some(Stopped::Interrupted) => 130,
            Some(Stopped::SinkClosed) => 0,
            Some(Stopped::TimeUp(_)) => 4,
            Some(_) => 3,
            None if self.summary.failed > 0 || self.summary.failed_before > 0 => 1,
            None => 0,
        }
    }
}

/// The exit code of a run that did not begin: 3 for a leak and for proxies that cannot be used, 2
/// for everything that has to be corrected first.
pub fn exit_code_of(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::ExitLeak
        | ErrorKind::ProxyAuth
        | ErrorKind::NoProxyAlive
        | ErrorKind::ProxyUnreachable
        | ErrorKind::ProxyRefused => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(stopped: Option<Stopped>, failed: u64, failed_before: u64) -> u8 {
        let summary = Summary { failed, failed_before, ..Summary::default() };
        Outcome { summary, tally: Tally::new(), stopped }.exit_code()
    }

    #[test]
    fn exit_codes() {
        let error = || Error::local(ErrorKind::Io, "no space");
        let auth = || Stopped::Failure { kind: ErrorKind::ProxyAuth, message: "407".to_owned() };
        assert_eq!(code(None, 0, 0), 0);
        assert_eq!(code(None, 1, 0), 1);
        assert_eq!(code(None, 0, 1), 1);
        assert_eq!(code(Some(Stopped::Interrupted), 5, 0), 130);
        assert_eq!(code(Some(Stopped::SinkClosed), 5, 0), 0);
        assert_eq!(code(Some(Stopped::TimeUp("06:00".to_owned())), 5, 0), 4);
        for stopped in [
            auth(),
            Stopped::Rule("enough".to_owned()),
            Stopped::FailureShare { rule: "50%/2".parse().unwrap(), failures: 2 },
            Stopped::SinkFailed(error()),
            Stopped::SourceFailed(error()),
        ] {
            assert_eq!(code(Some(stopped), 0, 0), 3);
        }
        for (kind, wanted) in [
            (ErrorKind::ExitLeak, 3),
            (ErrorKind::ProxyAuth, 3),
            (ErrorKind::Config, 2),
            (ErrorKind::Io, 2),
        ] {
            assert_eq!(exit_code_of(&Error::local(kind, "x")), wanted, "{kind}");
        }
    }
}
