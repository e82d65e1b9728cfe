//! The flags that say how a run is watched.

use crate::values;
use clap::{ArgAction, Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How the progress is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speak {
    /// A bar on a terminal, lines elsewhere.
    Auto,
    /// A bar.
    Bar,
    /// A line every ten seconds.
    Plain,
    /// A JSON object every second.
    Json,
    /// Not at all.
    None,
}

/// How much is said on standard error.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct VoiceArgs {
    /// How the progress is told on standard error: auto, bar, plain, json or none. Default: auto, a
    /// bar on a terminal and a plain line now and then elsewhere.
    #[arg(long, value_name = "HOW", hide_possible_values = true, help_heading = "Messages")]
    pub(crate) progress: Option<Speak>,

    /// How often a line or an object is said. Default: 10 for lines, 1 for objects.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = values::span, help_heading = "Messages")]
    pub(crate) progress_every: Option<Duration>,

    /// The same as --progress json: one JSON object each second on standard error. Default: off.
    #[arg(long, help_heading = "Messages")]
    pub(crate) json_progress: bool,

    /// Say nothing but errors. Default: plan, progress and summary.
    #[arg(short, long, help_heading = "Messages")]
    pub(crate) quiet: bool,

    /// Say more: what the run decides (-v), each attempt (-vv), everything (-vvv). RUST_LOG, where
    /// set, decides instead. Default: warnings.
    #[arg(short, long, action = ArgAction::Count, help_heading = "Messages")]
    pub(crate) verbose: u8,
}

/// What else tells how the run is doing.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WatchArgs {
    /// Keep a table of the failed attempts in this file: hour, exception, exit and count with tabs
    /// between, as the run goes. Default: none.
    #[arg(long, value_name = "FILE", help_heading = "Input and results")]
    pub(crate) tally: Option<PathBuf>,

    /// Serve numbers in the text format of Prometheus at this address, under /metrics: a port of
    /// 127.0.0.1 (9100), or an address with its port (0.0.0.0:9100). Default: none.
    #[arg(long, value_name = "ADDRESS", value_parser = values::metrics_address, help_heading = "Messages")]
    pub(crate) metrics: Option<SocketAddr>,
}
