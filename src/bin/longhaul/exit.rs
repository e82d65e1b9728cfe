//! The exit codes, each with a meaning that a script can act on.

use crate::signals::INTERRUPTED;
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Every URL succeeded; or nobody reads the results any more, as behind `head`.
    Success,
    /// Some URL failed.
    SomeFailed,
    /// Usage or configuration.
    Usage,
    /// The run was stopped: 407, exit leak, no proxy left, results that cannot be written.
    Stopped,
    /// By a signal.
    Interrupted,
}

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::SomeFailed => 1,
            Self::Usage => 2,
            Self::Stopped => 3,
            Self::Interrupted => INTERRUPTED,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
