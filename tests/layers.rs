//! Holds the table of layers: each may use those before it, never those after.
//!
//! The source is read as text, without comments and strings, and every path that starts at
//! `crate` (or climbs there with `super`) is attributed to a layer. Code under `cfg(test)` may
//! also meet the lab, whose servers the other layers are tried on.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The layers in their order; those with the same number are one layer.
const ORDER: &[(&str, usize)] = &[
    ("error", 0),
    ("time", 0),
    ("rng", 0),
    ("policy", 1),
    ("proxy", 2),
    ("message", 3),
    ("transport", 4),
    ("session", 5),
    ("workers", 6),
    ("batch", 7),
    ("queue", 8),
];

/// The lab stands beside the order: nobody but tests uses it, and it uses these only.
const LAB_USES: &[&str] = &["lab", "error", "time"];

/// Outside crates that have their place.
const CRATES: &[(&str, &[&str])] = &[
    ("ureq", &["transport"]),
    ("rustls", &["transport", "lab"]),
    ("webpki_roots", &["transport"]),
    ("webpki", &["transport"]),
    ("rustls_native_certs", &["transport"]),
    ("rcgen", &["lab"]),
    ("cookie_store", &["session"]),
    ("rayon", &["workers"]),
    ("rand", &["rng"]),
    ("redis", &["queue"]),
    ("clap", &["bin"]),
    ("clap_complete", &["bin"]),
    ("clap_mangen", &["bin"]),
    ("toml", &["bin"]),
    ("toml_writer", &["bin"]),
    ("strsim", &["bin"]),
    ("indicatif", &["bin"]),
    ("comfy_table", &["bin"]),
    ("maud", &["bin"]),
    ("plotters", &["bin"]),
    ("signal_hook", &["bin"]),
    ("env_logger", &["bin"]),
    ("tiny_http", &["bin"]),
    ("prometheus", &["bin"]),
];

/// What a pure layer must not contain, and the file that is the exception.
const IMPURE: &[(&str, &str)] = &[
    ("Mutex", ""),
    ("RwLock", ""),
    ("Condvar", ""),
    ("std::thread", ""),
    ("std::fs", ""),
    ("std::io", "proxy/env.rs"),
    ("std::env", "proxy/env.rs"),
    ("TcpStream", ""),
    ("TcpListener", ""),
    ("UdpSocket", ""),
    ("crossbeam_channel", ""),
];

const PURE: &[&str] = &["policy", "proxy"];

#[test]
fn each_layer_uses_only_those_before_it() {
    let sources = sources();
    let root = root_names(&sources);
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| !matches!(source.layer(), "lib" | "bin")) {
        for (path, under_test) in source.paths_from_root() {
            let first = path.split("::").next().unwrap();
            let used = root.get(first).map_or(first, String::as_str);
            if !allowed(source.layer(), used, under_test || source.is_test_file()) {
                wrong.push(format!("{}: {} names crate::{path}", source.name, source.layer()));
            }
        }
    }
    assert!(wrong.is_empty(), "layers point the wrong way:\n{}", wrong.join("\n"));
}

#[test]
fn every_module_of_the_root_has_its_place() {
    for source in sources() {
        let layer = source.layer();
        // The documents as doc tests: text, for which any layer may stand.
        let known = matches!(layer, "lib" | "bin" | "lab" | "doc_tests") || rank(layer).is_some();
        assert!(known, "{} belongs to no layer of the table", source.name);
    }
}

#[test]
fn outside_crates_stay_in_their_layer() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (name, layers) in CRATES {
            if !layers.contains(&source.layer())
                && source.lines_outside_tests().any(|line| names_crate(line, name))
            {
                wrong.push(format!("{}: {name} is for {layers:?}", source.name));
            }
        }
    }
    assert!(wrong.is_empty(), "outside crates in the wrong place:\n{}", wrong.join("\n"));
}

