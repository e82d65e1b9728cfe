//! `longhaul plan`: how long one URL and a whole run can take, before anything is sent.
//!
//! The figures are the library's; nothing is computed here. What is decided here is which of them
//! are told, in which order, under which names and with which remark ([`forecast`]), and how: as
//! tables for people ([`table`]), as a drawing ([`timeline`]), or as an object for programs
//! ([`json`]). All three read the same forecast, so they cannot disagree.

mod capacity;
mod forecast;
mod json;
mod night;
mod run_table;
mod table;
mod timeline;

pub(crate) use forecast::{Facts, Forecast};

use crate::args::PlanArgs;
use crate::exit::Exit;
use crate::output;
use crate::usage::UsageError;
use crate::world::{RealWorld, World};

/// How wide the output is where nobody says.
const USUAL_WIDTH: usize = 100;

/// Below this nothing can be read any more.
const LEAST_WIDTH: usize = 40;

/// `longhaul plan`.
///
/// # Errors
/// A mistake of the user's, or standard output that cannot be written.
pub(crate) fn command(args: &PlanArgs) -> Result<Exit, UsageError> {
    let forecast = Forecast::of(args)?;
    if args.json {
        return output::print(&json::object(&forecast).to_string());
    }
    output::print(&render(&forecast, args.timeline, width(&RealWorld)))
}

/// The forecast for people.
pub(crate) fn render(forecast: &Forecast, timeline: bool, width: usize) -> String {
    let mut text = table::render(forecast, width);
    if timeline {
        text.push_str("\n\n");
        text.push_str(&timeline::draw(&forecast.worst, forecast.policy.timeouts.deadline(), width));
    }
    text
}

/// How wide a line may be: `COLUMNS`, else the terminal, else the usual.
pub(crate) fn width(world: &dyn World) -> usize {
    let asked = world.var("COLUMNS").and_then(|columns| columns.trim().parse().ok());
    asked.or_else(|| world.columns()).unwrap_or(USUAL_WIDTH).max(LEAST_WIDTH)
}
