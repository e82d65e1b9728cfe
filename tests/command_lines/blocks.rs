//! The fenced blocks of the documents, the command lines in them, and the output that they show.
//!
//! - A block `sh` holds command lines; a backslash at the end of a line joins it to the next.
//! - In a block `console` (or a `text` with such lines) a command line begins with `$ `, and what
//!   follows it up to the next one is its output.
//! - A block `text` directly below a block `sh` is the output of its last line. Where the output stands
//!   elsewhere, `<!-- output of: LINE -->` above the block says whose it is; `<!-- not compared: WHY -->`
//!   stands above any other one.
//! - A block with `<!-- file: NAME -->` above it is a file that the lines below it find.
//! - `# exit code N` behind a line is the code it ends with, where that is not 0.

use std::fs;
use std::path::{Path, PathBuf};

/// A command line as it stands in a document.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// `docs/cli.md:16`.
    pub(crate) place: String,
    /// What is typed.
    pub(crate) text: String,
    /// What is shown as its output.
    pub(crate) shown: Option<String>,
}

impl Line {
    /// The code that it has to end with.
    pub(crate) fn exit_code(&self) -> i32 {
        let code = self.text.rsplit_once("# exit code ").map(|(_, code)| code.trim());
        code.map_or(0, |code| code.parse().unwrap_or_else(|_| panic!("{}: {code}", self.place)))
    }

    /// The first word that is no variable.
    pub(crate) fn program(&self) -> &str {
        first_program(&self.text)
    }

    /// The programs on both sides of each `|`.
    pub(crate) fn programs(&self) -> Vec<String> {
        // What is quoted may hold anything.
        let bare: String = self.text.split('\'').step_by(2).collect();
        bare.split('|').map(|part| first_program(part).to_owned()).collect()
    }
}

fn first_program(text: &str) -> &str {
    text.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default()
}

/// A fenced block.
#[derive(Debug)]
struct Block {
    /// Of its first line within the fences, from 1.
    number: usize,
    /// `sh` of "```sh".
    language: String,
    text: String,
    /// What a comment above it says of it.
    remark: Option<String>,
    /// Whether only blank lines are between it and the block before.
    follows: bool,
}

/// The root of the package.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `README.md` and everything in `docs`, by its path below the root.
pub(crate) fn documents() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let mut found: Vec<PathBuf> = docs
        .map(|entry| Path::new("docs").join(entry.unwrap().file_name()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    found.sort();
    found.insert(0, PathBuf::from("README.md"));
    found
}

/// The command lines of a document, in order, and what is wrong with its blocks.
pub(crate) fn lines_of(document: &Path) -> (Vec<Line>, Vec<String>) {
    let text = fs::read_to_string(root().join(document)).unwrap();
    lines_in(&document.display().to_string(), &text)
}

fn lines_in(document: &str, text: &str) -> (Vec<Line>, Vec<String>) {
    let blocks = blocks(text);
    let mut found: Vec<Line> = Vec::new();
    let (mut outputs, mut wrong) = (Vec::new(), Vec::new());
    for (place, block) in blocks.iter().enumerate() {
        let at = |offset: usize| format!("{document}:{}", block.number + offset);
        let dialogue = block.text.lines().any(|line| line.starts_with("$ "));
        if let Some(name) = block.remark.as_deref().and_then(|text| text.strip_prefix("file: ")) {
            let text = format!("cat >'{}' <<'END'\n{}END", name.trim(), block.text);
            found.push(Line { place: at(0), text, shown: None });
            continue;
        }
        match &*block.language {
            "console" | "text" if dialogue => found.extend(spoken(&block.text, at)),
            "sh" | "bash" | "shell" => found.extend(typed(&block.text, at)),
            "console" => wrong.push(format!("{}: a block `console` without a line `$ …`", at(0))),
            "text" => match block.remark.as_deref() {
                Some(remark) if remark.starts_with("not compared: ") => {}
                Some(remark) if remark.starts_with("output of: ") => {
                    let line = remark.trim_start_matches("output of: ").trim();
                    outputs.push((at(0), line.to_owned(), block.text.clone()));
                }
                None if block.follows && blocks[place - 1].language == "sh" => {
                    found.last_mut().unwrap().shown = Some(block.text.clone());
                }
                _ => wrong.push(format!(
                    "{}: whose output is this block? Say it above the block with \
                     <!-- output of: LINE -->, <!-- file: NAME --> or <!-- not compared: WHY -->",
                    at(0)
                )),
            },
            _ => {}
        }
    }
    for (place, text, shown) in outputs {
        // Where the line stands in a block too, it is run once.
        match found.iter_mut().find(|line| line.text == text && line.shown.is_none()) {
            Some(line) => line.shown = Some(shown),
            None => found.push(Line { place, text, shown: Some(shown) }),
        }
    }
    (found, wrong)
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    let (mut remark, mut follows) = (None, false);
    for (line, number) in text.lines().zip(1..) {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => {
                found.extend(open.take());
                (remark, follows) = (None, true);
            }
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, Some(language)) => {
                let language = language.split(',').next().unwrap_or_default().to_owned();
                let (remark, number, text) = (remark.take(), number + 1, String::new());
                open = Some(Block { number, language, text, remark, follows });
            }
            (None, None) if line.is_empty() => {}
            (None, None) => {
                let comment = line.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
                remark = comment.map(|comment| comment.trim().to_owned());
                follows = false;
            }
        }
    }
    assert!(open.is_none(), "a block is not closed: {open:?}");
    found
}

