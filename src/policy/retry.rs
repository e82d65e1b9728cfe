//! urllib3's `Retry` as an immutable value.
//!
//! Retrying is three questions that get mixed up easily: *may* this outcome be retried at all, is
//! there budget *left* for its kind, and *how long* to wait first. urllib3 answers them in one
//! class whose names everybody who comes from `requests` knows, so the names, defaults and order
//! are kept here. What is not kept is that the class sleeps, reads the clock and changes while it
//! is used: [`Retry`] is the policy and never changes, [`RetryState`] holds the counters of one
//! request, and [`Decision`](super::Decision) says what to do. A driver does it.
//!
//! Where this differs from urllib3, the item concerned says DIFFERENCE and its name.

use super::{Backoff, Budget, LongWait, Methods, RetryState, Statuses};
use std::sync::Arc;
use std::time::Duration;

/// urllib3's `DEFAULT_RETRY_AFTER_MAX`.
const URLLIB3_RETRY_AFTER_MAX: Duration = Duration::from_secs(21_600);

/// How long a URL is parked by [`Retry::long_run`] at most.
const PARK_MAX: Duration = Duration::from_secs(600);

/// How often, after what and how long after a failed attempt the next one is made.
///
/// The fields are those of `urllib3.util.Retry`, each with a setter of its name. A value is cheap
/// to clone and never changes; `N` retries are `N + 1` attempts.
///
/// # Defaults
/// [`Retry::default`] is [`Retry::none`], as a `requests.Session` has none.
/// [`Retry::urllib3`] is what `urllib3.util.Retry()` gives, and [`Retry::long_run`] is for runs.
///
/// # Examples
/// ```
/// use longhaul::policy::{Backoff, Budget, Retry};
/// use longhaul::secs;
///
/// let retry = Retry::urllib3()
///     .total(4)
///     .connect(3)
///     .read(2)
///     .other(None)
///     .status_forcelist([429, 503])
///     .backoff(Backoff::exponential(secs(0.6)))
///     .raise_on_status(false);
/// assert_eq!(retry.total_budget(), Budget::Times(4));
/// assert_eq!(retry.other_budget(), Budget::Unlimited);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Retry(Arc<Policy>);

#[derive(Debug, Clone, PartialEq)]
struct Policy {
    total: Budget,
    connect: Budget,
    read: Budget,
    redirect: Budget,
    status: Budget,
    other: Budget,
    redirects_count_in_total: bool,
    methods: Methods,
    statuses: Statuses,
    backoff: Backoff,
    respect_retry_after_header: bool,
    retry_after_max: Duration,
    long_wait: LongWait,
    raise_on_status: bool,
    raise_on_redirect: bool,
    remove_headers_on_redirect: Vec<String>,
}

impl Retry {
    /// urllib3 2.x as it is: total 10, idempotent methods, no forcelist, no backoff, and a
    /// Retry-After that is waited for up to six hours.
    pub fn urllib3() -> Self {
        Self(Arc::new(Policy {
            total: Budget::Times(10),
            connect: Budget::Unlimited,
            read: Budget::Unlimited,
            redirect: Budget::Unlimited,
            status: Budget::Unlimited,
            other: Budget::Unlimited,
            redirects_count_in_total: true,
            methods: Methods::idempotent(),
            statuses: Statuses::NONE,
            backoff: Backoff::none(),
            respect_retry_after_header: true,
            retry_after_max: URLLIB3_RETRY_AFTER_MAX,
            long_wait: LongWait::Clamp,
            raise_on_status: true,
            raise_on_redirect: true,
            remove_headers_on_redirect: ["Cookie", "Authorization", "Proxy-Authorization"]
                .map(String::from)
                .into(),
        }))
    }

