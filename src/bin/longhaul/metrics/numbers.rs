//! Which numbers there are, and what moves them; `docs/metrics.md` has the table.
//!
//! Every name is there from the beginning with every value of its labels that is known by then, so
//! that a rate over it has a zero to begin with.

use longhaul::batch::{Progress, Record};
use longhaul::error::WaitReason;
use longhaul::policy::Class;
use longhaul::session::SessionBuilder;
use prometheus::{
    Encoder, Error, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// From a local answer to a read timeout.
const ATTEMPT_BUCKETS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0];
/// From an answer at once to ten minutes parked.
const URL_BUCKETS: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0];

/// The states of a proxy.
const STATES: [&str; 5] = ["unchecked", "good", "cooling", "dead", "credentials refused"];
const STATUSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const PHASES: [&str; 6] = ["dns", "connect", "proxy", "tls", "first_byte", "total"];

/// The numbers of a run.
#[derive(Debug)]
pub(crate) struct Numbers {
    registry: Registry,
    urls: IntCounterVec,
    attempts: IntCounterVec,
    refusals: IntCounter,
    disconnects: IntCounter,
    received: IntCounter,
    decoded: IntCounter,
    phases: HistogramVec,
    attempt_time: Histogram,
    url_time: Histogram,
    planned: Gauge,
    in_flight: IntGauge,
    ready: IntGauge,
    waiting: IntGaugeVec,
    held: IntGauge,
    concurrency: IntGauge,
    pass: IntGauge,
    exits: IntGauge,
    rate: Gauge,
    eta: Gauge,
    disconnect_ratio: Gauge,
    alarm: IntGauge,
    proxies: IntGaugeVec,
    recipe: Mutex<Option<SessionBuilder>>,
}

impl Numbers {
    /// All at zero, and what is not known yet at NaN.
    pub(super) fn new() -> Result<Self, Error> {
        let made = Maker(Registry::new());
        let numbers = Self {
            urls: made.counters("longhaul_urls_total", "URLs that have a record, by class.", "class")?,
            attempts: made.counters(
                "longhaul_attempts_total",
                "Attempts of URLs that have come to the end of a pass, by status or kind of failure.",
                "outcome",
            )?,
            refusals: made.counter(
                "longhaul_refusals_total",
                "Attempts that were refused: 403, and block pages.",
            )?,
            disconnects: made.counter(
                "longhaul_disconnects_total",
                "Attempts whose connection did not come about, broke or fell silent.",
            )?,
            received: made.counter(
                "longhaul_received_bytes_total",
                "Body bytes of last responses, as they came off the wire.",
            )?,
            decoded: made.counter(
                "longhaul_decoded_bytes_total",
                "Body bytes of last responses, after decoding.",
            )?,
            phases: made.histograms(
                "longhaul_phase_seconds",
                "How long the phases of the last attempt took where a response came.",
                "phase",
            )?,
            attempt_time: made.histogram(
                "longhaul_attempt_seconds",
                "How long attempts took, up to the end of the body or the failure.",
                ATTEMPT_BUCKETS,
            )?,
            url_time: made.histogram(
                "longhaul_url_seconds",
                "How long URLs took from the first attempt of their last pass on, waits included.",
                URL_BUCKETS,
            )?,
            planned: made.number(
                "longhaul_urls_planned",
                "URLs that this run has to do; NaN where they were not counted.",
            )?,
            in_flight: made.gauge("longhaul_urls_in_flight", "URLs being attempted.")?,
            ready: made.gauge(
                "longhaul_urls_ready",
                "URLs in the queue, for a worker or behind a limit.",
            )?,
            waiting: made.gauges("longhaul_urls_waiting", "URLs that wait, by reason.", "reason")?,
            held: made.gauge("longhaul_urls_held", "URLs that wait for another pass.")?,
            concurrency: made.gauge(
                "longhaul_concurrency",
                "How many URLs may be attempted at once.",
            )?,
            pass: made.gauge("longhaul_pass", "The pass, from 1; 0 before the start.")?,
            exits: made.gauge(
                "longhaul_exits",
                "Different addresses that the world has seen, as far as they are known.",
            )?,
            rate: made.number(
                "longhaul_urls_per_second",
                "URLs that ended or were held back, per second, lately.",
            )?,
            eta: made.number(
                "longhaul_eta_seconds",
                "How long the run still takes; NaN where it cannot be told.",
            )?,
            disconnect_ratio: made.number(
                "longhaul_disconnect_ratio",
                "The share of attempts whose connection broke, lately; NaN until there were enough.",
            )?,
            alarm: made.gauge(
                "longhaul_disconnect_alarm",
                "1 while connections break more often than they did, else 0.",
            )?,
            proxies: made.gauges("longhaul_proxies", "Proxies, by state.", "state")?,
            recipe: Mutex::new(None),
            registry: made.0,
        };
        numbers.begin();
        Ok(numbers)
    }

    fn begin(&self) {
        for class in Class::ALL {
            self.urls.with_label_values(&[class.name()]);
        }
        for status in STATUSES {
            self.attempts.with_label_values(&[status]);
        }
        for reason in WaitReason::ALL {
            self.waiting.with_label_values(&[reason.name()]);
        }
        for phase in PHASES {
            self.phases.with_label_values(&[phase]);
        }
        for state in STATES {
            self.proxies.with_label_values(&[state]);
        }
        for unknown in [&self.planned, &self.eta, &self.disconnect_ratio] {
            unknown.set(f64::NAN);
        }
    }

