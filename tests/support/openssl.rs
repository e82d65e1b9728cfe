//! `openssl`: certificates and keys as people make them, and the TLS server that comes with it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::process::Program;
use super::require;

/// The command, working in a folder.
pub(crate) struct OpenSsl {
    program: PathBuf,
    folder: PathBuf,
}

impl OpenSsl {
    pub(crate) fn within(folder: &Path) -> Option<Self> {
        Some(Self { program: require("openssl")?, folder: folder.to_owned() })
    }

    /// Runs `openssl` with these words.
    ///
    /// # Panics
    /// Where it fails.
    pub(crate) fn run(&self, words: &str) {
        let output = Command::new(&self.program)
            .args(words.split(' '))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// `s_server` with these words, on the files of the folder; it answers with a page.
    pub(crate) fn serve(&self, words: &str) -> Server {
        let program = Program::start(&self.program, 1, |ground| {
            let words = words.split(' ').map(|word| match word.contains('.') {
                // Its own folder is another.
                true => self.folder.join(word).display().to_string(),
                false => word.to_owned(),
            });
            let accept = format!("127.0.0.1:{}", ground.ports[0]);
            ["s_server", "-www", "-accept", &accept]
                .map(str::to_owned)
                .into_iter()
                .chain(words)
                .collect()
        });
        Server(program)
    }
}

/// A running `openssl s_server`.
pub(crate) struct Server(Program);

impl Server {
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address(0)
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}/", self.address().port())
    }
}
