//! Whether the output of a command is what a document shows.
//!
//! A document shows what came out once. Numbers differ from run to run, so both sides are compared
//! with their numbers masked and their spaces joined; a time of 900 ms that is 1.2 s the next time is
//! the same, too. `…` stands for whatever is in its place: within a line for the rest of a word or of
//! the line, alone on a line for any number of lines. Where nothing varies, the comparison is to the
//! letter.

/// How closely output is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closeness {
    /// To the letter, but for spaces at the ends of lines.
    Letters,
    /// Numbers are masked.
    Shape,
}

/// What is shown and does not stand in the output; `None` where all is well.
pub(crate) fn missing(shown: &str, output: &str, closeness: Closeness) -> Option<String> {
    let normal = |line: &str| match closeness {
        Closeness::Letters => line.trim_end().to_owned(),
        Closeness::Shape => mask(line),
    };
    let output: Vec<String> = output.lines().map(normal).collect();
    let shown: Vec<String> =
        shown.lines().map(normal).filter(|line| !line.is_empty() || !output.is_empty()).collect();
    let mut from = 0;
    for run in shown.split(|line| line.trim() == "…").filter(|run| !run.is_empty()) {
        let starts = from..output.len().saturating_sub(run.len() - 1).max(from);
        let fits = |start: &usize| {
            run.iter().zip(output.iter().skip(*start)).all(|(wanted, line)| fits(wanted, line))
        };
        match starts.into_iter().find(fits) {
            Some(start) => from = start + run.len(),
            None => {
                // The line that stands nowhere says more than the whole run of lines.
                let alone = |wanted: &&String| {
                    !output.iter().skip(from).any(|line| self::fits(wanted, line))
                };
                let line = run.iter().find(alone).cloned();
                return Some(line.unwrap_or_else(|| format!("in this order:\n{}", run.join("\n"))));
            }
        }
    }
    None
}

/// Whether a line is what is wanted, where `…` is anything.
fn fits(wanted: &str, line: &str) -> bool {
    let mut parts = wanted.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(open) = last.replace(part) {
            match rest.split_once(open) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last.trim_end()))
}

/// The line with each number, and each number with a unit of time, as `#`, and with single spaces.
fn mask(line: &str) -> String {
    let mut masked = String::new();
    let mut characters = line.trim_end().chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_ascii_digit() {
            while let Some(next) = characters.peek() {
                if !(next.is_ascii_digit() || matches!(next, '.' | ':')) {
                    break;
                }
                characters.next();
            }
            masked.push('#');
        } else if !(character == '─' && masked.ends_with('─')) {
            masked.push(character);
        }
    }
    let mut words: Vec<String> = Vec::new();
    for word in masked.split_whitespace() {
        let bare = word.trim_end_matches([',', ';', ')', '.']);
        let is_unit = matches!(bare, "ms" | "s" | "min" | "h" | "µs");
        match words.last_mut() {
            // `6 min 5 s` and `365 s` are both a time.
            Some(last) if is_unit && last.ends_with('#') => {
                last.push_str(word.strip_prefix(bare).unwrap_or_default());
            }
            Some(last) if word.trim_end_matches([',', ';', ')', '.']) == "#" && last == "#" => {
                last.push_str(word.strip_prefix('#').unwrap_or_default());
            }
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

#[test]
fn numbers_and_what_is_left_out_do_not_matter() {
    let output =
        "head\n* took 12.5 ms (1 of 2)\n────\nwith Retry-After  6 min 5 s  ok\nend of it\n";
    for (shown, all_there) in [
        ("* took 1.5 s (10 of 20)\n", true),
        ("──────────\nwith Retry-After 365 s ok\n", true),
        ("head\n…\nend of it\n", true),
        ("* took …\n", true),
        ("with … ok\n", true),
        ("with … no\n", false),
        ("end of it\n…\nhead\n", false),
        ("head\nend of it\n", false),
        ("* took long\n", false),
    ] {
        assert_eq!(missing(shown, output, Closeness::Shape).is_none(), all_there, "{shown}");
    }
    assert_eq!(missing("head\n", output, Closeness::Letters), None);
    let wrong = "* took 12.6 ms (1 of 2)\n";
    assert_eq!(missing(wrong, output, Closeness::Letters).as_deref(), Some(wrong.trim_end()));
}
