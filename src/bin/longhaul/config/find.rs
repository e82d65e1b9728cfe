//! Where `longhaul.toml` is looked for.

use super::variables::{self, Variables};
use crate::args::SettingsArgs;
use crate::usage::UsageError;
use std::io;
use std::path::{Path, PathBuf};

/// What it is called.
const NAME: &str = "longhaul.toml";

/// How files are read; a test has its own.
#[derive(Clone, Copy)]
pub(crate) struct Read<'a>(pub(crate) &'a dyn Fn(&Path) -> io::Result<String>);

/// A file that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// Where.
    pub(super) path: PathBuf,
    /// What it holds.
    pub(super) text: String,
}

/// The first that there is: that of the flag, that of the variable, that of this folder, that of the
/// user. The first two have to be there.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn find(
    settings: &SettingsArgs,
    variables: &Variables,
    read: Read<'_>,
) -> Result<Option<Found>, UsageError> {
    if settings.no_config {
        return Ok(None);
    }
    if let Some(path) = &settings.config {
        return demanded("--config", path, read).map(Some);
    }
    if variables.says_yes(variables::NO_CONFIG)? {
        return Ok(None);
    }
    if let Some(path) = variables.get(variables::CONFIG) {
        return demanded(variables::CONFIG, Path::new(path), read).map(Some);
    }
    for path in [Some(PathBuf::from(NAME)), of_user(variables)].into_iter().flatten() {
        match read.0(&path) {
            Ok(text) => return Ok(Some(Found { path, text })),
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                let text = format!("cannot be read: {error}; mend it, or give --no-config");
                return Err(UsageError::new(path.display().to_string(), text));
            }
        }
    }
    Ok(None)
}

fn demanded(place: &str, path: &Path, read: Read<'_>) -> Result<Found, UsageError> {
    match read.0(path) {
        Ok(text) => Ok(Found { path: path.to_owned(), text }),
        Err(error) => {
            let shown = path.display();
            let text = format!("{shown} cannot be read: {error}; name a file of settings");
            Err(UsageError::new(place, text))
        }
    }
}

/// A part of the way that is no folder is no file either.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// That of the XDG base directories, which asks for a path from the root.
fn of_user(variables: &Variables) -> Option<PathBuf> {
    let absolute =
        |name: &str| variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(variables::XDG_CONFIG_HOME)
        .or_else(|| Some(absolute(variables::HOME)?.join(".config")))?;
    Some(folder.join("longhaul").join(NAME))
}

/// Whether other users of this computer can read a file.
#[cfg(unix)]
pub(super) fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o044 != 0)
}

/// Whether other users of this computer can read a file; nobody has asked here yet.
#[cfg(not(unix))]
pub(super) fn is_readable_by_others(_: &Path) -> bool {
    false
}