#[test]
fn pure_layers_have_no_lock_thread_or_io() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| PURE.contains(&source.layer())) {
        if source.is_test_file() {
            continue;
        }
        for (word, exception) in IMPURE {
            if source.name != *exception
                && source.lines_outside_tests().any(|line| has_word(line, word))
            {
                wrong.push(format!("{}: {word}", source.name));
            }
        }
    }
    assert!(wrong.is_empty(), "pure layers that are not:\n{}", wrong.join("\n"));
}

#[test]
fn the_command_uses_the_public_crate_only() {
    for source in sources().iter().filter(|source| source.layer() == "bin") {
        for line in &source.lines {
            assert!(
                !line.text.contains("#[path"),
                "{} includes a file of the library by its path",
                source.name
            );
        }
    }
}

/// The table holds only as long as the reader of paths does.
#[test]
fn paths_are_found_wherever_they_hide() {
    let source = Source::parse(
        "message/response.rs".to_owned(),
        r##"
//! crate::comment is none
use crate::error::{Error, ErrorKind};
use crate::{policy::Retry, proxy::{self, ProxyUrl}, time};
use super::body::Body;
use super::super::transport::Engine;
fn f() -> crate::session::Session { "crate::string"; r#"crate::raw"#; '"'; crate::workers::x() }
/* crate::block */ pub(crate) struct S;
macro_rules! m { () => { $crate::batch::Batch } }
#[cfg(test)]
mod tests {
    use super::*;
    use super::super::super::rng::Rng;
    use crate::lab::Origin;
}
fn after() { crate::queue::x() }
"##,
    );
    let found: Vec<_> = source
        .paths_from_root()
        .into_iter()
        .map(|(path, under_test)| (path.split("::").next().unwrap().to_owned(), under_test))
        .collect();
    let wanted = [
        ("error", false),
        ("policy", false),
        ("proxy", false),
        ("time", false),
        ("transport", false),
        ("session", false),
        ("workers", false),
        ("batch", false),
        ("rng", true),
        ("lab", true),
        ("queue", false),
    ];
    assert_eq!(found, wanted.map(|(name, under_test)| (name.to_owned(), under_test)));
}

#[test]
fn the_table_says_what_it_should() {
    for (from, to, under_test, wanted) in [
        ("message", "proxy", false, true),
        ("proxy", "message", false, false),
        ("policy", "proxy", false, false),
        ("time", "error", false, true),
        ("batch", "workers", false, true),
        ("workers", "batch", false, false),
        ("session", "lab", false, false),
        ("session", "lab", true, true),
        ("session", "workers", true, false),
        ("lab", "error", false, true),
        ("lab", "rng", false, false),
        ("lab", "message", false, false),
    ] {
        assert_eq!(allowed(from, to, under_test), wanted, "{from} -> {to}");
    }
}

fn allowed(from: &str, to: &str, under_test: bool) -> bool {
    if from == "lab" {
        return LAB_USES.contains(&to);
    }
    if to == "lab" {
        return under_test;
    }
    match (rank(from), rank(to)) {
        (Some(from), Some(to)) => to <= from,
        _ => false,
    }
}

fn rank(layer: &str) -> Option<usize> {
    ORDER.iter().find(|(name, _)| *name == layer).map(|(_, rank)| *rank)
}

/// Which module the names that `lib.rs` re-exports come from.
fn root_names(sources: &[Source]) -> BTreeMap<String, String> {
    let lib = sources.iter().find(|source| source.layer() == "lib").unwrap();
    let text: String = lib.lines.iter().map(|line| format!("{}\n", line.text)).collect();
    let mut names = BTreeMap::new();
    for statement in text.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap();
        let (module, exported) = statement.split_once("::").unwrap();
        for name in exported.split(|char: char| !char.is_alphanumeric() && char != '_') {
            if !name.is_empty() {
                names.insert(name.to_owned(), module.trim().to_owned());
            }
        }
    }
    assert_eq!(names.get("Error").map(String::as_str), Some("error"));
    names
}

