//! First and second Ctrl-C.
//!
//! In a run the first SIGINT or SIGTERM asks for an orderly end: nothing new is taken, what flies finishes,
//! and everything is recorded, so that `--resume` goes on from there. The second one cuts the
//! sockets. From the third on nobody wants to wait for this program any more, so it leaves at once;
//! records are written line by line, so even then none is torn.
//!
//! Where only one URL is fetched there is nothing to finish first: the first one cuts.

use crate::exit::Exit;
use crate::progress;
use longhaul::transport::Cutter;
use longhaul::workers::Stopper;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

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

/// Whether somebody wants the one URL to end.
#[derive(Debug)]
pub(crate) struct Interrupt {
    raised: Arc<AtomicBool>,
    bell: Receiver<()>,
    /// Held, so that a bell without a thread behind it is silent rather than broken.
    _ringer: Sender<()>,
}

impl Interrupt {
    /// Whether it came.
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Waits for it; `false` when it did not come in this time.
    pub(crate) fn comes_within(&self, time: Duration) -> bool {
        self.bell.recv_timeout(time).is_ok() || self.is_raised()
    }
}

/// Ends the program at the first SIGINT or SIGTERM from now on: for work that loses nothing by it.
pub(crate) fn leave_on_interrupt() {
    let listening = Signals::new([SIGINT, SIGTERM]).and_then(|mut signals| {
        thread::Builder::new().name("longhaul-signals".into()).spawn(move || {
            if signals.forever().next().is_some() {
                std::process::exit(i32::from(Exit::INTERRUPTED.0));
            }
        })
    });
    if let Err(error) = listening {
        log::warn!(target: "longhaul::command", "no handler for Ctrl-C: {error}");
    }
}

/// Cuts the connections of `cutter` at the first SIGINT or SIGTERM from now on, and leaves at the
/// second.
pub(crate) fn cut_on_interrupt(cutter: Arc<Cutter>) -> Interrupt {
    let raised = Arc::new(AtomicBool::new(false));
    let (ringer, bell) = channel();
    let interrupt = Interrupt { raised: Arc::clone(&raised), bell, _ringer: ringer.clone() };
    let listening = Signals::new([SIGINT, SIGTERM]).and_then(|mut signals| {
        thread::Builder::new().name("longhaul-signals".into()).spawn(move || {
            for (_, others) in signals.forever().zip(0_u32..) {
                if others > 0 {
                    std::process::exit(i32::from(Exit::INTERRUPTED.0));
                }
                raised.store(true, Ordering::Relaxed);
                cutter.cut();
                let _ = ringer.send(());
            }
        })
    });
    if let Err(error) = listening {
        // The system ends the program then, which leaves no file behind but perhaps a hidden one.
        log::warn!(target: "longhaul::command", "no handler for Ctrl-C: {error}");
    }
    interrupt
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
