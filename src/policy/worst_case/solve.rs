//! The longest path, without walking the paths.
//!
//! A request is a row of attempts that are retried, and one that ends it. Four facts make the
//! longest row easy to find:
//!
//! 1. The own wait before the `k`-th retry since the last redirect never falls as `k` grows, so
//!    one long row of retries waits at least as long as the same retries cut up by redirects:
//!    redirects go first.
//! 2. A Retry-After adds to its retry what it exceeds the own wait by, which is most where the own
//!    wait is least: statuses with Retry-After go to the front of the row. The `i`-th of them is
//!    therefore worth a fixed amount, and less than the one before it.
//! 3. So the best `m` retries are simply the `m` that are worth most, whatever `m` is, and the
//!    waits depend on `m` alone.
//! 4. Worth and waits come in runs of equal values (four kinds, and fewer than a hundred different
//!    waits before they reach their cap). Between the ends of runs the length is linear in `m`, so
//!    its maximum is at one of the ends.
//!
//! This takes as long for a total of four thousand million as for one of four.

use super::input::{WorstCaseInput, unbounded};
use super::{Answer, Bound, WorstOutcome, WorstStep};
use crate::policy::{Backoff, Budget};
use std::time::Duration;

/// The kinds of which one alone may be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Connect,
    Read,
    Status,
}

/// What is assumed beyond failures and forced statuses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Assume {
    /// Servers send Retry-After.
    pub(super) retry_after: bool,
    /// Servers send redirects.
    pub(super) redirects: bool,
    /// Bodies are waited for.
    pub(super) body: bool,
    /// The waits between attempts do not count.
    pub(super) no_waits: bool,
    /// The request ends with a response that is handed out.
    pub(super) handed_out: bool,
    /// Only this kind of failure happens.
    pub(super) only: Option<Kind>,
}

/// The same wait so many times in a row.
pub(super) struct Run {
    pub(super) wait: u128,
    pub(super) count: u64,
}

/// The waits before `retries` retries.
pub(super) fn backoff_runs(backoff: &Backoff, retries: u64) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut left = retries;
    let mut number = 1_u32;
    while left > 0 {
        let wait = backoff.longest(number);
        let next = backoff.longest(number.saturating_add(1));
        // The first wait may be zero for reasons of its own; from the second on, a wait that
        // repeats itself repeats itself for ever.
        let count = if number >= 2 && next == wait { left } else { 1 };
        runs.push(Run { wait: wait.as_nanos(), count });
        left -= count;
        number = number.saturating_add(1);
    }
    runs
}

/// Retries that are worth the same.
#[derive(Clone, Copy)]
struct Item {
    outcome: WorstOutcome,
    cost: u128,
    /// What a Retry-After adds to the own wait.
    extra: u128,
    count: u64,
}

impl Item {
    fn worth(&self) -> u128 {
        self.cost.saturating_add(self.extra)
    }

    fn is_status(&self) -> bool {
        matches!(self.outcome, WorstOutcome::Status | WorstOutcome::StatusRetryAfter)
    }
}

/// A way to end the request.
struct End {
    cost: u128,
    /// Permitted numbers of retries that are no redirects.
    retries: std::ops::RangeInclusive<u64>,
    /// All statuses are used up first, whatever they are worth.
    statuses_first: bool,
}

/// Everything about the problem but the way it ends.
struct Problem {
    /// Best first.
    items: Vec<Item>,
    waits: Vec<Run>,
    total: Option<u64>,
    redirects: u64,
    redirect_cost: u128,
    redirect_wait: u128,
    redirects_count: bool,
}

impl Problem {
    /// How many redirects fit beside so many retries.
    fn redirects_beside(&self, retries: u64) -> u64 {
        match self.total {
            Some(total) if self.redirects_count => {
                self.redirects.min(total.saturating_sub(retries))
            }
            _ => self.redirects,
        }
    }

