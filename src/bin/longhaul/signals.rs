//! First and second Ctrl-C.
//!
//! The first SIGINT or SIGTERM asks for an orderly end: nothing new is taken, what flies finishes,
//! and everything is recorded, so that `--resume` goes on from there. The second one cuts the
//! sockets. From the third on nobody wants to wait for this program any more, so it leaves at once;
//! records are written line by line, so even then none is torn.

use crate::exit::Exit;
use crate::progress;
use longhaul::workers::Stopper;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::thread;

/// What follows from an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reaction {
    Close,
    Abort,
    Leave,
}

impl Reaction {
    /// To the interrupt after so many others.
    const fn after(others: u32) -> Self {
        match others {
            0 => Self::Close,
            1 => Self::Abort,
            _ => Self::Leave,
        }
    }
}

/// Stops the run behind `stopper` by SIGINT and SIGTERM from now on.
///
/// # Errors
/// The system's refusal to install the handlers or to start the thread.
pub(crate) fn listen(stopper: Stopper) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("longhaul-signals".into()).spawn(move || {
        for (_, others) in signals.forever().zip(0_u32..) {
            match Reaction::after(others) {
                Reaction::Close => {
                    progress::print("longhaul: finishing what is under way; again to cut it short");
                    stopper.close();
                }
                Reaction::Abort => {
                    progress::print("longhaul: cutting what is under way; again to leave at once");
                    stopper.abort();
                }
                Reaction::Leave => std::process::exit(i32::from(Exit::INTERRUPTED.0)),
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_then_abort_then_leave() {
        assert_eq!(
            [0, 1, 2, 3].map(Reaction::after),
            [Reaction::Close, Reaction::Abort, Reaction::Leave, Reaction::Leave]
        );
    }
}
