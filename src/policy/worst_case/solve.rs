//! The longest path, without walking the paths.
//!
//! A request is a row of attempts that are retried, and one that ends it. Four facts make the
//! longest row easy to find:
//!
//! 1. The own wait before the `k`-th retry since the last redirect never falls as `k` grows, so
//!    one long row of retries waits at least as long as the same retries cut up by redirects:
//!    redirects go first.
//! 2. A Retry-After adds to its retry what it exceeds the own wait by, which is most where the own
//!    wait is least: what may carry one goes to the front of the row, statuses first, since they
//!    cost no less than a refusal by a proxy. The `i`-th of them is therefore worth a fixed amount,
//!    and less than the one before it. Draining that runs beside a wait is the same again: a wait
//!    that is no shorter than the drain.
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

impl Assume {
    fn allows(self, kind: Kind) -> bool {
        self.only.is_none_or(|only| only == kind)
    }
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

/// The waits before `retries` retries together, in nanoseconds.
pub(in crate::policy) fn all_waits(backoff: &Backoff, retries: u64) -> u128 {
    backoff_runs(backoff, retries)
        .iter()
        .fold(0, |sum, run| sum.saturating_add(times(run.wait, run.count)))
}

/// What is left of the runs behind the first `count` of their values.
fn after(count: u64, runs: Vec<Run>) -> impl Iterator<Item = Run> {
    let mut left = count;
    runs.into_iter().filter_map(move |run| {
        let skipped = left.min(run.count);
        left -= skipped;
        let count = run.count - skipped;
        (count > 0).then_some(Run { wait: run.wait, count })
    })
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

    /// Where in the row it stands: what may ask for a wait goes to the front.
    fn rank(&self) -> u8 {
        match self.outcome {
            _ if self.is_status() => 0,
            WorstOutcome::ConnectRetryAfter => 1,
            _ => 2,
        }
    }
}

/// A way to end the request.
struct End {
    cost: u128,
    /// Permitted numbers of retries that are no redirects.
    retries: std::ops::RangeInclusive<u64>,
    /// All statuses are used up first, whatever they are worth.
    statuses_first: bool,
    /// How much of the total has to be left.
    spare: u64,
}

/// Everything about the problem but the way it ends.
struct Problem {
    /// Best first.
    items: Vec<Item>,
    waits: Vec<Run>,
    total: Option<u64>,
    /// How many retries there can be that are no redirects.
    most: u64,
    redirects: u64,
    redirect_cost: u128,
    redirect_wait: u128,
    redirects_count: bool,
}

impl Problem {
    fn of(input: &WorstCaseInput, assume: Assume, costs: &Costs) -> Result<Self, Bound> {
        let retry = &input.retry;
        let total = retry.total_budget().limit().map(u64::from);
        let count = |possible: bool, name: &str, budget: Budget| match (budget.limit(), total) {
            _ if !possible => Ok(0),
            (Some(limit), Some(total)) => Ok(u64::from(limit).min(total)),
            (Some(limit), None) => Ok(u64::from(limit)),
            (None, Some(total)) => Ok(total),
            (None, None) => Err(unbounded(&format!("neither `total` nor `{name}` has a limit"))),
        };
        let reads = input.method_retryable && assume.allows(Kind::Read);
        let others = input.urllib3 && assume.only.is_none();
        let connects = count(assume.allows(Kind::Connect), "connect", retry.connect_budget())?;
        let reads = count(reads, "read", retry.read_budget())?;
        let others = count(others, "other", retry.other_budget())?;
        let statuses = statuses_are_retried(input, assume);
        let statuses = count(statuses, "status", retry.status_budget())?;

        let no_waits = Backoff::none();
        let backoff = if assume.no_waits { &no_waits } else { retry.backoff_shape() };
        let item = |outcome, cost, count| Item { outcome, cost, extra: 0, count };
        let mut items = vec![
            item(WorstOutcome::Read, costs.with_body, reads),
            item(WorstOutcome::Other, costs.answered, others),
        ];
        let asked = if triggers(input, assume) { costs.cap } else { 0 };
        for run in backoff_runs(backoff, statuses) {
            let extra = asked.saturating_sub(run.wait);
            let outcome = match extra {
                0 if input.forced_status => WorstOutcome::Status,
                _ => WorstOutcome::StatusRetryAfter,
            };
            let cost = match input.urllib3 {
                true => costs.drained,
                false => costs.drained_beside(asked.max(run.wait)),
            };
            items.push(Item { outcome, cost, extra, count: run.count });
        }
        let asked = if input.proxied { asked } else { 0 };
        for run in after(statuses, backoff_runs(backoff, statuses.saturating_add(connects))) {
            let extra = asked.saturating_sub(run.wait);
            let outcome = match extra {
                0 => WorstOutcome::Connect,
                _ => WorstOutcome::ConnectRetryAfter,
            };
            items.push(Item { outcome, cost: costs.unconnected, extra, count: run.count });
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
        let most = total.map_or(possible, |total| total.min(possible));
        Ok(Self {
            items,
            waits: backoff_runs(backoff, most),
            total,
            most,
            redirects,
            redirect_cost: costs.drained,
            redirect_wait: if assume.retry_after && input.urllib3 { costs.cap } else { 0 },
            redirects_count,
        })
    }

    /// How many redirects fit beside so many retries.
    fn redirects_beside(&self, retries: u64, end: &End) -> u64 {
        match self.total {
            Some(total) if self.redirects_count => {
                let taken = retries.saturating_add(end.spare);
                self.redirects.min(total.saturating_sub(taken))
            }
            _ => self.redirects,
        }
    }

    fn length(&self, items: &[Item], retries: u64, end: &End) -> u128 {
        let costs = prefix(retries, items.iter().map(|item| (item.worth(), item.count)));
        let waits = prefix(retries, self.waits.iter().map(|run| (run.wait, run.count)));
        let redirect = self.redirect_cost.saturating_add(self.redirect_wait);
        let redirects = times(redirect, self.redirects_beside(retries, end));
        costs.saturating_add(waits).saturating_add(redirects).saturating_add(end.cost)
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
            candidates.push(total.saturating_sub(self.redirects).saturating_sub(end.spare));
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
    let costs = Costs::of(input, assume)?;
    let problem = Problem::of(input, assume, &costs)?;
    let cost = match assume.only {
        Some(Kind::Connect) => costs.unconnected,
        _ => costs.with_body,
    };
    let mut ends = vec![End { cost, retries: 0..=problem.most, statuses_first: false, spare: 0 }];
    if !assume.handed_out {
        let statuses = statuses_are_retried(input, assume);
        if statuses && input.retry.raises_on_status() && input.urllib3 {
            ends.extend(raised_status_ends(input, &problem, costs.drained));
        }
        if assume.redirects && input.follow_redirects {
            ends.extend(raised_redirect_ends(input, &problem, costs.drained));
        }
    }
    Ok(longest(&problem, &ends))
}

/// What an attempt can take, in nanoseconds, by what it ends with.
struct Costs {
    /// No connection.
    unconnected: u128,
    /// The head of a response, or silence instead of it.
    answered: u128,
    /// A response that is not handed out.
    drained: u128,
    /// A response that is, or one that breaks off at its end.
    with_body: u128,
    /// The longest Retry-After.
    cap: u128,
}

impl Costs {
    fn of(input: &WorstCaseInput, assume: Assume) -> Result<Self, Bound> {
        let connect = input.connect_timeout()?.as_nanos();
        let read = match assume.only {
            Some(Kind::Connect) => 0,
            _ => input.attempt_timeouts()?.1.as_nanos(),
        };
        let body = if assume.body { input.body_time()?.as_nanos() } else { 0 };
        let clocks = u128::from(input.phases) + u128::from(input.addresses) - 1;
        let answered = connect.saturating_mul(clocks).saturating_add(read);
        Ok(Self {
            unconnected: connect.saturating_mul(input.addresses.into()),
            answered,
            drained: answered.saturating_add(input.drain.as_nanos()),
            with_body: answered.saturating_add(body),
            cap: if assume.no_waits { 0 } else { input.retry_after_cap.as_nanos() },
        })
    }

    /// A response that is drained while a wait runs.
    fn drained_beside(&self, wait: u128) -> u128 {
        let drain = self.drained.saturating_sub(self.answered);
        self.answered.saturating_add(drain.saturating_sub(wait))
    }
}

/// Whether a server can say anything with a status that makes it retried.
fn statuses_are_retried(input: &WorstCaseInput, assume: Assume) -> bool {
    // Without the forcelist only Retry-After does, and it asks for a limited total of which
    // something is left.
    let some_total = matches!(input.retry.total_budget(), Budget::Times(1..));
    input.method_retryable
        && assume.allows(Kind::Status)
        && (input.forced_status || (triggers(input, assume) && some_total))
}

/// Whether a Retry-After on a status is heard.
fn triggers(input: &WorstCaseInput, assume: Assume) -> bool {
    assume.retry_after && input.retry.respects_retry_after()
}

/// The policy's own limit of redirects.
fn own_redirect_limit(input: &WorstCaseInput) -> Option<u32> {
    match input.retry.total_budget() {
        Budget::Off => Some(0),
        _ => input.retry.redirect_budget().limit(),
    }
}

/// The smaller of the policy's limit and the session's.
fn redirect_limit(input: &WorstCaseInput) -> Option<u32> {
    match (own_redirect_limit(input), input.max_redirects) {
        (Some(own), Some(max)) => Some(own.min(max)),
        (own, max) => own.or(max),
    }
}

/// Ends by a status that is drained before it is raised, because its budget or the total is used
/// up.
fn raised_status_ends(input: &WorstCaseInput, problem: &Problem, cost: u128) -> Vec<End> {
    let (mut ends, most) = (Vec::new(), problem.most);
    let limit = input.retry.status_budget().limit().map(u64::from);
    if input.forced_status {
        if let Some(least) = retries_that_use_up_total(problem) {
            ends.push(End { cost, retries: least..=most, statuses_first: false, spare: 0 });
        }
        if let Some(limit) = limit {
            ends.push(End { cost, retries: limit..=most, statuses_first: true, spare: 0 });
        }
    } else if let (Some(limit), Some(total)) = (limit, problem.total) {
        // Something of the total has to be left, or Retry-After would not trigger anything.
        let most = most.min(total.saturating_sub(1));
        ends.push(End { cost, retries: limit..=most, statuses_first: true, spare: 1 });
    }
    ends
}

/// Ends by a redirect that is drained before it is raised.
fn raised_redirect_ends(input: &WorstCaseInput, problem: &Problem, cost: u128) -> Vec<End> {
    let (mut ends, most) = (Vec::new(), problem.most);
    let end = |retries| End { cost, retries, statuses_first: false, spare: 0 };
    let raises = input.retry.raises_on_redirect();
    // A session's limit raises whatever the policy says.
    let by_session = input
        .max_redirects
        .is_some_and(|max| own_redirect_limit(input).is_none_or(|own| max <= own));
    let limit_raises = raises || by_session;
    let total = problem.total.filter(|_| problem.redirects_count);
    if let (true, Some(_), Some(least)) = (raises, total, retries_that_use_up_total(problem)) {
        ends.push(end(least..=most));
    }
    let room = match total {
        Some(total) => total.checked_sub(problem.redirects),
        None => Some(most),
    };
    if let (true, Some(room)) = (limit_raises, room) {
        ends.push(end(0..=most.min(room)));
    }
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
            let length = problem.length(items, retries, end);
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
    let redirects = problem.redirects_beside(retries, end);
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
    // Stable, so that they keep their order, which is that of the waits they exceed.
    taken.sort_by_key(Item::rank);
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

pub(in crate::policy) fn duration(nanos: u128) -> Duration {
    let seconds = u64::try_from(nanos / 1_000_000_000);
    let rest = u32::try_from(nanos % 1_000_000_000).unwrap_or(0);
    seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, rest))
}
