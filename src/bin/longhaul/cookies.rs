//! The cookies of a run: where they come from and where they go.

use crate::args::CookieArgs;
use crate::usage::UsageError;
use crate::world::{Kind, World};
use longhaul::session::{CookieCollector, CookieJar, SessionBuilder};
use longhaul::time::{Clock, SystemClock};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Cookies with nothing left to decide.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cookies {
    /// What every identity begins with, and the file that it was read from.
    start: Option<(PathBuf, CookieJar)>,
    /// Where they are written in the end.
    keep: Option<PathBuf>,
}

impl Cookies {
    /// Reads, checks, and refuses.
    ///
    /// # Errors
    /// The first mistake, with place and remedy.
    pub(crate) fn resolve(args: &CookieArgs, world: &dyn World) -> Result<Self, UsageError> {
        let CookieArgs { from, cookie_jar } = args;
        if let Some(path) = cookie_jar {
            can_be_written(path, world)?;
        }
        // The first of many runs with one file finds none yet.
        let is_first = |path: &Path| {
            let kind = world.kind(path).map_err(|error| error.kind());
            cookie_jar.as_deref() == Some(path) && kind == Err(io::ErrorKind::NotFound)
        };
        let start = match from {
            Some(path) if is_first(path) => Some((path.clone(), CookieJar::new())),
            Some(path) => Some((path.clone(), read(path, world)?)),
            None => None,
        };
        Ok(Self { start, keep: cookie_jar.clone() })
    }

    /// The recipe with the cookies to begin with, and who gathers those of the end.
    pub(crate) fn apply(&self, recipe: SessionBuilder) -> (SessionBuilder, CookieCollector) {
        let collector = CookieCollector::new();
        let recipe = match &self.start {
            Some((_, jar)) => recipe.cookies(jar.clone()),
            None => recipe,
        };
        let recipe = match &self.keep {
            Some(_) => recipe.cookie_collector(&collector),
            None => recipe,
        };
        (recipe, collector)
    }

    /// Writes what was gathered, where it is wanted.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&self, collector: &CookieCollector) -> Result<(), longhaul::Error> {
        match &self.keep {
            Some(path) => collector.cookies().save(path, SystemClock.wall()),
            None => Ok(()),
        }
    }

    /// The line of the plan; `None` where cookies are nobody's business.
    pub(crate) fn describe(&self) -> Option<String> {
        let mut text = String::new();
        if let Some((path, jar)) = &self.start {
            let _ =
                write!(text, "{} from {}, for every worker and proxy", jar.len(), path.display());
        }
        if let Some(path) = &self.keep {
            let separator = if text.is_empty() { "" } else { "; " };
            let _ = write!(text, "{separator}kept in {} at the end", path.display());
        }
        (!text.is_empty()).then_some(text)
    }
}

fn read(path: &Path, world: &dyn World) -> Result<CookieJar, UsageError> {
    let file = world.read_bytes(path).map_err(|error| {
        let text = format!("{} cannot be read: {error}; name a file of cookies", path.display());
        UsageError::new("--cookies", text)
    })?;
    CookieJar::parse(&file, SystemClock.wall())
        .map_err(|error| UsageError::at(&format!("--cookies {}", path.display()), &error))
}

/// A wrong name is told before the run and not after it.
fn can_be_written(path: &Path, world: &dyn World) -> Result<(), UsageError> {
    let shown = path.display();
    let refused = |text: String| Err(UsageError::new("--cookie-jar", text));
    match world.kind(path) {
        Ok(Kind::File) => Ok(()),
        Ok(Kind::Folder) => refused(format!("{shown} is a folder; name a file in it")),
        Ok(Kind::Other) => refused(format!("{shown} is no regular file; name one, or a new one")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            match folder.map(|folder| (folder, world.kind(folder))) {
                None | Some((_, Ok(Kind::Folder))) => Ok(()),
                Some((folder, _)) => refused(format!(
                    "{} is no folder; make it, or name another file",
                    folder.display()
                )),
            }
        }
        Err(error) => refused(format!("{shown} cannot be used: {error}; name another file")),
    }
}
