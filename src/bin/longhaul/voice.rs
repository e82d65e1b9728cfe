//! Who is spoken to, and how: a person at a terminal, a log file, or a program.
//!
//! Settled once, before anything is said. A bar needs a terminal that can go back in a line; one that
//! calls itself dumb cannot. Where the records come out on the same terminal as the bar, they go above
//! it, and the bar below them.

use crate::args::{Speak, VoiceArgs};
use crate::usage::UsageError;
use crate::world::World;
use std::time::Duration;

/// Which voice speaks of the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// None.
    Silent,
    /// A bar on a terminal.
    Bar,
    /// A line now and then.
    Lines,
    /// A JSON object now and then.
    Json,
}

/// What is said on standard error, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) voice: Voice,
    /// The least time between two messages about the progress.
    pub(crate) every: Duration,
    /// Whether plan and summary are printed.
    pub(crate) talks: bool,
    /// Whether standard output is the terminal that the bar is on.
    pub(crate) shares_terminal: bool,
}

impl Manner {
    /// Fills in what was left out.
    ///
    /// # Errors
    /// Flags that contradict each other, and a bar where none can be drawn.
    pub(crate) fn resolve(args: &VoiceArgs, world: &dyn World) -> Result<Self, UsageError> {
        let VoiceArgs { progress, progress_every, json_progress, quiet, verbose } = args;
        if *quiet && *verbose > 0 {
            return Err(UsageError::new("-q", "contradicts -v; leave one of them out"));
        }
        if *json_progress && !matches!(progress, None | Some(Speak::Json)) {
            let text = "contradicts --progress; leave one of them out";
            return Err(UsageError::new("--json-progress", text));
        }
        let is_dumb = world.var("TERM").is_some_and(|name| name == "dumb");
        let voice = match progress {
            None | Some(Speak::Json) if *json_progress => Voice::Json,
            Some(Speak::Json) => Voice::Json,
            Some(Speak::Plain) => Voice::Lines,
            Some(Speak::None) => Voice::Silent,
            Some(Speak::Bar) if !world.stderr_is_terminal() => {
                let text = "a bar needs a terminal on standard error; give plain or json";
                return Err(UsageError::new("--progress", text));
            }
            Some(Speak::Bar) => Voice::Bar,
            Some(Speak::Auto) | None if *quiet => Voice::Silent,
            Some(Speak::Auto) | None if world.stderr_is_terminal() && !is_dumb => Voice::Bar,
            Some(Speak::Auto) | None => Voice::Lines,
        };
        if progress_every.is_some() && !matches!(voice, Voice::Lines | Voice::Json) {
            let text = "is for lines and objects, and there are none; add --progress plain or json";
            return Err(UsageError::new("--progress-every", text));
        }
        let every = progress_every.unwrap_or(match voice {
            Voice::Silent => Duration::MAX,
            Voice::Bar => Duration::from_millis(100),
            Voice::Lines => Duration::from_secs(10),
            Voice::Json => Duration::from_secs(1),
        });
        let shares_terminal = voice == Voice::Bar && world.stdout_is_terminal();
        Ok(Self { voice, every, talks: !*quiet, shares_terminal })
    }
}
