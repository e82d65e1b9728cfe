//! How much load retries may add, over a whole run.
//!
//! A limit per request bounds what one URL can cost and nothing else: when everything fails, a
//! total of four makes five times the load, just then when the other side can bear the least. A
//! budget over all requests bounds the sum. In the good case retries are rare and it is never felt;
//! in the bad case it lets through a fixed share, and the rest fails as it would have failed anyway,
//! only sooner.
//!
//! The rule is about a sliding window, and holds at each moment: retries of the window are at most
//! the share of its requests, plus a few a second that are always allowed, so that a slow run may
//! retry at all. Nothing is saved up beyond the window. (finagle and tower do the same with a bucket
//! of tokens that expire.)

use super::Share;
use super::capacity::BILLION;
use std::time::{Duration, Instant};

/// Pieces of the window; it moves on by one of them at a time.
const PIECES: usize = 10;

/// finagle's and tower's time to live of a deposit.
const WINDOW: Duration = Duration::from_secs(10);

/// A budget of retries over all requests of a run: a share of extra load.
///
/// # Defaults
/// A window of 10 s (as finagle and tower), and one retry a second beyond the share (they: ten,
/// which is more than many a run makes requests).
///
/// # Examples
/// ```
/// use longhaul::Session;
/// use longhaul::policy::{RetryBudget, Share};
///
/// # fn main() -> Result<(), longhaul::Error> {
/// let builder = Session::builder().retry_budget(RetryBudget::new(Share::new(0.2)?));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RetryBudget {
    share: Share,
    per_second: u32,
    window: Duration,
    /// When the newest piece began; `None` before the first request.
    piece_began: Option<Instant>,
    /// Newest first.
    pieces: [Piece; PIECES],
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Piece {
    requests: u64,
    retries: u64,
}

impl RetryBudget {
    /// Retries up to this share of the requests.
    pub fn new(share: Share) -> Self {
        Self {
            share,
            per_second: 1,
            window: WINDOW,
            piece_began: None,
            pieces: [Piece::default(); PIECES],
        }
    }

    /// Retries a second that are allowed whatever the share. Default: 1.
    #[must_use]
    pub fn per_second(mut self, retries: u32) -> Self {
        self.per_second = retries;
        self
    }

    /// How far is looked back. Default: 10 s; less than 10 ms counts as that.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.window = window.max(Duration::from_millis(PIECES as u64));
        self
    }

    /// The same budget that has seen nothing.
    pub(crate) fn anew(&self) -> Self {
        Self { piece_began: None, pieces: [Piece::default(); PIECES], ..*self }
    }

    /// Notes a request: the first attempt of a URL.
    pub fn note_request(&mut self, now: Instant) {
        self.move_on(now);
        if let Some(newest) = self.pieces.first_mut() {
            newest.requests = newest.requests.saturating_add(1);
        }
    }

    /// Takes a retry out of the budget; `false` where it is used up.
    pub fn take_retry(&mut self, now: Instant) -> bool {
        self.move_on(now);
        let (requests, retries) =
            self.pieces.iter().fold((0_u64, 0_u64), |(requests, retries), piece| {
                (requests.saturating_add(piece.requests), retries.saturating_add(piece.retries))
            });
        let shared = u128::from(requests).saturating_mul(self.share.parts());
        // In billionths, as the share: nanoseconds times retries per second.
        let always = self.window.as_nanos().saturating_mul(self.per_second.into());
        let fits = u128::from(retries).saturating_add(1).saturating_mul(BILLION)
            <= shared.saturating_add(always);
        if let (true, Some(newest)) = (fits, self.pieces.first_mut()) {
            newest.retries = newest.retries.saturating_add(1);
        }
        fits
    }

    /// Puts a retry back that was taken at this moment and is not made.
    pub(crate) fn give_back(&mut self) {
        if let Some(newest) = self.pieces.first_mut() {
            newest.retries = newest.retries.saturating_sub(1);
        }
    }

    /// Lets the window slide to `now`.
    fn move_on(&mut self, now: Instant) {
        let length = self.window / PIECES as u32;
        let Some(began) = self.piece_began else {
            self.piece_began = Some(now);
            return;
        };
        let passed = now.saturating_duration_since(began).as_nanos() / length.as_nanos().max(1);
        match usize::try_from(passed) {
            Ok(0) => {}
            Ok(pieces) if pieces < PIECES => {
                self.pieces.rotate_right(pieces);
                self.pieces.iter_mut().take(pieces).for_each(|piece| *piece = Piece::default());
                self.piece_began = Some(began + length * pieces as u32);
            }
            _ => {
                self.pieces = [Piece::default(); PIECES];
                self.piece_began = Some(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, SimClock, secs};
    use proptest::prelude::*;

    fn fifth() -> RetryBudget {
        RetryBudget::new(Share::new(0.2).unwrap()).per_second(0)
    }

    #[test]
    fn a_fifth_of_the_requests_may_be_retried() {
        let (mut budget, now) = (fifth(), SimClock::default().now());
        assert!(!budget.take_retry(now));
        for _ in 0..10 {
            budget.note_request(now);
        }
        let taken: Vec<_> = (0..3).map(|_| budget.take_retry(now)).collect();
        assert_eq!(taken, [true, true, false]);
    }

    #[test]
    fn nothing_is_saved_up_beyond_the_window() {
        let (mut budget, now) = (fifth(), SimClock::default().now());
        for _ in 0..1000 {
            budget.note_request(now);
        }
        assert!(budget.take_retry(now + secs(9.9)));
        assert!(!budget.take_retry(now + secs(10.0)));
        // And a window without a request in it is empty, however long it was.
        assert!(!budget.take_retry(now + secs(1e6)));
    }

    #[test]
    fn a_few_are_always_allowed() {
        let (mut budget, now) = (fifth().per_second(1), SimClock::default().now());
        let allowed =
            |budget: &mut RetryBudget, now| (0..100).filter(|_| budget.take_retry(now)).count();
        assert_eq!(allowed(&mut budget, now), 10);
        assert_eq!(allowed(&mut budget, now + secs(9.0)), 0);
        assert_eq!(allowed(&mut budget, now + secs(10.0)), 10);
        let mut none = RetryBudget::new(Share::NONE).per_second(0).window(Duration::ZERO);
        none.note_request(now);
        assert!(!none.take_retry(now));
    }

    proptest! {
        /// Whatever comes in whatever order, the retries of the last nine tenths of the window (the
        /// newest piece may have only begun) never exceed what the rule says of the whole window.
        #[test]
        fn no_window_has_more_retries_than_the_rule_says(
            events in proptest::collection::vec((any::<bool>(), 0_u64..1500), 1..300),
            share in 0_u32..=100,
            per_second in 0_u32..3,
        ) {
            let mut budget =
                RetryBudget::new(Share::new(f64::from(share) / 100.0).unwrap()).per_second(per_second);
            let mut now = SimClock::default().now();
            let (mut requests, mut retries) = (Vec::new(), Vec::new());
            for (retry, later) in events {
                now += Duration::from_millis(later);
                if !retry {
                    budget.note_request(now);
                    requests.push(now);
                } else if budget.take_retry(now) {
                    retries.push(now);
                    let within = |times: &[Instant], window: Duration| {
                        times.iter().filter(|at| now - **at < window).count() as f64
                    };
                    let rule = within(&requests, secs(10.0)) * f64::from(share) / 100.0
                        + f64::from(per_second) * 10.0;
                    prop_assert!(within(&retries, secs(9.0)) <= rule + 1e-9);
                }
            }
        }
    }
}
