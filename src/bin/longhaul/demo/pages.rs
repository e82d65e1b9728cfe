//! The pages of the demo: each says in its own URL how it misbehaves.
//!
//! `/17/reset-2/gzip/16384` is page 17; the connection is reset for the first two requests, from
//! the third on it answers 16 384 bytes, compressed. So the origin needs no table of what it is to
//! do, and what has to become of a URL under a policy ([`expected`]) is computed from the URL alone,
//! by a function that knows nothing of the machinery under test.

use longhaul::policy::Class;
use longhaul::rng::Rng;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// How a page misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Not at all.
    Fine,
    /// The body comes in pieces with pauses, each below the read timeout.
    Slow,
    /// 503 with `Retry-After: 1`.
    Busy,
    /// 429 with `Retry-After: 1`.
    Throttled,
    /// 500.
    Broken,
    /// The connection is reset before the first byte.
    Reset,
    /// Nothing is ever said.
    Silent,
    /// The connection ends before the body is complete.
    Truncated,
    /// 403.
    Refused,
    /// 404.
    Missing,
    /// 410.
    Gone,
}

impl Fault {
    const ALL: [Self; 11] = [
        Self::Fine,
        Self::Slow,
        Self::Busy,
        Self::Throttled,
        Self::Broken,
        Self::Reset,
        Self::Silent,
        Self::Truncated,
        Self::Refused,
        Self::Missing,
        Self::Gone,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Slow => "slow",
            Self::Busy => "busy",
            Self::Throttled => "throttled",
            Self::Broken => "broken",
            Self::Reset => "reset",
            Self::Silent => "silent",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::Missing => "missing",
            Self::Gone => "gone",
        }
    }
}

/// How many requests for a page fail before it recovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Times {
    /// So many.
    Exactly(u32),
    /// It never recovers.
    Always,
}

/// One page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Page {
    /// Its number, which makes its URL unique.
    pub(crate) index: u32,
    /// How it misbehaves.
    pub(crate) fault: Fault,
    /// For how long.
    pub(crate) times: Times,
    /// Whether it is compressed.
    pub(crate) gzip: bool,
    /// The size of its body before compression.
    pub(crate) bytes: usize,
}

impl Page {
    /// Whether request number `request` for it (from 1) meets the fault.
    pub(crate) fn fails(&self, request: u32) -> bool {
        match self.times {
            Times::Exactly(times) => request <= times,
            Times::Always => true,
        }
    }

    /// Whether it is asked for over TLS: one in three, and each that resets. A proxy that forwards
    /// answers for a target that resets (502), so only through a tunnel the reset itself arrives.
    pub(crate) fn is_tls(&self) -> bool {
        self.fault == Fault::Reset || self.index.is_multiple_of(3)
    }
}

/// A body of this size: lines of text that compress about as well as a web page does.
pub(crate) fn body(bytes: usize) -> Vec<u8> {
    let mut rng = Rng::seeded(0);
    let mut body = Vec::with_capacity(bytes.saturating_add(64));
    while body.len() < bytes {
        let line = format!("<li id=\"{:08x}\"><a href=\"/next\">page</a></li>\n", rng.bits() >> 32);
        body.extend_from_slice(line.as_bytes());
    }
    body.truncate(bytes);
    body
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}-", self.index, self.fault.name())?;
        match self.times {
            Times::Exactly(times) => write!(f, "{times}")?,
            Times::Always => f.write_str("always")?,
        }
        write!(f, "/{}/{}", if self.gzip { "gzip" } else { "plain" }, self.bytes)
    }
}

/// The path is none of the demo's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoPage;

impl FromStr for Page {
    type Err = NoPage;

    fn from_str(path: &str) -> Result<Self, NoPage> {
        let mut parts = path.strip_prefix('/').ok_or(NoPage)?.split('/');
        let mut next = || parts.next().ok_or(NoPage);
        let index = next()?.parse().map_err(|_| NoPage)?;
        let (name, times) = next()?.split_once('-').ok_or(NoPage)?;
        let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name).ok_or(NoPage)?;
        let times = match times {
            "always" => Times::Always,
            number => Times::Exactly(number.parse().map_err(|_| NoPage)?),
        };
        let gzip = match next()? {
            "gzip" => true,
            "plain" => false,
            _ => return Err(NoPage),
        };
        let bytes = next()?.parse().map_err(|_| NoPage)?;
        if parts.next().is_some() {
            return Err(NoPage);
        }
        Ok(Self { index, fault, times, gzip, bytes })
    }
}

