//! WARC files, settled before anything is done.

use crate::args::ArchiveArgs;
use crate::usage::UsageError;
use crate::world::{Kind, World};
use longhaul::batch::BatchBuilder;
use std::path::{Path, PathBuf};

/// Where the messages are kept, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Archive {
    /// `PREFIX.warc.gz`.
    name: PathBuf,
    size: Option<u64>,
    credentials: bool,
}

impl Archive {
    /// Checks what can be known of the name; whether its files are there, the library finds out.
    pub(crate) fn resolve(
        args: &ArchiveArgs,
        bodies: Option<&Path>,
        world: &dyn World,
    ) -> Result<Option<Self>, UsageError> {
        let ArchiveArgs { warc, warc_size, warc_credentials } = args;
        let Some(name) = warc else {
            let alone = match (warc_size, warc_credentials) {
                (Some(_), _) => "--warc-size",
                (None, true) => "--warc-credentials",
                (None, false) => return Ok(None),
            };
            let text = "there are no WARC files; name them with --warc PREFIX.warc.gz";
            return Err(UsageError::new(alone, text));
        };
        if bodies.is_some() {
            let text = "has the bodies too, as they came; leave --bodies out, or --warc";
            return Err(UsageError::new("--warc", text));
        }
        let shown = name.display();
        let is_named = name
            .file_name()
            .and_then(|file| file.to_str()?.strip_suffix(".warc.gz"))
            .is_some_and(|prefix| !prefix.is_empty());
        if !is_named {
            let text = format!(
                "{shown} is no name for WARC files, which are compressed record by record; name \
                 PREFIX.warc.gz"
            );
            return Err(UsageError::new("--warc", text));
        }
        let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder
            && !matches!(world.kind(folder), Ok(Kind::Folder))
        {
            let text = format!("{} is no folder; make it, or name another", folder.display());
            return Err(UsageError::new("--warc", text));
        }
        let (size, credentials) = (*warc_size, *warc_credentials);
        Ok(Some(Self { name: name.clone(), size, credentials }))
    }

    /// `PREFIX.warc.gz`.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    pub(crate) fn apply(&self, builder: BatchBuilder) -> BatchBuilder {
        let builder = builder.warc(&self.name).warc_credentials(self.credentials);
        match self.size {
            Some(bytes) => builder.warc_size(bytes),
            None => builder,
        }
    }
}
