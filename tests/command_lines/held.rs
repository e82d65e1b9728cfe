//! The lines that are not run, and what holds them instead.
//!
//! A test cannot run the whole of the tests, fetch from a registry, or measure for minutes. Each such
//! line stands here with its reason, and a line that is neither run nor here fails the test. Lines by
//! which cargo builds one target need not: `.ci/run` builds them all. What they name (a test, an
//! example, a feature) has to be there.

use std::fs;
use std::path::Path;

use crate::blocks::{Line, root};

/// What holds a line that is not run.
pub(crate) enum Held {
    /// This function of this file under `tests` runs it.
    By(&'static str, &'static str),
    /// `.ci/run` has it, in these words.
    Ci(&'static str),
    /// Nothing can, for this reason.
    Not(&'static str),
}

/// By the line as it stands in the document, without its remark.
const HELD: &[(&str, Held)] = &[
    ("cargo longhaul demo", Held::By("programs/demo.rs", "in_full")),
    ("cargo test --all-features", Held::Ci("$test_command")),
    ("cargo clippy --all-features --all-targets", Held::Ci("cargo clippy --locked --all-features")),
    ("cargo fmt", Held::Ci("cargo fmt --all --check")),
    (".ci/run", Held::Not("it is the run that this test is a part of")),
    ("cargo install --path . --features cli", Held::Not("it installs for the user who types it")),
    ("cargo install cargo-fuzz", Held::Not("it fetches from a registry")),
    ("cargo fuzz list", Held::Not("cargo-fuzz need not be installed")),
    ("pip install requests", Held::Not("it fetches from a registry")),
    ("python3 benches/side_by_side.py --rounds 5 --requests-urls 2000", Held::Not(MEASURES)),
    ("python3 benches/work_conserved.py", Held::Not(MEASURES)),
    ("target/release/examples/synthetic_results 1000000 > results.jsonl", Held::Not(MEASURES)),
];

const MEASURES: &str = "it measures for minutes, and needs a machine of its own";

/// Whether this line is not to be run: one of the table, or one by which cargo builds a target of this
/// package, which `.ci/run` does with all of them.
pub(crate) fn is_held(line: &Line) -> bool {
    let text = bare(&line.text);
    let targets = ["--test", "--lib", "--example", "--bench", "--bin", "fuzz run"];
    let is_built = line.program() == "cargo" && targets.iter().any(|target| text.contains(target));
    is_built || HELD.iter().any(|(held, _)| *held == text)
}

/// The line without its remark.
fn bare(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim_end()
}

/// Whatever a line of cargo names, and each file of a line of Python, is in the package.
///
/// # Panics
/// Where it is not.
pub(crate) fn assert_names_exist(line: &Line) {
    let place = &line.place;
    let words: Vec<&str> = bare(&line.text).split_whitespace().collect();
    for file in words.iter().filter(|word| word.ends_with(".py")) {
        let text = fs::read_to_string(root().join(file));
        let text = text.unwrap_or_else(|error| panic!("{place}: {file}: {error}"));
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(text.contains(&format!("\"{flag}\"")), "{place}: {file} knows no {flag}");
        }
    }
    if line.program() != "cargo" {
        return;
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let known = |heading: &str, name: &str| {
        manifest.contains(&format!("[[{heading}]]\nname = \"{name}\"\n"))
    };
    let file = |folder: &str, name: &str| {
        let path = root().join(folder);
        path.join(format!("{name}.rs")).is_file() || path.join(name).join("main.rs").is_file()
    };
    for pair in words.windows(2) {
        let (flag, name) = (pair[0], pair[1]);
        let is_there = match flag {
            "--test" => known("test", name) || file("tests", name),
            "--example" => file("examples", name),
            "--bench" => known("bench", name),
            "--bin" => known("bin", name),
            "--features" if !has_what_it_needs(&manifest, &words, name) => false,
            "--features" => name.split(',').all(|name| manifest.contains(&format!("\n{name} = ["))),
            _ => true,
        };
        assert!(is_there, "{place}: there is no {flag} {name}");
    }
    if let Some(place_of) = words.iter().position(|word| *word == "fuzz")
        && words.get(place_of + 1) == Some(&"run")
    {
        let target = words.iter().skip(place_of + 2).find(|word| is_fuzz_target(word));
        assert!(target.is_some(), "{place}: there is no such fuzz target");
    }
    let alias = words.get(1).copied().unwrap_or_default();
    if alias == "longhaul" {
        let aliases = fs::read_to_string(root().join(".cargo/config.toml")).unwrap();
        assert!(aliases.contains("\nlonghaul = \"run "), "{place}: there is no alias {alias}");
    }
}

/// Whether these features are enough for the example that the line names.
fn has_what_it_needs(manifest: &str, words: &[&str], features: &str) -> bool {
    let named = words.windows(2).find(|pair| pair[0] == "--example").map(|pair| pair[1]);
    let Some(example) = named else { return true };
    let heading = format!("[[example]]\nname = \"{example}\"\nrequired-features = [");
    let needed = manifest.split_once(&heading).and_then(|(_, rest)| rest.split_once(']'));
    needed.is_none_or(|(needed, _)| {
        let mut needed = needed.split(',').map(|name| name.trim().trim_matches('"'));
        // The command has the servers of the lab.
        needed.all(|name| features.split(',').any(|has| has == name || has == "cli"))
    })
}

fn is_fuzz_target(word: &str) -> bool {
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    manifest.contains(&format!("name = \"{word}\""))
}

/// What the table refers to is there.
#[test]
fn what_holds_the_other_lines_is_there() {
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    for (line, held) in HELD {
        match held {
            Held::By(file, function) => {
                let path = Path::new("tests").join(file);
                let source = fs::read_to_string(root().join(&path)).unwrap();
                let test = format!("#[test]\nfn {function}()");
                assert!(source.contains(&test), "{line}: {} has no {function}", path.display());
            }
            Held::Ci(words) => assert!(ci.contains(words), "{line}: .ci/run does not say {words}"),
            Held::Not(why) => assert!(!why.is_empty(), "{line}"),
        }
    }
}
