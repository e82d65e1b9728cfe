//! What a seed decides: settings, faults, and what is done to the run from outside.

use crate::policy::{
    Backoff, BlockPage, Concurrency, HostCircuit, LongWait, Retry, RetryBudget, Share, SlowLane,
    Timeouts,
};
use crate::proxy::Rotation;
use crate::rng::Rng;
use crate::session::SessionBuilder;
use crate::time::secs;
use crate::workers::WorkerPoolBuilder;
use crate::{ProxyPool, Session};
use std::time::Duration;

/// A rate with its burst.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) per_second: f64,
    pub(super) burst: u32,
}

/// The limits, as the other side would count them.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowed {
    pub(super) rate: Option<Pace>,
    pub(super) host_rate: Option<Pace>,
    pub(super) per_host: Option<usize>,
    pub(super) per_proxy: Option<usize>,
    pub(super) per_credential: Option<usize>,
    pub(super) proxy_rate: Option<f64>,
    pub(super) credential_rate: Option<f64>,
}

/// How often attempts meet what, from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shares {
    pub(super) trouble: f64,
    pub(super) redirect: f64,
    pub(super) panic: f64,
    pub(super) bad_proxy: f64,
}

/// How a life of the run ends before its work does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blow {
    Close,
    Abort,
    /// The process is killed: what was written stays, the last line perhaps in part.
    Kill,
    /// The machine stops: what was not synced may be lost.
    PowerCut,
}

#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) urls: usize,
    pub(super) hosts: usize,
    pub(super) workers: usize,
    pub(super) permits: usize,
    pub(super) adaptive: bool,
    pub(super) allowed: Allowed,
    pub(super) shares: Shares,
    pub(super) retry: Retry,
    pub(super) timeouts: Timeouts,
    pub(super) proxies: usize,
    rotation: Rotation,
    fresh_exit: bool,
    pub(super) lane: Option<SlowLane>,
    pub(super) block_page: bool,
    pub(super) digest: bool,
    pub(super) circuit: bool,
    pub(super) budget: bool,
    pub(super) passes: u32,
    /// How many URLs are held back for another pass.
    pub(super) most_held: usize,
    pub(super) sync_each: bool,
    pub(super) retry_failed: bool,
    pub(super) samples: Option<u64>,
    /// The credential that is refused from this time on.
    pub(super) refused_credential: Option<Duration>,
    /// Jobs beside the batch, some of which are given up.
    pub(super) beside: usize,
    /// Per life.
    pub(super) blows: Vec<(Duration, Blow)>,
}

