//! The names of results that are spread over several files.
//!
//! The first part has the name that was given, so that a run which stays small has one file of that
//! name: `results.jsonl`, then `results.1.jsonl`, `results.2.jsonl` and so on, the number before what
//! tells the form.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

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

/// The name of a part; 0 is the file itself.
pub(super) fn part(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_path_buf();
    }
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
    let mut numbered: OsString = stem.into();
    numbered.push(format!(".{number}"));
    for end in ends.iter().rev() {
        numbered.push(".");
        numbered.push(end);
    }
    path.with_file_name(numbered)
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
}