    fn length(&self, items: &[Item], retries: u64) -> u128 {
        let costs = prefix(retries, items.iter().map(|item| (item.worth(), item.count)));
        let waits = prefix(retries, self.waits.iter().map(|run| (run.wait, run.count)));
        let redirect = self.redirect_cost.saturating_add(self.redirect_wait);
        let redirects = times(redirect, self.redirects_beside(retries));
        costs.saturating_add(waits).saturating_add(redirects)
    }

    /// Numbers of retries at one of which the length is greatest.
    fn candidates(&self, items: &[Item], end: &End) -> Vec<u64> {
        let (low, high) = (*end.retries.start(), *end.retries.end());
        let mut candidates = vec![low, high];
        let mut add_ends = |counts: &mut dyn Iterator<Item = u64>| {
            let mut reached = 0_u64;
            for count in counts {
                reached = reached.saturating_add(count);
                candidates.push(reached);
            }
        };
        add_ends(&mut items.iter().map(|item| item.count));
        add_ends(&mut self.waits.iter().map(|run| run.count));
        if let Some(total) = self.total {
            candidates.push(total.saturating_sub(self.redirects));
        }
        candidates.retain(|retries| end.retries.contains(retries));
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

/// The answer for all that `input` says and `assume` adds.
pub(super) fn solve(input: &WorstCaseInput, assume: Assume) -> Answer {
    match try_solve(input, assume) {
        Ok(steps) => {
            let sum = steps.iter().fold(Duration::ZERO, |sum, step| sum.saturating_add(step.sum()));
            Answer { bound: Bound::At(sum), steps }
        }
        Err(bound) => Answer { bound, steps: Vec::new() },
    }
}

fn try_solve(input: &WorstCaseInput, assume: Assume) -> Result<Vec<WorstStep>, Bound> {
    let (retry, only) = (&input.retry, assume.only);
    let connect = input.connect_timeout()?.as_nanos();
    let read = match only {
        Some(Kind::Connect) => 0,
        _ => input.attempt_timeouts()?.1.as_nanos(),
    };
    let body = if assume.body { input.body_time()?.as_nanos() } else { 0 };
    let drain = input.drain.as_nanos();
    let cap = if assume.no_waits { 0 } else { input.retry_after_cap.as_nanos() };

    let unconnected = connect.saturating_mul(input.addresses.into());
    let steps_to_connect = u128::from(input.phases) + u128::from(input.addresses) - 1;
    let answered = connect.saturating_mul(steps_to_connect).saturating_add(read);
    let drained = answered.saturating_add(drain);
    let with_body = answered.saturating_add(body);

    let total = retry.total_budget().limit().map(u64::from);
    let is_possible = |kind| only.is_none() || only == Some(kind);
    // Without the forcelist only Retry-After makes a status retried, and it asks for a limited
    // total of which something is left.
    let triggered = assume.retry_after && retry.respects_retry_after();
    let statuses = input.method_retryable
        && is_possible(Kind::Status)
        && (input.forced_status || (triggered && total.is_some_and(|total| total > 0)));
    let status_label = match input.forced_status {
        true => WorstOutcome::Status,
        false => WorstOutcome::StatusRetryAfter,
    };

    let count = |possible: bool, name: &str, budget: Budget| match (budget.limit(), total) {
        _ if !possible => Ok(0),
        (Some(limit), Some(total)) => Ok(u64::from(limit).min(total)),
        (Some(limit), None) => Ok(u64::from(limit)),
        (None, Some(total)) => Ok(total),
        (None, None) => Err(unbounded(&format!("neither `total` nor `{name}` has a limit"))),
    };
    let item = |outcome, cost, count| Item { outcome, cost, extra: 0, count };
    let reads = input.method_retryable && is_possible(Kind::Read);
    let connects = is_possible(Kind::Connect);
    let connects = count(connects, "connect", retry.connect_budget())?;
    let reads = count(reads, "read", retry.read_budget())?;
    let others = count(only.is_none(), "other", retry.other_budget())?;
    let statuses_count = count(statuses, "status", retry.status_budget())?;

    let mut items = vec![
        item(WorstOutcome::Connect, unconnected, connects),
        item(WorstOutcome::Read, with_body, reads),
        item(WorstOutcome::Other, answered, others),
    ];
    let no_waits = Backoff::none();
    let backoff = if assume.no_waits { &no_waits } else { retry.backoff_shape() };
    for run in backoff_runs(backoff, statuses_count) {
        let extra = if triggered { cap.saturating_sub(run.wait) } else { 0 };
        let outcome = if extra > 0 { WorstOutcome::StatusRetryAfter } else { status_label };
        items.push(Item { outcome, cost: drained, extra, count: run.count });
    }
    items.retain(|item| item.count > 0);
    items.sort_by_key(|item| std::cmp::Reverse(item.worth()));

    let redirects_count = retry.counts_redirects_in_total();
    let redirects = match (assume.redirects && input.follow_redirects, redirect_limit(input)) {
        (false, _) => 0,
        (true, Some(limit)) => u64::from(limit),
        (true, None) => total.filter(|_| redirects_count).ok_or_else(|| {
            unbounded("redirects are followed without limit: set `redirect` or `max_redirects`")
        })?,
    };
    let possible: u64 = items.iter().map(|item| item.count).sum();
    let problem = Problem {
        waits: backoff_runs(backoff, total.map_or(possible, |total| total.min(possible))),
        items,
        total,
        redirects,
        redirect_cost: drained,
        redirect_wait: if assume.retry_after { cap } else { 0 },
        redirects_count,
    };

    let cost = match only {
        Some(Kind::Connect) => unconnected,
        _ => with_body,
    };
    let most = total.map_or(possible, |total| total.min(possible));
    let mut ends = vec![End { cost, retries: 0..=most, statuses_first: false }];
    if statuses && retry.raises_on_status() && !assume.handed_out {
        ends.extend(raised_status_ends(input, &problem, most, drained));
    }
    if assume.redirects && input.follow_redirects && !assume.handed_out {
        ends.extend(raised_redirect_ends(input, &problem, most, drained));
    }
    Ok(longest(&problem, &ends))
}

/// The smaller of the policy's limit and the session's.
fn redirect_limit(input: &WorstCaseInput) -> Option<u32> {
    let own = match input.retry.total_budget() {
        Budget::Off => Some(0),
        _ => input.retry.redirect_budget().limit(),
    };
    match (own, input.max_redirects) {
        (Some(own), Some(max)) => Some(own.min(max)),
        (own, max) => own.or(max),
    }
}

/// Ends by a status that is drained before it is raised, because its budget or the total is used
/// up.
fn raised_status_ends(
    input: &WorstCaseInput,
    problem: &Problem,
    most: u64,
    cost: u128,
) -> Vec<End> {
    let mut ends = Vec::new();
    let limit = input.retry.status_budget().limit().map(u64::from);
    if input.forced_status {
        if let Some(least) = retries_that_use_up_total(problem) {
            ends.push(End { cost, retries: least..=most, statuses_first: false });
        }
        if let Some(limit) = limit {
            ends.push(End { cost, retries: limit..=most, statuses_first: true });
        }
    } else if let (Some(limit), Some(total)) = (limit, problem.total) {
        // Something of the total has to be left, or Retry-After would not trigger anything.
        let most = most.min(total.saturating_sub(1));
        ends.push(End { cost, retries: limit..=most, statuses_first: true });
    }
    ends
}

/// Ends by a redirect that is drained before it is raised.
fn raised_redirect_ends(
    input: &WorstCaseInput,
    problem: &Problem,
    most: u64,
    cost: u128,
) -> Vec<End> {
    let mut ends = Vec::new();
    if !input.retry.raises_on_redirect() {
        return ends;
    }
    if problem.redirects_count {
        if let Some(least) = retries_that_use_up_total(problem) {
            ends.push(End { cost, retries: least..=most, statuses_first: false });
        }
        if let Some(total) = problem.total {
            if let Some(room) = total.checked_sub(problem.redirects) {
                ends.push(End { cost, retries: 0..=most.min(room), statuses_first: false });
            }
            return ends;
        }
    }
    ends.push(End { cost, retries: 0..=most, statuses_first: false });
    ends
}

/// The least number of retries beside which the redirects use up the rest of the total.
fn retries_that_use_up_total(problem: &Problem) -> Option<u64> {
    let total = problem.total?;
    Some(if problem.redirects_count { total.saturating_sub(problem.redirects) } else { total })
}

/// The longest of all that end in one of these ways, as a sequence.
fn longest(problem: &Problem, ends: &[End]) -> Vec<WorstStep> {
    let statuses_first = {
        let mut items = problem.items.clone();
        items.sort_by_key(|item| (!item.is_status(), std::cmp::Reverse(item.worth())));
        items
    };
    let mut best: Option<(u128, u64, &End, &[Item])> = None;
    for end in ends {
        let items = if end.statuses_first { &statuses_first } else { &problem.items };
        for retries in problem.candidates(items, end) {
            let length = problem.length(items, retries).saturating_add(end.cost);
            if best.is_none_or(|(longest, ..)| length > longest) {
                best = Some((length, retries, end, items));
            }
        }
    }
    best.map(|(_, retries, end, items)| sequence(problem, items, retries, end)).unwrap_or_default()
}

/// The row itself: redirects, statuses, other failures, the end.
fn sequence(problem: &Problem, items: &[Item], retries: u64, end: &End) -> Vec<WorstStep> {
    let mut steps = Vec::new();
    let mut push = |outcome, cost, wait, times| {
        if times > 0 {
            steps.push(WorstStep { outcome, cost: duration(cost), wait: duration(wait), times });
        }
    };
    let outcome = match problem.redirect_wait {
        0 => WorstOutcome::Redirect,
        _ => WorstOutcome::RedirectRetryAfter,
    };
    let redirects = problem.redirects_beside(retries);
    push(outcome, problem.redirect_cost, problem.redirect_wait, redirects);

    let mut left = retries;
    let mut taken: Vec<Item> = items
        .iter()
        .map(|item| {
            let count = item.count.min(left);
            left -= count;
            Item { count, ..*item }
        })
        .collect();
    // Stable, so that statuses keep their order, which is that of the waits they exceed.
    taken.sort_by_key(|item| !item.is_status());
    let mut waits = problem.waits.iter().map(|run| (run.wait, run.count));
    let (mut wait, mut room) = waits.next().unwrap_or((0, u64::MAX));
    for item in taken {
        let mut left = item.count;
        while left > 0 {
            if room == 0 {
                (wait, room) = waits.next().unwrap_or((wait, u64::MAX));
                continue;
            }
            let times = left.min(room);
            push(item.outcome, item.cost, wait.saturating_add(item.extra), times);
            left -= times;
            room -= times;
        }
    }
    push(WorstOutcome::Final, end.cost, 0, 1);
    steps
}

/// The sum of the first `count` of values that come in runs.
fn prefix(count: u64, runs: impl Iterator<Item = (u128, u64)>) -> u128 {
    let (mut sum, mut left) = (0_u128, count);
    for (value, run) in runs {
        let taken = run.min(left);
        sum = sum.saturating_add(times(value, taken));
        left -= taken;
        if left == 0 {
            break;
        }
    }
    sum
}

pub(super) fn times(nanos: u128, count: u64) -> u128 {
    nanos.saturating_mul(count.into())
}

pub(super) fn duration(nanos: u128) -> Duration {
    let seconds = u64::try_from(nanos / 1_000_000_000);
    let rest = u32::try_from(nanos % 1_000_000_000).unwrap_or(0);
    seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, rest))
}
