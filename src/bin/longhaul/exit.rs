//! The exit codes, each with a meaning that a script can act on.
//!
//! Those of a run that began are the library's ([`Outcome::exit_code`]); here they get their names.
//!
//! [`Outcome::exit_code`]: longhaul::batch::Outcome::exit_code

use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl Exit {
    /// Every URL succeeded; or nobody reads the results any more, as behind `head`.
    pub(crate) const SUCCESS: Self = Self(0);
    /// Some URL failed.
    pub(crate) const SOME_FAILED: Self = Self(1);
    /// Usage or configuration.
    pub(crate) const USAGE: Self = Self(2);
    /// No proxy that could be used, or none that takes the credentials.
    pub(crate) const STOPPED: Self = Self(3);
    /// By a signal: 128 + SIGINT.
    pub(crate) const INTERRUPTED: Self = Self(130);
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.0.into()
    }
}
