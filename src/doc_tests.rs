//! The Rust blocks of the documents, compiled and run as doc tests.

#[doc = include_str!("../README.md")]
mod readme {}

#[doc = include_str!("../docs/quickstart.md")]
mod quickstart {}

#[doc = include_str!("../docs/sessions.md")]
mod sessions {}

#[doc = include_str!("../docs/retries.md")]
mod retries {}

#[doc = include_str!("../docs/timeouts.md")]
mod timeouts {}

#[doc = include_str!("../docs/proxies.md")]
mod proxies {}

#[doc = include_str!("../docs/tls.md")]
mod tls {}
#[doc = include_str!("../docs/cookies.md")]
mod cookies {}
#[doc = include_str!("../docs/errors.md")]
mod errors {}
#[doc = include_str!("../docs/downloads.md")]
mod downloads {}
#[doc = include_str!("../docs/credentials.md")]
mod credentials {}
#[doc = include_str!("../docs/batches.md")]
mod batches {}
#[doc = include_str!("../docs/progress.md")]
mod progress {}
#[doc = include_str!("../docs/metrics.md")]
mod metrics {}
#[doc = include_str!("../docs/logging.md")]
mod logging {}
#[doc = include_str!("../docs/from-requests-script.md")]
mod from_requests_script {}
#[cfg(feature = "lab")]
#[doc = include_str!("../docs/warc.md")]
mod warc {}
#[doc = include_str!("../docs/report.md")]
mod report {}
