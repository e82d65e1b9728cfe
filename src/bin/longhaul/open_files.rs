//! The limit of open files, raised as far as the system lets everybody raise it.
//!
//! The usual soft limit of 1024 is there for programs that cannot count further. A thousand workers
//! with a kept connection each come close to it, and a run that dies of it at night dies of a
//! number that a call could have changed.

/// Raises the soft limit to the hard one; where that fails, the run goes on with what there is.
#[cfg(unix)]
pub(crate) fn allow_all() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            log::debug!(
                target: "longhaul::command",
                "the limit of open files stays as it is: {error}"
            );
        }
    }
}

/// There is no such limit here.
#[cfg(not(unix))]
pub(crate) fn allow_all() {}
