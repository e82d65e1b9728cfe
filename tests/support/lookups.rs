//! Watching what a program looks up, and names that only one program knows.
//!
//! Whether a name was looked up *here* or by the proxy cannot be seen from outside as long as both
//! are on one machine and would find the same. So `getaddrinfo` is replaced, by preloading, in the
//! proxy, where it knows a name that exists nowhere else, and in the command, where it is watched.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::require;

const SOURCE: &str = include_str!("lookups.c");

/// The replacement, compiled.
pub(crate) struct Lookups {
    folder: TempDir,
}

impl Lookups {
    pub(crate) fn new() -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("longhaul-").tempdir().unwrap();
        // Daemons that were started as root give it up and must still reach their log.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        compile(folder.path(), "lookups", SOURCE)?;
        Some(Self { folder })
    }

    /// The environment in which `who` is watched, and knows `name` as 127.0.0.1.
    pub(crate) fn environment(&self, who: &str, name: Option<&str>) -> Vec<(String, String)> {
        let log = self.folder.path().join(who);
        File::create(&log).unwrap();
        fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
        let object = self.folder.path().join("lookups.so");
        let mut environment = vec![
            ("LD_PRELOAD".to_owned(), object.display().to_string()),
            ("LOOKUPS_LOG".to_owned(), log.display().to_string()),
        ];
        environment.extend(name.map(|name| ("LOOKUPS_KNOWN".to_owned(), name.to_owned())));
        environment
    }

    /// How often `who` has looked this name up.
    pub(crate) fn of(&self, who: &str, name: &str) -> usize {
        self.all(who).iter().filter(|asked| *asked == name).count()
    }

    /// Everything that `who` has looked up, in order.
    pub(crate) fn all(&self, who: &str) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join(who)).unwrap();
        log.lines().map(str::to_owned).collect()
    }
}

/// Compiles a library to be preloaded, `NAME.so` in this folder; `None` without a compiler.
pub(crate) fn compile(folder: &Path, name: &str, source: &str) -> Option<PathBuf> {
    let compiler = require("cc")?;
    let (from, to) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    fs::write(&from, source).unwrap();
    let output = Command::new(compiler)
        .args(["-shared", "-fPIC", "-o"])
        .arg(&to)
        .arg(from)
        .arg("-ldl")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(to)
}
