//! First and second Ctrl-C.
//!
//! The first SIGINT or SIGTERM asks for an orderly end: nothing new is taken, what flies finishes,
//! and everything is recorded, so that `--resume` goes on from there. The second one cuts the
//! sockets. From the third on nobody wants to wait for this program any more, so it leaves at once;
//! records are written line by line, so even then none is torn.

use crate::exit::Exit;
use longhaul::workers::Stopper;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How often the user has asked for an end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupts(Arc<AtomicUsize>);

/// What follows from an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reaction {
    Close,
    Abort,
    Leave,
}

impl Interrupts {
    /// Listens from now on, and stops the run through `stopper`.
    ///
    /// # Errors
    /// The system's refusal to install the handlers or to start the thread.
    pub(crate) fn listen(stopper: Stopper) -> io::Result<Self> {
        let interrupts = Self::default();
        let counter = interrupts.clone();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        thread::Builder::new().name("longhaul-signals".into()).spawn(move || {
            for _ in signals.forever() {
                match counter.count() {
                    Reaction::Close => {
                        crate::progress::print(
                            "longhaul: finishing what is under way; once more to cut it short",
                        );
                        stopper.close();
                    }
                    Reaction::Abort => stopper.abort(),
                    Reaction::Leave => std::process::exit(i32::from(Exit::INTERRUPTED.0)),
                }
            }
        })?;
        Ok(interrupts)
    }

    /// Whether there was one.
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    fn count(&self) -> Reaction {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Reaction::Close,
            1 => Reaction::Abort,
            _ => Reaction::Leave,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_then_abort_then_leave() {
        let interrupts = Interrupts::default();
        assert!(!interrupts.any());
        assert_eq!(interrupts.count(), Reaction::Close);
        assert!(interrupts.any());
        assert_eq!(interrupts.count(), Reaction::Abort);
        assert_eq!(interrupts.count(), Reaction::Leave);
        assert_eq!(interrupts.count(), Reaction::Leave);
    }
}