/// The budgets of the policy that a page is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budgets {
    pub(crate) total: u32,
    pub(crate) read: u32,
    pub(crate) status: u32,
}

/// What has to become of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    /// How it ends.
    pub(crate) class: Class,
    /// With which of these statuses, where it ends with a response.
    pub(crate) status: &'static [u16],
    /// With which of these kinds, where it ends with a failure.
    pub(crate) kinds: &'static [&'static str],
    /// How often the origin is asked. More than once more than the policy counts only where the
    /// resend after a kept-alive connection broke comes on top, which is free.
    pub(crate) attempts: RangeInclusive<u32>,
    /// The size of the decoded body, where it matters.
    pub(crate) bytes: Option<usize>,
}

/// What has to become of `page` under a policy with these budgets, whatever proxy it goes through.
pub(crate) fn expected(page: &Page, budgets: Budgets) -> Expected {
    let status_budget = budgets.status.min(budgets.total);
    let read_budget = budgets.read.min(budgets.total);
    let once = |class, status| Expected { class, status, kinds: &[], attempts: 1..=1, bytes: None };
    let (budget, status, kinds, resends): (u32, &'static [u16], &'static [&'static str], bool) =
        match page.fault {
            Fault::Fine | Fault::Slow => {
                return Expected { bytes: Some(page.bytes), ..once(Class::Ok, &[200]) };
            }
            // Once more, in the slow lane.
            Fault::Refused => {
                return Expected { attempts: 2..=2, ..once(Class::Refused, &[403]) };
            }
            Fault::Missing => return once(Class::Permanent, &[404]),
            Fault::Gone => return once(Class::Permanent, &[410]),
            Fault::Busy => (status_budget, &[503], &[], false),
            Fault::Throttled => (status_budget, &[429], &[], false),
            Fault::Broken => (status_budget, &[500], &[], false),
            Fault::Silent => (read_budget, &[], &["read_timeout"], false),
            Fault::Truncated => (read_budget, &[], &["incomplete_body"], false),
            Fault::Reset => (read_budget, &[], &["connection"], true),
        };
    match page.times {
        Times::Exactly(times) if times <= budget => Expected {
            class: Class::Ok,
            status: &[200],
            kinds: &[],
            // Every failure is an attempt at the origin, resends included, so the number is exact.
            attempts: times.saturating_add(1)..=times.saturating_add(1),
            bytes: Some(page.bytes),
        },
        _ => {
            let counted = budget.saturating_add(1);
            let most = if resends { counted.saturating_mul(2) } else { counted };
            Expected {
                class: Class::Retryable,
                status,
                kinds,
                attempts: counted..=most,
                bytes: None,
            }
        }
    }
}

/// The pages of a demo: each fault at least once, where there are enough of them, then by their
/// shares, all in an order that the seed decides.
pub(crate) fn generate(count: usize, seed: u64, budgets: Budgets) -> Vec<Page> {
    let mut rng = Rng::seeded(seed);
    let catalogue = catalogue(budgets);
    let mut pages: Vec<Page> = (0..count)
        .zip(0_u32..)
        .map(|(place, index)| {
            let (fault, times) = match catalogue.get(place) {
                Some((fault, times, _)) => (*fault, *times),
                None => draw(&catalogue, &mut rng),
            };
            let gzip = rng.below(2) == 0;
            // Small pages are common and large ones rare; a truncated one needs something to lose.
            let sizes = [200, 2_000, 2_000, 16_000, 16_000, 16_000, 64_000, 300_000];
            let bytes = sizes.get(rng.below(sizes.len())).copied().unwrap_or(200);
            let bytes = if fault == Fault::Slow { bytes.min(16_000) } else { bytes };
            Page { index, fault, times, gzip, bytes }
        })
        .collect();
    for last in (1..pages.len()).rev() {
        pages.swap(last, rng.below(last + 1));
    }
    pages
}

/// Every fault with every number of times that matters, and its share in a thousand.
fn catalogue(budgets: Budgets) -> Vec<(Fault, Times, usize)> {
    let always = [
        (Fault::Fine, 660),
        (Fault::Slow, 30),
        (Fault::Refused, 25),
        (Fault::Missing, 35),
        (Fault::Gone, 15),
        (Fault::Busy, 2),
        (Fault::Throttled, 1),
        (Fault::Broken, 8),
        (Fault::Reset, 8),
        (Fault::Silent, 4),
        (Fault::Truncated, 8),
    ];
    // The shares of one that recovers, for each number of times.
    let recovering = [
        (Fault::Busy, budgets.status, 15),
        (Fault::Throttled, 1, 4),
        (Fault::Broken, budgets.status, 20),
        (Fault::Reset, budgets.read, 25),
        (Fault::Silent, budgets.read, 8),
        (Fault::Truncated, budgets.read, 25),
    ];
    let mut all: Vec<_> =
        always.into_iter().map(|(fault, share)| (fault, Times::Always, share)).collect();
    for (fault, most, share) in recovering {
        for times in 1..=most.min(budgets.total) {
            all.push((fault, Times::Exactly(times), share));
        }
    }
    all
}

fn draw(catalogue: &[(Fault, Times, usize)], rng: &mut Rng) -> (Fault, Times) {
    let sum = catalogue.iter().map(|(_, _, share)| share).sum();
    let mut left = rng.below(sum);
    for (fault, times, share) in catalogue {
        match left.checked_sub(*share) {
            Some(rest) => left = rest,
            None => return (*fault, *times),
        }
    }
    (Fault::Fine, Times::Always)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const LONG_RUN: Budgets = Budgets { total: 4, read: 2, status: 3 };

    fn page(path: &str) -> Page {
        path.parse().unwrap()
    }

    #[test]
    fn a_path_says_what_the_page_does() {
        let reset = page("/17/reset-2/gzip/16384");
        assert_eq!(
            reset,
            Page {
                index: 17,
                fault: Fault::Reset,
                times: Times::Exactly(2),
                gzip: true,
                bytes: 16384
            }
        );
        assert_eq!([1, 2, 3].map(|request| reset.fails(request)), [true, true, false]);
        assert!(page("/1/missing-always/plain/0").fails(1_000_000));
        for wrong in
            ["", "/", "/1", "/x/fine-1/plain/1", "/1/odd-1/plain/1", "/1/fine-1/plain/1/2", "1/"]
        {
            assert_eq!(wrong.parse::<Page>(), Err(NoPage), "{wrong}");
        }
    }

    #[test]
    fn expectations() {
        use Class::{Ok, Permanent, Refused, Retryable};
        for (path, class, attempts) in [
            ("/1/fine-always/plain/9", Ok, 1..=1),
            ("/1/slow-always/plain/9", Ok, 1..=1),
            ("/1/refused-always/plain/9", Refused, 2..=2),
            ("/1/missing-always/plain/9", Permanent, 1..=1),
            ("/1/gone-always/plain/9", Permanent, 1..=1),
            ("/1/busy-1/plain/9", Ok, 2..=2),
            ("/1/busy-3/plain/9", Ok, 4..=4),
            ("/1/busy-4/plain/9", Retryable, 4..=4),
            ("/1/throttled-always/plain/9", Retryable, 4..=4),
            ("/1/broken-3/plain/9", Ok, 4..=4),
            ("/1/silent-2/plain/9", Ok, 3..=3),
            ("/1/silent-3/plain/9", Retryable, 3..=3),
            ("/1/truncated-always/plain/9", Retryable, 3..=3),
            ("/1/reset-2/plain/9", Ok, 3..=3),
            ("/1/reset-always/plain/9", Retryable, 3..=6),
        ] {
            let expected = expected(&page(path), LONG_RUN);
            assert_eq!((expected.class, expected.attempts), (class, attempts), "{path}");
        }
        let tight = Budgets { total: 1, ..LONG_RUN };
        assert_eq!(expected(&page("/1/busy-1/plain/9"), tight).class, Ok);
        assert_eq!(expected(&page("/1/busy-2/plain/9"), tight).attempts, 2..=2);
        assert_eq!(expected(&page("/1/fine-always/gzip/9"), LONG_RUN).bytes, Some(9));
    }

    #[test]
    fn one_seed_one_list() {
        let pages = generate(1000, 7, LONG_RUN);
        assert_eq!(pages, generate(1000, 7, LONG_RUN));
        assert_ne!(pages, generate(1000, 8, LONG_RUN));
        let paths: HashSet<String> = pages.iter().map(ToString::to_string).collect();
        assert_eq!(paths.len(), 1000);
        for page in &pages {
            assert_eq!(page.to_string().parse(), Ok(*page));
        }
        let faults: HashSet<Fault> = pages.iter().map(|page| page.fault).collect();
        assert_eq!(faults.len(), Fault::ALL.len());
    }

    #[test]
    fn bodies_have_their_size() {
        for bytes in [0, 1, 200, 300_000] {
            assert_eq!(body(bytes).len(), bytes);
        }
    }
}
