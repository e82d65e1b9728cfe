//! httpbin, the server that requests is tried on: endpoints that say what they were asked; and requests
//! itself.
//!
//! It comes from PyPI and not from a package of the system, so it stands in a virtual environment:
//! `target/httpbin`, or where `LONGHAUL_HTTPBIN` says. `.ci/run` makes it; by hand it is
//!
//! ```sh
//! python3 -m venv target/httpbin
//! target/httpbin/bin/pip install --no-deps -r tests/support/httpbin.txt
//! ```

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::process::Program;
use super::skip;

/// A running httpbin under gunicorn, with threads.
pub(crate) struct Httpbin {
    program: Program,
}

impl Httpbin {
    /// The server that all tests which run at the same time share; it takes a second to start.
    ///
    /// # Panics
    /// When it is missing and `LONGHAUL_REQUIRE_PROGRAMS=1` is set.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        static RUNNING: Mutex<Weak<Httpbin>> = Mutex::new(Weak::new());
        let gunicorn = programs().join("gunicorn");
        if !gunicorn.exists() {
            let missing = format!("{} is not there", gunicorn.display());
            let required = env::var_os("LONGHAUL_REQUIRE_PROGRAMS").is_some_and(|v| v == "1");
            assert!(!required, "{missing}, and LONGHAUL_REQUIRE_PROGRAMS=1 demands httpbin");
            skip(&format!("no httpbin: {missing}"));
            return None;
        }
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = running.upgrade() {
            return Some(running);
        }
        let started = Arc::new(Self::start(&gunicorn));
        *running = Arc::downgrade(&started);
        Some(started)
    }

    fn start(gunicorn: &Path) -> Self {
        let program = Program::start(gunicorn, 1, |ground| {
            let bind = format!("127.0.0.1:{}", ground.ports[0]);
            let log = ground.place("access.log");
            let arguments = [
                "httpbin:app",
                "--bind",
                &bind,
                "--worker-class",
                "gthread",
                "--threads",
                "16",
                "--graceful-timeout",
                "1",
                "--access-logfile",
                &log,
                "--access-logformat",
                "%(m)s %(U)s %(s)s",
            ];
            arguments.map(str::to_owned).into()
        });
        Self { program }
    }

    /// `http://127.0.0.1:PORT` and a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.program.address(0))
    }

    /// The lines `METHOD PATH STATUS`.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

/// The Python of the environment, where it has this module.
///
/// # Panics
/// When it is missing and `LONGHAUL_REQUIRE_PROGRAMS=1` is set.
pub(crate) fn python(module: &str) -> Option<PathBuf> {
    let python = environment().join("bin/python3");
    let imported = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    let is_there = imported.is_ok_and(|output| output.status.success());
    let required = env::var_os("LONGHAUL_REQUIRE_PROGRAMS").is_some_and(|v| v == "1");
    assert!(is_there || !required, "{} has no {module}", python.display());
    is_there.then_some(python)
}

/// The programs of the environment.
pub(crate) fn programs() -> PathBuf {
    environment().join("bin")
}

/// Where the environment is.
pub(crate) fn environment() -> PathBuf {
    env::var_os("LONGHAUL_HTTPBIN")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/httpbin"), PathBuf::from)
}
