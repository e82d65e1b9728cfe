//! Every link of the documents leads somewhere: relative ones to a file of the package, and those with
//! an anchor to a heading that is there.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a document that is not as it should be fails the test"
)]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders that are not the package's own.
const FOREIGN: [&str; 2] = ["target", ".git"];

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documents = documents(root);
    let anchors: HashMap<&PathBuf, HashSet<String>> =
        documents.iter().map(|(path, text)| (path, anchors(text))).collect();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, text) in &documents {
        let shown = path.strip_prefix(root).unwrap().display();
        for link in links(text) {
            // Nothing beyond this machine is asked for in a test.
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (file, anchor) = match link.split_once('#') {
                Some((file, anchor)) => (file, Some(anchor)),
                None => (&*link, None),
            };
            let target = match file {
                "" => path.clone(),
                file => flat(&path.parent().unwrap().join(file)),
            };
            if !target.exists() {
                wrong.push(format!("{shown}: {link} leads to no file"));
            } else if let Some(anchor) = anchor
                && !anchors.get(&target).is_some_and(|anchors| anchors.contains(anchor))
            {
                wrong.push(format!("{shown}: {link} leads to no heading"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 60, "only {seen} links were found");
}

/// A page of `docs` that the README does not lead to is found by nobody.
#[test]
fn the_readme_leads_to_every_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let linked: HashSet<String> = links(&readme).collect();
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let page = format!("docs/{}", entry.unwrap().file_name().to_string_lossy());
        assert!(
            !page.ends_with(".md") || linked.contains(&page),
            "README.md has no link to {page}"
        );
    }
}

/// What the answers and the invariants rest on is there: each name of a test is that of one.
#[test]
fn the_tests_that_the_documents_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src", "tests"].into_iter();
    let sources: String =
        folders.flat_map(|folder| files(&root.join(folder), "rs")).map(|(_, text)| text).collect();
    let is_test = |name: &str| {
        name.matches('_').count() > 2
            && name
                .chars()
                .all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
    };
    for page in ["docs/design.md", "docs/architecture.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let named: Vec<&str> = spans(&text).filter(|name| is_test(name)).collect();
        for name in &named {
            assert!(sources.contains(&format!("fn {name}(")), "{page}: there is no test {name}");
        }
        assert!(named.len() >= 8, "{page}: {named:?}");
    }
}

/// A path of the package that a document names is there.
#[test]
fn the_paths_that_the_documents_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for (document, text) in documents(root) {
        for row in text.lines() {
            // In `src/policy/retry.rs`, `backoff.rs` the second is beside the first.
            let mut folder = None;
            for span in spans(row).filter(|span| !span.contains([' ', '*', '…', '{', '<'])) {
                let of_package = ["src/", "tests/", "benches/", "examples/", "fuzz/", "docs/"];
                let path = if of_package.iter().any(|start| span.starts_with(start)) {
                    root.join(span)
                } else if let Some(folder) = folder.as_deref().filter(|_| span.ends_with(".rs")) {
                    Path::join(folder, span)
                } else {
                    continue;
                };
                seen += 1;
                let shown = document.strip_prefix(root).unwrap().display();
                assert!(path.exists(), "{shown}: there is no {span}");
                folder = path.parent().map(Path::to_owned);
            }
        }
    }
    assert!(seen > 40, "only {seen} paths were found");
}

/// What stands between backticks on one line.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// All documents of the package with their text.
fn documents(root: &Path) -> Vec<(PathBuf, String)> {
    files(root, "md")
}

/// The files below a folder whose names end so, with their text.
fn files(folder: &Path, extension: &str) -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() && !FOREIGN.iter().any(|foreign| name == **foreign) {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push((path.clone(), fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The path without `..`, so that it is the one that its document is known by.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                flat.pop();
            }
            Component::CurDir => {}
            part => flat.push(part),
        }
    }
    flat
}

/// The text without its fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// What stands behind `](`, and in definitions `[name]: target`.
fn links(text: &str) -> impl Iterator<Item = String> {
    let prose: String = prose(text).map(|line| without_code(line) + "\n").collect();
    let inline: Vec<String> = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
        .collect();
    let defined: Vec<String> = prose
        .lines()
        .filter_map(|line| Some(line.strip_prefix('[')?.split_once("]: ")?.1.trim().to_owned()))
        .collect();
    inline.into_iter().chain(defined)
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The anchors that a page has: of each heading its words in lower case, joined by hyphens, without
/// punctuation, and with a number where the same stands there again.
fn anchors(text: &str) -> HashSet<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut found = HashSet::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let words: String = line
            .trim_start_matches('#')
            .trim()
            .chars()
            .filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'))
            .flat_map(char::to_lowercase)
            .map(|one| if one == ' ' { '-' } else { one })
            .collect();
        let before = times.entry(words.clone()).or_default();
        found.insert(match *before {
            0 => words,
            number => format!("{words}-{number}"),
        });
        *before += 1;
    }
    found
}

#[test]
fn anchors_are_made_as_readers_of_the_pages_make_them() {
    let page = "# A page\n## What can be lost?\n## `run` and --flags\n```sh\n# no heading\n```\n## A page\n";
    let wanted = ["a-page", "what-can-be-lost", "run-and---flags", "a-page-1"].map(str::to_owned);
    assert_eq!(anchors(page), HashSet::from(wanted));
    let text = "[a](b.md#c) `[no](x)` [d](e)\n[f]: g\n```\n[no](y)\n```\n";
    assert_eq!(links(text).collect::<Vec<_>>(), ["b.md#c", "e", "g"]);
}
