//! Which figures are told, in which order, under which names.

use super::capacity::{self, Ceiling, Run};
use super::night::{self, Night};
use crate::args::{CeilingArgs, PlanArgs};
use crate::policy::Policy;
use crate::usage::UsageError;
use longhaul::policy::{Backoff, Bound, WorstCase, WorstStep, format_duration};
use std::collections::BTreeMap;
use std::time::Duration;

/// All that is told.
#[derive(Debug, Clone)]
pub(crate) struct Forecast {
    /// What it is told about.
    pub(crate) policy: Policy,
    /// The policy's answers, with everything that was given taken into account.
    pub(crate) worst: WorstCase,
    /// One URL.
    pub(crate) figures: Vec<Figure>,
    /// Many URLs.
    pub(crate) run: Option<Run>,
    /// Parallel connections, and who limits them.
    pub(crate) ceiling: Option<Ceiling>,
    /// The run, simulated.
    pub(crate) night: Option<Night>,
}

/// One answer about one URL.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// Its key in the object.
    pub(crate) key: &'static str,
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// The answer.
    pub(crate) bound: Bound,
    /// What it is made of, or what would bound it.
    pub(crate) note: String,
}

/// What is known beside the policy.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    /// The ceiling of a body.
    pub(crate) max_body: Option<u64>,
    /// Bytes per second.
    pub(crate) lowest_rate: Option<u64>,
}

impl Forecast {
    /// What was asked for.
    ///
    /// # Errors
    /// A contradiction between the flags.
    pub(crate) fn of(args: &PlanArgs) -> Result<Self, UsageError> {
        let PlanArgs { policy, ceiling: CeilingArgs { max_body }, lowest_rate, proxied, .. } = args;
        let facts = Facts { max_body: *max_body, lowest_rate: *lowest_rate };
        let mut forecast = Self::about(Policy::resolve(policy, *proxied)?, facts);
        (forecast.run, forecast.ceiling) = capacity::resolve(args, &forecast.worst)?;
        if let Some(seed) = args.simulate {
            let night = night::simulate(args, &forecast.policy, forecast.run.as_ref(), seed)?;
            forecast.night = Some(night);
        }
        Ok(forecast)
    }

    /// What a policy comes to.
    pub(crate) fn about(policy: Policy, facts: Facts) -> Self {
        let mut input = policy.assumed();
        if let Some(bytes) = facts.max_body {
            input = input.max_body(bytes);
        }
        if let Some(rate) = facts.lowest_rate {
            input = input.lowest_rate(rate);
        }
        let worst = WorstCase::compute(&input);
        let longest = policy.retry.longest_retry_after();
        let parked = (longest > policy.retry.retry_after_ceiling())
            .then(|| WorstCase::compute(&input.retry_after_cap(longest)).with_retry_after());
        let figures = figures(&policy, facts, &worst, parked);
        Self { policy, worst, figures, run: None, ceiling: None, night: None }
    }

    /// The attempts of the worst sequence.
    pub(crate) fn sequence(&self) -> &[WorstStep] {
        self.worst.sequence()
    }
}

fn figures(policy: &Policy, facts: Facts, worst: &WorstCase, parked: Option<Bound>) -> Vec<Figure> {
    let retry = &policy.retry;
    let figure = |key, name, bound, note: String| Figure { key, name, bound, note };
    let asked = format_duration(retry.retry_after_ceiling());
    let mut figures = vec![
        figure("formula", "formula", worst.formula(), formula(policy)),
        figure("exact", "exact", worst.exact(), exact(policy, worst)),
        figure("connect_only", "no connection, each time", worst.connect_only(), String::new()),
        figure("read_only", "silence, each time", worst.read_only(), String::new()),
        figure("status_only", "a bad status, each time", worst.status_only(), String::new()),
        figure(
            "with_retry_after",
            "with Retry-After",
            worst.with_retry_after(),
            format!("{asked} wherever a server may ask for it"),
        ),
    ];
    figures.extend(parked.map(|parked| {
        let longest = format_duration(retry.longest_retry_after());
        let note = format!("up to {longest}, as far as the deadline allows");
        figure("parked", "with parking", parked, note)
    }));
    figures.extend([
        figure(
            "with_redirects",
            "with redirects too",
            worst.with_redirects(),
            "every hop that may be followed".to_owned(),
        ),
        figure("to_last_byte", "to the last byte", worst.to_last_byte(), last_byte(facts)),
        figure(
            "occupied",
            "holds a worker",
            worst.occupied(),
            "the attempts; the waits hold none".to_owned(),
        ),
    ]);
    figures
}

