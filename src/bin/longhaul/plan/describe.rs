//! The plan in words, printed before the run.
//!
//! Whoever starts a run overnight wants to read four things first: how much there is to do, with
//! what, how long a single URL can hold out at most, and where the results will be.

use super::{Input, Plan};
use crate::args::Rotate;
use crate::policy::{Policy, describe_retries};
use crate::proxies::Proxies;
use longhaul::message::Verify;
use longhaul::policy::{Bound, Concurrency, format_duration};
use longhaul::proxy::SessionPer;
use std::fmt::Write as _;

/// What counting the input came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// To be done; `None` where the input can be read only once.
    pub(crate) urls: Option<u64>,
    /// Recorded already.
    pub(crate) done: u64,
    /// Lines that stand there more than once.
    pub(crate) repeated: u64,
}

impl Plan {
    /// The plan in words.
    pub(crate) fn describe(&self, counted: &Counted) -> String {
        let mut text = String::from("longhaul: the plan\n");
        for (name, value) in [
            ("settings", self.settings.clone()),
            ("input", Some(self.describe_input(counted))),
            ("workers", Some(self.describe_workers())),
            ("proxies", Some(self.describe_proxies())),
            ("hours", self.describe_hours()),
            ("sends", self.credentials.describe().map(ToOwned::to_owned)),
            ("cookies", self.cookies.describe()),
            ("retries", Some(describe_retries(&self.policy.retry))),
            ("one URL", Some(describe_worst_case(&self.policy))),
            ("later", self.later.as_ref().map(|later| describe_retries(&later.retry))),
            ("", self.later.as_ref().map(describe_worst_case)),
            ("results", Some(self.describe_results())),
        ] {
            let Some(value) = value else { continue };
            let _ = writeln!(text, "  {name:8} {value}");
        }
        if self.connection.tls.verify == Verify::Off {
            text.push_str("  warning  certificates are not checked (--insecure)\n");
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn describe_input(&self, counted: &Counted) -> String {
        let places: Vec<String> = self
            .inputs
            .iter()
            .map(|input| match input {
                Input::Urls(_) => "the command line".to_owned(),
                Input::File(path) => path.display().to_string(),
                Input::Stdin => "standard input".to_owned(),
            })
            .collect();
        let count = match counted.urls {
            Some(1) => "1 URL".to_owned(),
            Some(urls) => format!("{urls} URLs"),
            None => "as many URLs as come".to_owned(),
        };
        let mut text = format!("{count} from {}", places.join(" and "));
        if counted.done > 0 {
            let _ = write!(text, ", {} recorded already", counted.done);
        }
        if counted.repeated > 0 {
            let _ = write!(text, ", {} repeated lines left out", counted.repeated);
        }
        text
    }

    fn describe_workers(&self) -> String {
        let mut text = match self.concurrency {
            Concurrency::Adaptive => {
                format!("as many as the other side bears, up to {}", self.workers)
            }
            _ => self.workers.to_string(),
        };
        if let Some(rate) = self.rate {
            let _ = write!(text, ", at most {} requests per second together", rate.per_second);
            if let Some(burst) = self.burst {
                let _ = write!(text, " in bursts of {burst}");
            }
        }
        if let Some(rate) = self.host_rate {
            let _ = write!(text, ", at most {} per second to one host", rate.per_second);
            if let Some(burst) = self.host_burst {
                let _ = write!(text, " in bursts of {burst}");
            }
        }
        if let Some(per_host) = self.per_host {
            let _ = write!(text, ", at most {per_host} to one host at a time");
        }
        if self.passes > 1 {
            let _ = write!(text, ", {} passes", self.passes);
        }
        text
    }

    fn describe_hours(&self) -> Option<String> {
        let hours = self.hours.describe(&self.zone);
        let most = self.max_time.map(|most| format!("for {} at most", format_duration(most)));
        match (hours, most) {
            (Some(hours), Some(most)) => Some(format!("{hours}, {most}")),
            (hours, most) => hours.or(most),
        }
    }

    fn describe_proxies(&self) -> String {
        let (pool, rotate) = match &self.proxies {
            Proxies::Direct => return "none, direct".to_owned(),
            Proxies::Environment(_) => return "those of the environment".to_owned(),
            Proxies::Pool { pool, rotate } => (pool, rotate),
        };
        let mut text = pool.len().to_string();
        if pool.len() > 1 {
            text.push_str(match rotate {
                Rotate::Request => ", another one for every request",
                Rotate::Retry => ", another one on every retry",
                Rotate::Host => ", one per host, another one on every retry",
                Rotate::Random => ", at random",
            });
        }
        text.push_str(match pool.session_per() {
            Some(SessionPer::Worker) => ", a session for each worker",
            Some(SessionPer::Url) => ", a session for each URL",
            Some(SessionPer::Request) => ", a session for each request",
            _ => "",
        });
        match (&self.exit_check, self.exit_sample) {
            (Some(_), Some(every)) => {
                let _ = write!(text, "; exits checked now and after every {every} URLs");
            }
            (Some(_), None) => text.push_str("; exits checked now"),
            (None, _) => {}
        }
        text
    }

    fn describe_results(&self) -> String {
        let mut text = match &self.output {
            None => "on standard output".to_owned(),
            Some(path) if self.resume => format!("added to {}", path.display()),
            Some(path) => format!("in {}", path.display()),
        };
        if let Some(folder) = &self.bodies {
            let _ = write!(text, ", bodies in {}", folder.display());
        }
        if let Some(archive) = &self.archive {
            let _ = write!(text, ", messages in {}", archive.name().display());
        }
        text
    }
}

/// How long one URL can take: what is enforced first, then what the policy comes to.
fn describe_worst_case(policy: &Policy) -> String {
    let worst = format!(
        "policy: formula {}, exact {}, with Retry-After {}",
        bound(&policy.worst.formula()),
        bound(&policy.worst.exact()),
        bound(&policy.worst.with_retry_after()),
    );
    match policy.timeouts.deadline() {
        Some(deadline) => format!("at most {}, enforced; {worst}", format_duration(deadline)),
        None => format!("no deadline; {worst}"),
    }
}

fn bound(bound: &Bound) -> String {
    match bound {
        Bound::At(longest) => format_duration(*longest),
        Bound::Unbounded { because } => format!("unbounded ({because})"),
    }
}