/// Of three proxies and more, each second one has the second credential.
pub(super) fn credential_of(proxy: usize) -> usize {
    proxy % 2
}

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let rng = &mut Rng::stream(seed, 1);
        let workers = 1 + rng.below(6);
        let proxies = if rng.below(3) == 0 { 0 } else { 1 + rng.below(4) };
        let mut blows = Vec::new();
        while blows.len() < 3 && rng.below(2) == 0 {
            let blow = [Blow::Close, Blow::Abort, Blow::Kill, Blow::PowerCut][rng.below(4)];
            blows.push((secs(rng.uniform(0.0, 40.0)), blow));
        }
        Self {
            seed,
            urls: 4 + rng.below(22),
            hosts: 1 + rng.below(4),
            workers,
            permits: workers + rng.below(16),
            adaptive: rng.below(4) == 0,
            allowed: allowed(rng, proxies),
            shares: Shares {
                trouble: [0.0, 0.2, 0.5, 0.9][rng.below(4)],
                redirect: [0.0, 0.2, 0.5][rng.below(3)],
                panic: [0.0, 0.0, 0.05][rng.below(3)],
                bad_proxy: [0.0, 0.1, 0.4][rng.below(3)],
            },
            retry: retry(rng),
            timeouts: timeouts(rng),
            proxies,
            rotation: [Rotation::Request, Rotation::Retry, Rotation::Host, Rotation::Random]
                [rng.below(4)],
            fresh_exit: rng.below(2) == 0,
            lane: (rng.below(2) == 0).then(|| {
                SlowLane::default()
                    .times(1 + rng.below(2) as u32)
                    .pause(secs(rng.uniform(1.0, 30.0)))
                    .spacing(secs(rng.uniform(0.5, 8.0)))
            }),
            block_page: rng.below(4) == 0,
            digest: rng.below(5) == 0,
            circuit: rng.below(5) == 0,
            budget: rng.below(5) == 0,
            passes: 1 + rng.below(2) as u32,
            most_held: [1, 4, 100][rng.below(3)],
            sync_each: rng.below(2) == 0,
            retry_failed: rng.below(2) == 0,
            samples: (rng.below(5) == 0).then(|| 1 + rng.below(5) as u64),
            refused_credential: (rng.below(6) == 0).then(|| secs(rng.uniform(0.0, 20.0))),
            beside: if rng.below(3) == 0 { 1 + rng.below(6) } else { 0 },
            blows,
        }
    }

    /// From this life on nothing is done to the run, and nothing is wrong that no retry mends.
    pub(super) fn is_calm(&self, life: usize) -> bool {
        life >= 4
    }

    pub(super) fn source(&self) -> Vec<String> {
        (0..self.urls).map(|n| format!("http://h{}.test/{n}", n % self.hosts)).collect()
    }

    /// The recipe but for its transport and its clock.
    pub(super) fn recipe(&self) -> SessionBuilder {
        let mut recipe = Session::builder()
            .trust_env(false)
            .seed(self.seed)
            .retry(self.retry.clone())
            .timeout(self.timeouts);
        if self.proxies > 0 {
            recipe = recipe.proxies(self.pool());
        }
        if self.digest {
            recipe = recipe.auth(crate::message::Auth::Digest("u".to_owned(), "p".to_owned()));
        }
        if self.circuit {
            let half = Share::new(0.5).expect("a share");
            recipe = recipe.host_circuit(HostCircuit::new(half, secs(30.0)).expect("a circuit"));
        }
        if self.budget {
            recipe = recipe.retry_budget(RetryBudget::new(Share::new(0.2).expect("a share")));
        }
        recipe
    }

    fn pool(&self) -> ProxyPool {
        let line = |n: usize| format!("http://user{}:secret@p{n}.test:8000\n", credential_of(n));
        let allowed = &self.allowed;
        ProxyPool::parse(&(0..self.proxies).map(line).collect::<String>())
            .and_then(|pool| pool.rate_per_proxy(allowed.proxy_rate))
            .and_then(|pool| pool.rate_per_credential(allowed.credential_rate))
            .expect("a pool")
            .rotation(self.rotation)
            .fresh_exit(self.fresh_exit)
            .parallel_per_proxy(allowed.per_proxy)
            .parallel_per_credential(allowed.per_credential)
    }

    pub(super) fn workers(&self, recipe: SessionBuilder) -> WorkerPoolBuilder {
        use crate::error::ErrorKind::{ExitLeak, NoProxyAlive, ProxyAuth};
        let mut pool = WorkerPoolBuilder::new(recipe)
            .workers(self.workers)
            .permits(self.permits)
            .slow_lane(self.lane)
            .stop_on([ProxyAuth, ExitLeak, NoProxyAlive]);
        if self.adaptive {
            pool = pool.concurrency(Concurrency::Adaptive);
        }
        if self.block_page {
            pool = pool.block_page(BlockPage::new().body("robot"));
        }
        let Allowed { rate, host_rate, per_host, .. } = self.allowed;
        if let Some(pace) = rate {
            pool = pool.rate(pace.per_second).rate_burst(pace.burst);
        }
        if let Some(pace) = host_rate {
            pool = pool.host_rate(pace.per_second).host_rate_burst(pace.burst);
        }
        if let Some(attempts) = per_host {
            pool = pool.per_host(attempts);
        }
        pool
    }
}

fn allowed(rng: &mut Rng, proxies: usize) -> Allowed {
    let pace = |rng: &mut Rng, low, high| Pace {
        per_second: rng.uniform(low, high),
        burst: 1 + rng.below(4) as u32,
    };
    let through = |rng: &mut Rng| proxies > 0 && rng.below(3) == 0;
    Allowed {
        rate: (rng.below(3) == 0).then(|| pace(rng, 0.5, 20.0)),
        host_rate: (rng.below(3) == 0).then(|| pace(rng, 0.2, 8.0)),
        per_host: (rng.below(3) == 0).then(|| 1 + rng.below(3)),
        per_proxy: through(rng).then(|| 1 + rng.below(2)),
        per_credential: through(rng).then(|| 1 + rng.below(3)),
        proxy_rate: through(rng).then(|| rng.uniform(1.0, 10.0)),
        credential_rate: through(rng).then(|| rng.uniform(1.0, 10.0)),
    }
}

fn retry(rng: &mut Rng) -> Retry {
    let factor = secs(rng.uniform(0.0, 2.0));
    let shape = match rng.below(6) {
        0 => Backoff::urllib3(factor),
        1 => Backoff::full_jitter(factor),
        2 => Backoff::equal_jitter(factor),
        3 => Backoff::decorrelated(factor),
        4 => Backoff::constant(factor),
        _ => Backoff::exponential(factor).with_jitter(secs(0.5)),
    };
    let retry = match rng.below(5) {
        0 => Retry::long_run(),
        1 => Retry::wide(),
        2 => Retry::long_run().total(3).backoff(shape),
        3 => Retry::urllib3().total(3).backoff(shape).status_forcelist([429, 500, 503]),
        _ => Retry::none().redirect(3).total(3),
    };
    let long_wait = [LongWait::Clamp, LongWait::Park(secs(300.0)), LongWait::Fail][rng.below(3)];
    retry
        .retry_after_max(secs(rng.uniform(1.0, 60.0)))
        .long_wait(long_wait)
        .respect_retry_after_header(rng.below(4) > 0)
        .raise_on_status(rng.below(2) == 0)
}

fn timeouts(rng: &mut Rng) -> Timeouts {
    let timeouts = Timeouts::from((secs(rng.uniform(1.0, 5.0)), secs(rng.uniform(2.0, 12.0))));
    let deadline = (rng.below(3) > 0).then(|| secs(rng.uniform(5.0, 180.0)));
    timeouts.with_deadline(deadline).expect("a deadline")
}