    /// The policy for runs; the default of `WorkerPool`, `Batch` and the command.
    ///
    /// # Defaults
    /// Total 4, connect 3, read 2, status 3, redirect and other under the total alone; statuses
    /// 408, 425, 429, 500, 502, 503, 504; methods GET, HEAD, OPTIONS; waits of 0.6, 1.2, 2.4 and
    /// 4.8 s (DIFFERENCE(first-wait): urllib3 makes the first retry at once); Retry-After up to
    /// 60 s is waited for, up to 10 min the URL is parked; the last response is handed out rather
    /// than raised.
    pub fn long_run() -> Self {
        use http::Method;
        Self::urllib3()
            .total(4)
            .connect(3)
            .read(2)
            .status(3)
            .status_forcelist([408, 425, 429, 500, 502, 503, 504])
            .allowed_methods([Method::GET, Method::HEAD, Method::OPTIONS])
            .backoff(Backoff::exponential(Duration::from_millis(600)))
            .retry_after_max(Duration::from_secs(60))
            .long_wait(LongWait::Park(PARK_MAX))
            .raise_on_status(false)
    }

    /// [`long_run`](Self::long_run) with total 2, for high concurrency and a second pass.
    pub fn wide() -> Self {
        Self::long_run().total(2)
    }

    /// No retries; the default of a `Session`, as in requests (`Retry(0, read=False)`).
    ///
    /// Redirects are outside the total here: requests follows them whatever its retries are, up to
    /// the session's `max_redirects`.
    pub fn none() -> Self {
        Self::urllib3().total(0).read(false).redirects_count_in_total(false)
    }

    /// A plain number, as urllib3's `Retry.from_int` and requests' `max_retries=`.
    pub fn from_total(total: u32) -> Self {
        Self::urllib3().total(total)
    }

    /// The state before the first attempt.
    pub fn start(&self) -> RetryState {
        RetryState::new(self.clone())
    }
}

/// The setters, under urllib3's names.
impl Retry {
    /// Retries of any kind; takes precedence over the others.
    ///
    /// [`Budget::Off`] raises every error as it is, follows no redirect and hands the redirect out
    /// (urllib3's `total=False`).
    pub fn total(self, total: impl Into<Budget>) -> Self {
        self.with(|policy| policy.total = total.into())
    }

    /// Retries after failures in which nothing of the request can have arrived.
    ///
    /// DIFFERENCE(category-by-phase): DNS, TCP, the proxy's handshake and TLS all count here;
    /// urllib3 counts only timeouts of the TCP connect and refused connections, and the rest as
    /// `read` or `other`.
    pub fn connect(self, connect: impl Into<Budget>) -> Self {
        self.with(|policy| policy.connect = connect.into())
    }

    /// Retries after failures in which the request may have arrived, for
    /// [`allowed_methods`](Self::allowed_methods) only.
    pub fn read(self, read: impl Into<Budget>) -> Self {
        self.with(|policy| policy.read = read.into())
    }

    /// Redirects.
    ///
    /// [`Budget::Off`] follows none and hands the redirect out, whatever
    /// [`raise_on_redirect`](Self::raise_on_redirect) says (urllib3's `redirect=False`).
    pub fn redirect(self, redirect: impl Into<Budget>) -> Self {
        self.with(|policy| policy.redirect = redirect.into())
    }

    /// Retries after a status of the forcelist, or one that Retry-After triggers.
    pub fn status(self, status: impl Into<Budget>) -> Self {
        self.with(|policy| policy.status = status.into())
    }

    /// Retries after anything else.
    pub fn other(self, other: impl Into<Budget>) -> Self {
        self.with(|policy| policy.other = other.into())
    }

    /// Whether a followed redirect is charged to [`total`](Self::total) as well.
    ///
    /// # Defaults
    /// On, as urllib3; off in [`Retry::none`], since requests follows redirects outside of its
    /// retries.
    pub fn redirects_count_in_total(self, count: bool) -> Self {
        self.with(|policy| policy.redirects_count_in_total = count)
    }