    /// Whose proxies are counted.
    pub(super) fn watch_proxies(&self, recipe: SessionBuilder) {
        *self.recipe.lock().unwrap_or_else(PoisonError::into_inner) = Some(recipe);
    }

    /// A URL has come to the end of a pass.
    pub(crate) fn pass_end(&self, record: &Record) {
        for attempt in &record.attempts {
            let outcome = match (&attempt.error, attempt.status) {
                (Some(error), _) => &*error.kind,
                (None, Some(status)) => status_class(status),
                (None, None) => "none",
            };
            self.attempts.with_label_values(&[outcome]).inc();
            self.attempt_time.observe(attempt.elapsed_ms / 1000.0);
        }
        self.received.inc_by(record.bytes_wire);
        self.decoded.inc_by(record.bytes_body);
        let Some(timings) = &record.timings else { return };
        let times = [
            timings.dns_ms,
            timings.connect_ms,
            timings.proxy_ms,
            timings.tls_ms,
            timings.first_byte_ms,
            Some(timings.total_ms),
        ];
        for (phase, time) in PHASES.into_iter().zip(times) {
            if let Some(time) = time {
                self.phases.with_label_values(&[phase]).observe(time / 1000.0);
            }
        }
    }

    /// A record was written.
    pub(crate) fn record(&self, record: &Record) {
        self.urls.with_label_values(&[&*record.class]).inc();
        if !record.attempts.is_empty() {
            self.url_time.observe(record.elapsed_ms / 1000.0);
        }
    }

    /// Time went on.
    pub(crate) fn progress(&self, now: &Progress) {
        self.planned.set(now.total.map_or(f64::NAN, |total| total as f64));
        self.eta.set(now.eta().as_ref().map_or(f64::NAN, Duration::as_secs_f64));
        self.disconnect_ratio.set(now.disconnect_share.unwrap_or(f64::NAN));
        self.rate.set(now.recent_rate);
        self.alarm.set(i64::from(now.alarm));
        // Before the start there is no pass.
        self.pass.set(if now.starts_in.is_some() { 0 } else { i64::from(now.pass) });
        for (gauge, value) in [
            (&self.in_flight, now.in_flight),
            (&self.ready, now.ready),
            (&self.held, now.held),
            (&self.concurrency, now.concurrency),
            (&self.exits, now.exits),
        ] {
            gauge.set(whole(value));
        }
        for (counter, value) in
            [(&self.refusals, now.refusals), (&self.disconnects, now.disconnects)]
        {
            counter.inc_by(value.saturating_sub(counter.get()));
        }
        for reason in WaitReason::ALL {
            let waiting = whole(now.waiting_for(*reason));
            self.waiting.with_label_values(&[reason.name()]).set(waiting);
        }
    }

    /// The text of a scrape.
    pub(super) fn text(&self) -> Result<String, String> {
        self.count_proxies();
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&self.registry.gather(), &mut text)
            .map_err(|error| error.to_string())?;
        String::from_utf8(text).map_err(|error| error.to_string())
    }

    fn count_proxies(&self) {
        let stats = match &*self.recipe.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(recipe) => recipe.proxy_stats(),
            None => return,
        };
        let mut counts = BTreeMap::from(STATES.map(|state| (state, 0)));
        for proxy in stats {
            let state = if proxy.auth_refused { "credentials refused" } else { proxy.state };
            *counts.entry(state).or_default() += 1;
        }
        for (state, count) in counts {
            self.proxies.with_label_values(&[state]).set(count);
        }
    }
}

fn status_class(status: u16) -> &'static str {
    let first = usize::from(status / 100).checked_sub(1);
    first.and_then(|first| STATUSES.get(first)).copied().unwrap_or("other")
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Makes numbers and registers them.
struct Maker(Registry);

impl Maker {
    fn counter(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.register(IntCounter::new(name, help)?)
    }

    fn counters(&self, name: &str, help: &str, label: &str) -> Result<IntCounterVec, Error> {
        self.register(IntCounterVec::new(Opts::new(name, help), &[label])?)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.register(IntGauge::new(name, help)?)
    }

    fn gauges(&self, name: &str, help: &str, label: &str) -> Result<IntGaugeVec, Error> {
        self.register(IntGaugeVec::new(Opts::new(name, help), &[label])?)
    }

    fn number(&self, name: &str, help: &str) -> Result<Gauge, Error> {
        self.register(Gauge::new(name, help)?)
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Result<Histogram, Error> {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.register(Histogram::with_opts(options)?)
    }

    fn histograms(&self, name: &str, help: &str, label: &str) -> Result<HistogramVec, Error> {
        let options = HistogramOpts::new(name, help).buckets(ATTEMPT_BUCKETS.to_vec());
        self.register(HistogramVec::new(options, &[label])?)
    }

    fn register<C: Clone + prometheus::core::Collector + 'static>(
        &self,
        made: C,
    ) -> Result<C, Error> {
        self.0.register(Box::new(made.clone()))?;
        Ok(made)
    }
}
