//! What the library says in its log.

use std::sync::{Mutex, Once};
use std::thread::{self, ThreadId};

static LINES: Mutex<Vec<(ThreadId, String)>> = Mutex::new(Vec::new());

struct Book;

impl log::Log for Book {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            LINES.lock().unwrap().push((thread::current().id(), record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

/// From now on warnings are written down.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Book).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
}

/// The warnings so far that hold this text; other tests run at the same time.
pub(crate) fn with(text: &str) -> Vec<String> {
    lines(|_, line| line.contains(text))
}

/// Those of them that this thread gave, and so no other test.
pub(crate) fn here(text: &str) -> Vec<String> {
    lines(|thread, line| thread == thread::current().id() && line.contains(text))
}

fn lines(wanted: impl Fn(ThreadId, &str) -> bool) -> Vec<String> {
    let all = LINES.lock().unwrap();
    all.iter()
        .filter(|(thread, line)| wanted(*thread, line))
        .map(|(_, line)| line.clone())
        .collect()
}
