//! How long each phase took.

use super::line::LineTimings;
use super::report::PhaseTimes;
use super::spread::Spread;

#[derive(Debug, Clone, Default)]
pub(super) struct Phases {
    dns: Spread,
    connect: Spread,
    proxy: Spread,
    tls: Spread,
    first_byte: Spread,
    body: Spread,
    pub(super) attempt: Spread,
    pub(super) url: Spread,
}

impl Phases {
    pub(super) fn add(&mut self, timings: &LineTimings) {
        let LineTimings { dns_ms, connect_ms, proxy_ms, tls_ms, first_byte_ms, total_ms } =
            *timings;
        let body_ms = first_byte_ms.map(|first| total_ms - first);
        for (spread, ms) in [
            (&mut self.dns, dns_ms),
            (&mut self.connect, connect_ms),
            (&mut self.proxy, proxy_ms),
            (&mut self.tls, tls_ms),
            (&mut self.first_byte, first_byte_ms),
            (&mut self.body, body_ms),
        ] {
            if let Some(ms) = ms {
                spread.add(ms);
            }
        }
    }

    pub(super) fn told(&self) -> Vec<PhaseTimes> {
        [
            ("dns", &self.dns),
            ("connect", &self.connect),
            ("proxy", &self.proxy),
            ("tls", &self.tls),
            ("first_byte", &self.first_byte),
            ("body", &self.body),
            ("attempt", &self.attempt),
            ("url", &self.url),
        ]
        .into_iter()
        .filter_map(|(phase, spread)| {
            let (phase, count) = (phase.to_owned(), spread.count());
            Some(PhaseTimes { phase, count, times: spread.percentiles()? })
        })
        .collect()
    }
}