/// The lines of a block `sh`.
fn typed(text: &str, place: impl Fn(usize) -> String) -> Vec<Line> {
    let mut found: Vec<Line> = Vec::new();
    let mut goes_on = false;
    for (offset, line) in text.lines().enumerate() {
        let (part, joined) = match line.strip_suffix('\\') {
            Some(part) => (part.trim_end(), true),
            None => (line.trim_end(), false),
        };
        match found.last_mut() {
            Some(last) if goes_on => last.text.push_str(&format!(" {}", part.trim_start())),
            _ if part.is_empty() || part.starts_with('#') => {}
            _ => found.push(Line { place: place(offset), text: part.to_owned(), shown: None }),
        }
        goes_on = joined;
    }
    found
}

/// The lines of a block `console`, each with its output.
fn spoken(text: &str, place: impl Fn(usize) -> String) -> Vec<Line> {
    let mut found: Vec<Line> = Vec::new();
    for (offset, line) in text.lines().enumerate() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(typed), _) => {
                found.push(Line { place: place(offset), text: typed.to_owned(), shown: None });
            }
            (None, Some(last)) => {
                let shown = last.shown.get_or_insert_default();
                shown.push_str(line);
                shown.push('\n');
            }
            (None, None) => panic!("{}: output of no command line", place(offset)),
        }
    }
    found
}

#[test]
fn lines_and_their_output_are_found() {
    let page = "a `word`\n\n```sh\nlonghaul get a \\\n    -v   # why\n# a remark\nA=b longhaul run # exit \
                code 3\n```\n\n```text\nshown …\n```\n\n<!-- output of: longhaul get a -v   # why \
                -->\n```text\nmore\n```\n\n```console\n$ ls\none\n$ true\n```\n\n```json\n{}\n```\n\n\
                <!-- not compared: a moment -->\n\n```text\na line\n```\n\n\
                <!-- file: a.toml -->\n\n```toml\nb = 1\n```\n";
    let (lines, wrong) = lines_in("p.md", page);
    assert_eq!(wrong, [""; 0]);
    let found: Vec<_> = lines
        .iter()
        .map(|line| (&*line.place, &*line.text, line.shown.as_deref(), line.exit_code()))
        .collect();
    assert_eq!(
        found,
        [
            ("p.md:4", "longhaul get a -v   # why", Some("more\n"), 0),
            ("p.md:7", "A=b longhaul run # exit code 3", Some("shown …\n"), 3),
            ("p.md:20", "ls", Some("one\n"), 0),
            ("p.md:22", "true", None, 0),
            ("p.md:38", "cat >'a.toml' <<'END'\nb = 1\nEND", None, 0),
        ]
    );
    assert_eq!(lines[1].program(), "longhaul");
    let piped =
        Line { text: "A=b printf '| x' | jq '.a | .b' | sort".to_owned(), ..lines[0].clone() };
    assert_eq!(piped.programs(), ["printf", "jq", "sort"]);
}
