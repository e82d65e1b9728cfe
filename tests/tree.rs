//! What the package drags along: no async runtime, no newer compiler, no licence that binds.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::process::Command;

use serde_json::Value;

/// Crates that run futures. Crates that merely define them are no concern of ours.
const RUNTIMES: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "async-executor",
    "async-global-executor",
    "futures-executor",
    "pollster",
    "glommio",
    "monoio",
];

/// Licences under which a dependency may come, all of them permissive.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

#[test]
fn no_async_runtime_with_all_features() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        assert!(!RUNTIMES.contains(&name), "{name} runs futures, and is in the tree");
    }
}

#[test]
fn no_dependency_asks_for_a_newer_compiler() {
    let packages = packages();
    let own = packages.iter().find(|package| package["name"] == "longhaul").unwrap();
    let ours = version(own["rust_version"].as_str().unwrap());
    for package in &packages {
        if let Some(theirs) = package["rust_version"].as_str() {
            let (name, number) = (&package["name"], &package["version"]);
            assert!(version(theirs) <= ours, "{name} {number} asks for Rust {theirs}");
        }
    }
}

#[test]
fn every_licence_is_permissive() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(permits(licence), "{name} comes under {licence:?}");
    }
}

#[test]
fn expressions_of_licences() {
    for (expression, wanted) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT", true),
        ("GPL-3.0-only AND MIT", false),
        ("(MIT OR GPL-3.0-only) AND Unicode-3.0", true),
        ("(GPL-2.0-only OR GPL-3.0-only) AND MIT", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0-only", true),
        ("GPL-3.0-only WITH Classpath-exception-2.0", false),
        ("MIT AND GPL-3.0-only OR ISC", true),
        ("", false),
    ] {
        assert_eq!(permits(expression), wanted, "{expression}");
    }
}

/// The packages that this machine compiles, dependencies of the tests included.
fn packages() -> Vec<Value> {
    let host = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let host = String::from_utf8(host).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features", "--locked", "--offline"])
        .args(["--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().clone();
    assert!(packages.len() > 50, "a tree of {} packages", packages.len());
    packages
}

fn version(text: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = text.split('.').map(|number| number.parse().unwrap()).collect();
    numbers.resize(3, 0);
    numbers
}

/// Whether an SPDX expression leaves a way that the list allows.
fn permits(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let permitted = any_of(&words, &mut at);
    permitted && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize) -> bool {
    let mut permitted = all_of(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        permitted |= all_of(words, at);
    }
    permitted
}

fn all_of(words: &[&str], at: &mut usize) -> bool {
    let mut permitted = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        permitted &= one(words, at);
    }
    permitted
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let Some(first) = words.get(*at) else { return false };
    *at += 1;
    if *first == "(" {
        let permitted = any_of(words, at);
        *at += 1;
        return permitted;
    }
    if words.get(*at) == Some(&"WITH") {
        let whole = format!("{first} WITH {}", words.get(*at + 1).copied().unwrap_or_default());
        *at += 2;
        return LICENCES.contains(&whole.as_str());
    }
    LICENCES.contains(first)
}
