//! Real servers for tests: nginx, lighttpd, squid, tinyproxy, dante, microsocks, stunnel and httpbin on
//! loopback, and Chromium.
//!
//! A client that was only ever tried on servers of its own family is tried on its own mistakes.
//! Each program runs in the foreground on a free port, with its configuration, its logs and its
//! pages in a folder that vanishes with it.
//!
//! A test begins with the program it needs and ends early without it:
//!
//! ```ignore
//! let Some(squid) = Squid::start(&SquidOptions::default()) else { return };
//! ```
//!
//! A program that is not installed is a visible word on stderr and a skipped test, unless
//! `LONGHAUL_REQUIRE_PROGRAMS=1` is set, as `.ci/run` does: then it is a failure.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "shared by several test programs, each of which uses its part and fails by panicking"
)]

pub(crate) mod chromium;
pub(crate) mod crowded;
pub(crate) mod dante;
pub(crate) mod httpbin;
pub(crate) mod lighttpd;
pub(crate) mod lookups;
pub(crate) mod microsocks;
pub(crate) mod nginx;
pub(crate) mod openssl;
pub(crate) mod process;
pub(crate) mod raw;
pub(crate) mod relay;
pub(crate) mod squid;
pub(crate) mod stunnel;
pub(crate) mod terminal;
pub(crate) mod tinyproxy;
pub(crate) mod warcio;

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A user that the proxies of the tests know.
pub(crate) const USER: &str = "lab";

/// The password of [`USER`]; tinyproxy reads no special characters in its configuration.
pub(crate) const PASSWORD: &str = "c0rrect-horse";

/// Where a program is; `None` has been said on stderr.
///
/// # Panics
/// When the program is missing and `LONGHAUL_REQUIRE_PROGRAMS=1` is set.
pub(crate) fn require(name: &str) -> Option<PathBuf> {
    required(name, find(name))
}

/// Where a library is that is loaded into another program; as [`require`].
///
/// # Panics
/// As [`require`].
pub(crate) fn require_library(name: &str) -> Option<PathBuf> {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/lib",
    ];
    let file = folders.iter().map(|folder| Path::new(folder).join(name)).find(|file| file.exists());
    required(name, file)
}

fn required(name: &str, found: Option<PathBuf>) -> Option<PathBuf> {
    if found.is_none() {
        let required = env::var_os("LONGHAUL_REQUIRE_PROGRAMS").is_some_and(|value| value == "1");
        assert!(!required, "{name} is not installed, and LONGHAUL_REQUIRE_PROGRAMS=1 demands it");
        skip(&format!("{name} is not installed"));
    }
    found
}

/// Says why a test does less than it could, past the capture of the test harness.
pub(crate) fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // `eprintln!` would be captured, and nobody would see it.
    let _ = std::io::stderr().write_all(format!("SKIPPED: {why} ({test})\n").as_bytes());
}

/// Looks in `PATH` and where systems keep their daemons.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