/// The formula with its numbers.
fn formula(policy: &Policy) -> String {
    let timeouts = &policy.timeouts;
    let (Some(total), Some(connect), Some(read)) =
        (policy.retry.total_budget().limit(), timeouts.connect(), timeouts.read())
    else {
        return String::new();
    };
    let (connect, read) = (seconds(connect), seconds(read));
    let waits = waits(policy.retry.backoff_shape(), total);
    let plus = if waits.is_empty() { "" } else { " + " };
    format!("({total} + 1) · ({connect} + {read}){plus}{waits}")
}

/// How the exact maximum comes to differ from the formula.
fn exact(policy: &Policy, worst: &WorstCase) -> String {
    let mut drains: BTreeMap<Duration, u64> = BTreeMap::new();
    for step in worst.sequence() {
        if let Some(drain) = drain(policy, step) {
            *drains.entry(drain).or_default() += step.times;
        }
    }
    let parts: Vec<String> = drains
        .into_iter()
        .map(|(drain, times)| {
            let plural = if times == 1 { "" } else { "s" };
            format!("{times} drain{plural} of {} s", seconds(drain))
        })
        .collect();
    let mut note = "over all that the budgets permit".to_owned();
    if !parts.is_empty() {
        note = format!("{note}, with {}", parts.join(", "));
    }
    note
}

/// What a step takes beyond its timeouts: reading what nobody wants, so that the connection can be
/// kept. `None` where it takes nothing, as beside a longer wait.
pub(crate) fn drain(policy: &Policy, step: &WorstStep) -> Option<Duration> {
    let answered = policy.timeouts.connect()?.saturating_add(policy.timeouts.read()?);
    step.cost.checked_sub(answered).filter(|drain| !drain.is_zero())
}

/// The sum of the waits, as far as they can be written out.
fn waits(backoff: &Backoff, retries: u32) -> String {
    const MOST: u32 = 6;
    if backoff.longest(retries).is_zero() {
        return String::new();
    }
    let waits = (1..=retries.min(MOST)).map(|retry| seconds(backoff.longest(retry)));
    let mut waits: Vec<String> = waits.collect();
    if retries > MOST {
        waits.push(format!("… + {}", seconds(backoff.longest(retries))));
    }
    waits.join(" + ")
}

/// What is missing for a bound up to the last byte.
fn last_byte(facts: Facts) -> String {
    match (facts.max_body, facts.lowest_rate) {
        (Some(_), Some(_)) => "bodies of the largest size at the lowest rate".to_owned(),
        (None, None) => "give --max-body and --lowest-rate to bound it".to_owned(),
        (None, Some(_)) => "give --max-body to bound it".to_owned(),
        (Some(_), None) => "give --lowest-rate to bound it".to_owned(),
    }
}

/// A duration in seconds, to the millisecond and rounded up, so that an upper bound stays one.
pub(crate) fn seconds(time: Duration) -> String {
    let millis = time.as_nanos().div_ceil(1_000_000);
    let (seconds, fraction) = (millis / 1000, millis % 1000);
    if fraction == 0 {
        return seconds.to_string();
    }
    format!("{seconds}.{fraction:03}").trim_end_matches('0').to_owned()
}