/// A source file without comments and string contents.
struct Source {
    /// Relative to `src`, with slashes.
    name: String,
    lines: Vec<Line>,
}

struct Line {
    text: String,
    /// How many inline modules it stands in.
    modules: usize,
    under_test: bool,
}

fn sources() -> Vec<Source> {
    fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                into.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    files
        .iter()
        .map(|file| {
            let parts: Vec<_> = file
                .strip_prefix(&root)
                .unwrap()
                .iter()
                .map(|part| part.to_str().unwrap())
                .collect();
            Source::parse(parts.join("/"), &fs::read_to_string(file).unwrap())
        })
        .collect()
}

impl Source {
    fn parse(name: String, text: &str) -> Self {
        let mut lines = Vec::new();
        // The depth of braces at which each open inline module began, and whether it is a test's.
        let mut modules: Vec<(usize, bool)> = Vec::new();
        let mut depth = 0;
        let mut test_attribute = false;
        for line in strip(text).lines() {
            let trimmed = line.trim();
            if trimmed.starts_with("#[cfg(") && has_word(trimmed, "test") {
                test_attribute = true;
            }
            let opens_module = (trimmed.starts_with("mod ") || trimmed.contains(" mod "))
                && trimmed.ends_with('{');
            if opens_module {
                modules.push((depth, test_attribute));
            }
            let is_item = !trimmed.is_empty() && !trimmed.starts_with('#');
            // An item other than a module that is a test's only, such as `use`.
            let item_under_test = test_attribute && is_item && !opens_module;
            lines.push(Line {
                text: line.to_owned(),
                modules: modules.len(),
                under_test: item_under_test || modules.iter().any(|(_, test)| *test),
            });
            if is_item {
                test_attribute = false;
            }
            for char in line.chars() {
                match char {
                    '{' => depth += 1,
                    '}' => {
                        depth -= 1;
                        modules.retain(|(began, _)| *began < depth);
                    }
                    _ => {}
                }
            }
        }
        Self { name, lines }
    }

    fn layer(&self) -> &str {
        let first = self.name.split('/').next().unwrap();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    fn is_test_file(&self) -> bool {
        let file = self.name.rsplit('/').next().unwrap();
        self.name.contains("/tests/") || file == "tests.rs" || file.ends_with("_tests.rs")
    }

    fn lines_outside_tests(&self) -> impl Iterator<Item = &str> {
        let skip = self.is_test_file();
        self.lines
            .iter()
            .filter(move |line| !skip && !line.under_test)
            .map(|line| line.text.as_str())
    }

    /// How many modules deep the file is.
    fn depth(&self) -> usize {
        let parts = self.name.split('/').count();
        if self.name.ends_with("/mod.rs") { parts - 1 } else { parts }
    }

    /// Every path from the root of the crate, without `crate::`, and whether a test names it.
    fn paths_from_root(&self) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            // A path or a group may go on over the next lines.
            let tail = |from: usize| {
                let mut text = line.text[from..].to_owned();
                if text.contains('{') {
                    for next in &self.lines[number + 1..] {
                        if balanced(&text) {
                            break;
                        }
                        text.push_str(&next.text);
                    }
                }
                text
            };
            for at in word_starts(&line.text, "crate::") {
                first_names(&tail(at + "crate::".len()), &mut found, line.under_test);
            }
            let mut at = 0;
            while let Some(start) = line.text[at..].find("super::").map(|found| at + found) {
                let mut end = start;
                let mut climbs = 0;
                while line.text[end..].starts_with("super::") {
                    end += "super::".len();
                    climbs += 1;
                }
                if climbs >= self.depth() + line.modules {
                    first_names(&tail(end), &mut found, line.under_test);
                }
                at = end;
            }
        }
        found
    }
}

