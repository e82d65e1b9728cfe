//! What came of a vector, and the sums over a file.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// One line of a file: what was asked of the real library, and what it answered.
pub(crate) struct Vector {
    pub(crate) id: String,
    pub(crate) given: Value,
    pub(crate) out: Value,
    /// As written, for what [`Value`] loses: the order of the keys of an object.
    pub(crate) line: String,
}

impl Vector {
    pub(crate) fn parse(line: &str) -> Self {
        let mut value: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        Self {
            id: text(&value["id"]).to_owned(),
            given: value["in"].take(),
            out: value["out"].take(),
            line: line.to_owned(),
        }
    }
}

/// The text of a value, or nothing.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What went over the wire: code points up to 0xFF are one byte each.
pub(crate) fn wire(text: &str) -> Vec<u8> {
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    bytes.unwrap_or_else(|_| text.as_bytes().to_vec())
}

/// What came of one vector.
#[derive(Debug)]
pub(crate) enum Verdict {
    Passed,
    /// Another answer, by the difference of this name.
    Aside(&'static str),
    Failed(String),
}

impl Verdict {
    /// The rule counts only where the answers differ; the story is told where no rule does.
    pub(crate) fn new(
        same: bool,
        rule: Option<&'static str>,
        story: impl FnOnce() -> String,
    ) -> Option<Self> {
        Some(match rule {
            _ if same => Self::Passed,
            Some(name) => Self::Aside(name),
            None => Self::Failed(story()),
        })
    }
}

/// The sums of one reading of a file.
pub(crate) struct Tally {
    file: String,
    what: &'static str,
    passed: usize,
    aside: BTreeMap<&'static str, usize>,
    failed: Vec<String>,
}

impl Tally {
    pub(crate) fn new(file: &str, what: &'static str) -> Self {
        let file = file.to_owned();
        Self { file, what, passed: 0, aside: BTreeMap::new(), failed: Vec::new() }
    }

    pub(crate) fn add(&mut self, id: &str, verdict: Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Aside(name) => *self.aside.entry(name).or_default() += 1,
            Verdict::Failed(story) => self.failed.push(format!("{id}: {story}")),
        }
    }

    pub(crate) fn title(&self) -> String {
        match self.what {
            "" => self.file.clone(),
            what => format!("{}, {what}", self.file),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.aside.keys().copied()
    }

    pub(crate) fn failures(&self) -> impl Iterator<Item = &str> {
        self.failed.iter().map(String::as_str)
    }

    pub(crate) fn asked(&self) -> usize {
        self.passed + self.set_aside() + self.failed.len()
    }

    pub(crate) fn passed(&self) -> usize {
        self.passed
    }

    pub(crate) fn set_aside(&self) -> usize {
        self.aside.values().sum()
    }

    /// The names with their numbers, most frequent first.
    pub(crate) fn reasons(&self) -> String {
        let mut reasons: Vec<_> = self.aside.iter().collect();
        reasons.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), **name));
        let reasons: Vec<_> =
            reasons.iter().map(|(name, count)| format!("{name} {count}")).collect();
        reasons.join(", ")
    }

    /// Of a hundred vectors, rounded.
    pub(crate) fn share(&self) -> usize {
        let asked = self.asked().max(1);
        (self.set_aside() * 100 + asked / 2) / asked
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (title, aside, failed) = (self.title(), self.set_aside(), self.failed.len());
        write!(f, "{title}: {} passed, {aside} set aside", self.passed)?;
        if aside > 0 {
            write!(f, " ({} %: {})", self.share(), self.reasons())?;
        }
        write!(f, ", {failed} failed")
    }
}
