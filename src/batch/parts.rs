//! The names of results that are spread over several files.
//!
//! The first part has the name that was given, so that a run which stays small has one file of that
//! name: `results.jsonl`, then `results.1.jsonl`, `results.2.jsonl` and so on, the number before what
//! tells the form.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A number that is further on is none of a part, but a year or a day, say.
const MOST_MISSING: u32 = 1000;

/// The files that hold the results of a run with this output, in order: the file itself, and the parts
/// behind it up to the first number that is missing.
///
/// # Errors
/// Those of looking for a file.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// let results = folder.path().join("results.jsonl");
/// std::fs::write(&results, "")?;
/// std::fs::write(folder.path().join("results.1.jsonl"), "")?;
/// assert_eq!(longhaul::batch::parts_of(&results)?.len(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn parts_of(path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    let path = path.as_ref();
    let mut parts = vec![path.to_path_buf()];
    for number in 1.. {
        let part = part(path, number);
        if !part.try_exists()? {
            break;
        }
        parts.push(part);
    }
    Ok(parts)
}

/// The part that is missing and one behind it that is there; of results whose first `count` are there.
///
/// # Errors
/// Those of reading the folder. One that may not be read is taken to hold nothing more.
pub(super) fn gap_behind(path: &Path, count: u32) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = match fs::read_dir(folder.unwrap_or(Path::new("."))) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut least: Option<u32> = None;
    for entry in entries {
        let number = number_of(path, &entry?.file_name());
        let is_behind = |number: &u32| (count..count.saturating_add(MOST_MISSING)).contains(number);
        if let Some(number) = number.filter(is_behind) {
            least = Some(least.map_or(number, |least| least.min(number)));
        }
    }
    Ok(least.map(|least| (part(path, count), part(path, least))))
}

/// The number of the part of these results that has this name.
fn number_of(path: &Path, name: &OsStr) -> Option<u32> {
    let (stem, end) = stem_and_end(path);
    let rest = name.as_encoded_bytes().strip_prefix(stem.as_encoded_bytes())?;
    let digits = rest.strip_suffix(end.as_encoded_bytes())?.strip_prefix(b".")?;
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (part(path, number).file_name() == Some(name)).then_some(number).filter(|number| *number > 0)
}

/// The name of a part; 0 is the file itself.
pub(super) fn part(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_path_buf();
    }
    let (mut numbered, end) = stem_and_end(path);
    numbered.push(format!(".{number}"));
    numbered.push(end);
    path.with_file_name(numbered)
}

/// The name, up to where the number goes, and behind it.
fn stem_and_end(path: &Path) -> (OsString, OsString) {
    let name = path.file_name().unwrap_or_default();
    let (mut stem, mut ends) = (Path::new(name), Vec::new());
    // Of `results.jsonl.zst` both, and of `a.b.jsonl` one.
    while let (Some(shorter), Some(end)) = (stem.file_stem(), stem.extension()) {
        let packed = ends.is_empty() && end.eq_ignore_ascii_case("zst");
        ends.push(end);
        stem = Path::new(shorter);
        if !packed {
            break;
        }
    }
    let mut behind = OsString::new();
    for end in ends.iter().rev() {
        behind.push(".");
        behind.push(end);
    }
    (stem.into(), behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_stands_before_the_form() {
        for (name, wanted) in [
            ("results.jsonl", "results.2.jsonl"),
            ("a/results.jsonl.zst", "a/results.2.jsonl.zst"),
            ("a.b/run.1.csv", "a.b/run.1.2.csv"),
            ("results", "results.2"),
            (".hidden", ".hidden.2"),
            ("x.zst", "x.2.zst"),
        ] {
            assert_eq!(part(Path::new(name), 2), Path::new(wanted), "{name}");
            assert_eq!(part(Path::new(name), 0), Path::new(name));
        }
    }

    #[test]
    fn a_gap_is_found_by_what_stands_behind_it() {
        for (there, count, wanted) in [
            (&["r.1.jsonl", "r.2.jsonl"][..], 3, None),
            (&["r.2.jsonl", "r.3.jsonl"], 1, Some(("r.1.jsonl", "r.2.jsonl"))),
            (&["r.1.jsonl", "r.7.jsonl"], 2, Some(("r.2.jsonl", "r.7.jsonl"))),
            (&["r.2025.jsonl", "r.02.jsonl", "r.2.csv", "r.2", "r.x.jsonl", "s.2.jsonl"], 1, None),
            (&["r.-2.jsonl", "r.+2.jsonl", "r..jsonl", "r.2.jsonl.zst", "r.0.jsonl"], 1, None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            for name in there {
                fs::write(folder.path().join(name), "").unwrap();
            }
            let wanted = wanted.map(|(missing, behind): (&str, &str)| {
                (folder.path().join(missing), folder.path().join(behind))
            });
            let found = gap_behind(&folder.path().join("r.jsonl"), count).unwrap();
            assert_eq!(found, wanted, "{there:?}");
        }
    }
}