    /// Which methods may be retried after `read` failures and statuses; those of `connect` may be
    /// for every method. See [`Methods`] for DIFFERENCE(empty-methods).
    pub fn allowed_methods(self, methods: impl Into<Methods>) -> Self {
        self.with(|policy| policy.methods = methods.into())
    }

    /// Statuses that are retried. 407 never is, see
    /// [`Outcome::of_error`](super::Outcome::of_error).
    pub fn status_forcelist(self, statuses: impl Into<Statuses>) -> Self {
        self.with(|policy| policy.statuses = statuses.into())
    }

    /// The waits between attempts: shape, factor, cap and jitter at once.
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.with(|policy| policy.backoff = backoff)
    }

    /// The factor of the waits, in the shape there is.
    pub fn backoff_factor(self, factor: Duration) -> Self {
        self.with(|policy| policy.backoff = policy.backoff.with_factor(factor))
    }

    /// The longest own wait; default 120 s, as urllib3.
    pub fn backoff_max(self, max: Duration) -> Self {
        self.with(|policy| policy.backoff = policy.backoff.with_max(max))
    }

    /// A random addition to each own wait; default none, as urllib3.
    pub fn backoff_jitter(self, jitter: Duration) -> Self {
        self.with(|policy| policy.backoff = policy.backoff.with_jitter(jitter))
    }

    /// Whether Retry-After triggers retries of 413, 429 and 503 and sets the wait; default on.
    ///
    /// A redirect that asks for a wait gets it in any case, as in urllib3.
    pub fn respect_retry_after_header(self, respect: bool) -> Self {
        self.with(|policy| policy.respect_retry_after_header = respect)
    }

    /// The longest Retry-After that is waited for in the ordinary way; default 6 h, as urllib3.
    pub fn retry_after_max(self, max: Duration) -> Self {
        self.with(|policy| policy.retry_after_max = max)
    }

    /// What to do with a Retry-After above [`retry_after_max`](Self::retry_after_max); default
    /// [`LongWait::Clamp`], as urllib3.
    pub fn long_wait(self, long_wait: LongWait) -> Self {
        self.with(|policy| policy.long_wait = long_wait)
    }

    /// Whether statuses that used up their budget are raised; off hands the last response out,
    /// with its body. Default on, as urllib3.
    pub fn raise_on_status(self, raise: bool) -> Self {
        self.with(|policy| policy.raise_on_status = raise)
    }

    /// Whether redirects that used up their budget are raised; off hands the last one out. Default
    /// on, as urllib3.
    pub fn raise_on_redirect(self, raise: bool) -> Self {
        self.with(|policy| policy.raise_on_redirect = raise)
    }

    /// Header fields that are removed when a redirect leaves the origin; default Cookie,
    /// Authorization and Proxy-Authorization, as urllib3.
    pub fn remove_headers_on_redirect(self, names: Vec<String>) -> Self {
        self.with(|policy| policy.remove_headers_on_redirect = names)
    }

    fn with(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

/// The values that were set.
impl Retry {
    /// See [`total`](Self::total).
    pub fn total_budget(&self) -> Budget {
        self.0.total
    }

    /// See [`connect`](Self::connect).
    pub fn connect_budget(&self) -> Budget {
        self.0.connect
    }

    /// See [`read`](Self::read).
    pub fn read_budget(&self) -> Budget {
        self.0.read
    }

    /// See [`redirect`](Self::redirect).
    pub fn redirect_budget(&self) -> Budget {
        self.0.redirect
    }

    /// See [`status`](Self::status).
    pub fn status_budget(&self) -> Budget {
        self.0.status
    }

    /// See [`other`](Self::other).
    pub fn other_budget(&self) -> Budget {
        self.0.other
    }

    /// See [`redirects_count_in_total`](Self::redirects_count_in_total).
    pub fn counts_redirects_in_total(&self) -> bool {
        self.0.redirects_count_in_total
    }

    /// See [`allowed_methods`](Self::allowed_methods).
    pub fn methods(&self) -> &Methods {
        &self.0.methods
    }

    /// See [`status_forcelist`](Self::status_forcelist).
    pub fn statuses(&self) -> &Statuses {
        &self.0.statuses
    }

    /// See [`backoff`](Self::backoff).
    pub fn backoff_shape(&self) -> &Backoff {
        &self.0.backoff
    }

    /// See [`respect_retry_after_header`](Self::respect_retry_after_header).
    pub fn respects_retry_after(&self) -> bool {
        self.0.respect_retry_after_header
    }

    /// See [`retry_after_max`](Self::retry_after_max).
    pub fn retry_after_ceiling(&self) -> Duration {
        self.0.retry_after_max
    }

    /// See [`long_wait`](Self::long_wait).
    pub fn long_wait_policy(&self) -> LongWait {
        self.0.long_wait
    }

    /// The longest wait that a Retry-After can cause under this policy.
    pub fn longest_retry_after(&self) -> Duration {
        match self.0.long_wait {
            LongWait::Clamp | LongWait::Fail => self.0.retry_after_max,
            LongWait::Park(park_max) => self.0.retry_after_max.max(park_max),
        }
    }

    /// See [`raise_on_status`](Self::raise_on_status).
    pub fn raises_on_status(&self) -> bool {
        self.0.raise_on_status
    }

    /// See [`raise_on_redirect`](Self::raise_on_redirect); off wherever redirects are.
    pub fn raises_on_redirect(&self) -> bool {
        self.0.raise_on_redirect && self.0.redirect != Budget::Off && self.0.total != Budget::Off
    }

    /// See [`remove_headers_on_redirect`](Self::remove_headers_on_redirect).
    pub fn headers_removed_on_redirect(&self) -> &[String] {
        &self.0.remove_headers_on_redirect
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::none()
    }
}

impl From<u32> for Retry {
    fn from(total: u32) -> Self {
        Self::from_total(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    #[test]
    fn presets() {
        let run = Retry::long_run();
        assert_eq!(
            [run.total_budget(), run.connect_budget(), run.read_budget(), run.status_budget()],
            [Budget::Times(4), Budget::Times(3), Budget::Times(2), Budget::Times(3)]
        );
        assert_eq!([run.redirect_budget(), run.other_budget()], [Budget::Unlimited; 2]);
        assert_eq!(run.statuses().to_string(), "408,425,429,500,502,503,504");
        assert_eq!(run.methods().to_string(), "GET,HEAD,OPTIONS");
        assert!(!run.raises_on_status() && run.raises_on_redirect());
        assert_eq!(run.retry_after_ceiling(), Duration::from_secs(60));
        assert_eq!(run.longest_retry_after(), Duration::from_secs(600));
        assert_eq!(Retry::wide(), run.total(2));

        let plain = Retry::urllib3();
        assert_eq!(plain.total_budget(), Budget::Times(10));
        assert_eq!(plain.methods().to_string(), "HEAD,GET,PUT,DELETE,OPTIONS,TRACE");
        assert!(plain.statuses().is_empty() && plain.respects_retry_after());
        assert_eq!(plain.longest_retry_after(), Duration::from_secs(21_600));
        assert_eq!(Retry::from(3), plain.total(3));

        assert_eq!(Retry::default(), Retry::none());
        assert!(!Retry::none().counts_redirects_in_total());
    }

    #[test]
    fn a_setter_leaves_other_clones_alone() {
        let one = Retry::urllib3();
        let two = one.clone().backoff_max(Duration::from_secs(5)).allowed_methods([Method::GET]);
        assert_eq!(one, Retry::urllib3());
        assert_eq!(two.backoff_shape().max(), Duration::from_secs(5));
        assert!(!Retry::urllib3().redirect(false).raises_on_redirect());
        assert!(!Retry::urllib3().total(false).raises_on_redirect());
    }
}
