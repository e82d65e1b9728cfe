//! What the library says in its log.

use std::sync::{Mutex, Once};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Book;

impl log::Log for Book {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            LINES.lock().unwrap().push(record.args().to_string());
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
    LINES.lock().unwrap().iter().filter(|line| line.contains(text)).cloned().collect()
}