/// The first name of a path, or of each path of a group.
fn first_names(text: &str, into: &mut Vec<(String, bool)>, under_test: bool) {
    let name = |text: &str| -> String {
        text.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect()
    };
    let Some(group) = text.trim_start().strip_prefix('{') else {
        into.push((name(text), under_test));
        return;
    };
    let mut depth = 0;
    let mut fresh = true;
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            char if fresh && !char.is_whitespace() => {
                into.push((name(&group[at..]), under_test));
                fresh = false;
            }
            _ => {}
        }
    }
}

fn balanced(text: &str) -> bool {
    let mut depth = 0;
    let mut opened = false;
    for char in text.chars() {
        match char {
            '{' => (depth, opened) = (depth + 1, true),
            '}' => depth -= 1,
            ';' if depth == 0 => return true,
            _ => {}
        }
    }
    opened && depth <= 0
}

/// Where `word` starts and does not go on from another name.
fn word_starts(text: &str, word: &str) -> Vec<usize> {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(|at| {
            let before = text[..*at].chars().next_back();
            !before.is_some_and(|char| char.is_alphanumeric() || char == '_')
        })
        .collect()
}

fn has_word(text: &str, word: &str) -> bool {
    word_starts(text, word).into_iter().any(|at| {
        let after = text[at + word.len()..].chars().next();
        !after.is_some_and(|char| char.is_alphanumeric() || char == '_')
    })
}

fn names_crate(line: &str, name: &str) -> bool {
    word_starts(line, &format!("{name}::")).into_iter().any(|at| {
        // `self::rand::` and `crate::rand::` would be our own modules.
        !line[..at].ends_with("::") || line[..at].trim_end() == "use ::"
    })
}

/// The text without comments, and with the contents of strings and characters left out.
fn strip(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let mut out = String::with_capacity(text.len());
    let mut index = 0;
    while index < chars.len() {
        let (char, next) = (at(index), at(index + 1));
        let starts_name = index == 0 || !(at(index - 1).is_alphanumeric() || at(index - 1) == '_');
        let raw = raw_string(&chars, index).filter(|_| starts_name);
        if char == '/' && next == '/' {
            while index < chars.len() && at(index) != '\n' {
                index += 1;
            }
        } else if char == '/' && next == '*' {
            let mut depth = 0;
            loop {
                match (at(index), at(index + 1)) {
                    ('/', '*') => (depth, index) = (depth + 1, index + 2),
                    ('*', '/') => (depth, index) = (depth - 1, index + 2),
                    ('\n', _) => {
                        out.push('\n');
                        index += 1;
                    }
                    _ => index += 1,
                }
                if depth == 0 || index >= chars.len() {
                    break;
                }
            }
        } else if let Some(end) = raw {
            out.extend(chars[index..end].iter().filter(|char| **char == '\n'));
            index = end;
        } else if char == '"' {
            out.push('"');
            index += 1;
            while index < chars.len() && at(index) != '"' {
                if at(index) == '\n' {
                    out.push('\n');
                }
                if at(index) == '\\' {
                    index += 1;
                    if at(index) == '\n' {
                        out.push('\n');
                    }
                }
                index += 1;
            }
            out.push('"');
            index += 1;
        } else if char == '\'' && next == '\\' {
            index += 3;
            while index < chars.len() && at(index) != '\'' {
                index += 1;
            }
            index += 1;
        } else if char == '\'' && at(index + 2) == '\'' {
            index += 3;
        } else {
            out.push(char);
            index += 1;
        }
    }
    out
}

/// The end of a raw string that begins here.
fn raw_string(chars: &[char], start: usize) -> Option<usize> {
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let mut index = start;
    if matches!(at(index), 'b' | 'c') {
        index += 1;
    }
    if at(index) != 'r' {
        return None;
    }
    index += 1;
    let mut hashes = 0;
    while at(index) == '#' {
        (hashes, index) = (hashes + 1, index + 1);
    }
    if at(index) != '"' {
        return None;
    }
    index += 1;
    while index < chars.len() {
        if at(index) == '"' && (1..=hashes).all(|offset| at(index + offset) == '#') {
            return Some(index + 1 + hashes);
        }
        index += 1;
    }
    Some(chars.len())
}
