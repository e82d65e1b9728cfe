//! What must not be shown, and where it is looked for.

use std::error::Error as _;
use std::fmt::Debug;
use std::sync::{Mutex, Once};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul::Error;

/// User and password as they are typed into a URL, percent-encoded.
pub(crate) const USERINFO: &str = "hus3r:k3y%40sl%2Fsh";
pub(crate) const USER: &str = "hus3r";
pub(crate) const PASSWORD: &str = "k3y@sl/sh";
pub(crate) const TOKEN: &str = "t0k3n.of.a.bearer";
/// The value of a field that the user gave.
pub(crate) const FIELD: &str = "f1eld-of-the-user";

/// What stands in each of them however it is encoded, and Basic credentials in base64.
fn marks() -> Vec<String> {
    let words = ["hus3r", "k3y", "t0k3n", "f1eld"].map(str::to_owned);
    // As bytes, which is how `Debug` shows a `Vec<u8>`.
    let bytes = words
        .iter()
        .map(|word| format!("{:?}", word.as_bytes()).trim_matches(['[', ']']).to_owned());
    let basic = STANDARD.encode(format!("{USER}:{PASSWORD}"));
    bytes.chain(words.clone()).chain([basic.trim_end_matches('=').to_owned()]).collect()
}

#[track_caller]
pub(crate) fn assert_clean(what: &str, text: &str) {
    for mark in marks() {
        assert!(!text.contains(&mark), "{what} shows {mark}: {text}");
    }
}

#[track_caller]
pub(crate) fn assert_hidden(what: &str, value: &impl Debug) {
    assert_clean(what, &format!("{value:?}"));
    assert_clean(what, &format!("{value:#?}"));
}

/// An error, what is behind it, and what it carries.
#[track_caller]
pub(crate) fn assert_silent(what: &str, error: &Error) {
    assert_clean(what, &error.to_string());
    assert_clean(what, error.message());
    assert_clean(what, error.url().unwrap_or_default());
    assert_clean(what, error.proxy().unwrap_or_default());
    assert_hidden(what, error);
    assert_hidden(what, &error.attempts());
    assert_hidden(what, &error.response());
    assert_hidden(what, &error.proxy_reply());
    let mut source = error.source();
    while let Some(cause) = source {
        assert_clean(what, &cause.to_string());
        assert_hidden(what, &cause);
        source = cause.source();
    }
}

static LINES: Mutex<String> = Mutex::new(String::new());

struct Listener;

impl log::Log for Listener {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("{} {}\n", record.target(), record.args());
        LINES.lock().unwrap().push_str(&line);
    }

    fn flush(&self) {}
}

/// Keeps every line of the log from now on, of all tests together.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Listener).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
}

/// What the log has said so far.
pub(crate) fn lines() -> String {
    LINES.lock().unwrap().clone()
}

#[test]
fn the_marks_are_found_in_every_form() {
    for text in [
        format!("http://{USERINFO}@h/"),
        PASSWORD.to_owned(),
        format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}"))),
        format!("{:?}", FIELD.as_bytes()),
        format!("Bearer {TOKEN}"),
    ] {
        assert!(std::panic::catch_unwind(|| assert_clean("it", &text)).is_err(), "{text}");
    }
}
