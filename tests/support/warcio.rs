//! warcio, the library and command by which the world reads WARC files.
//!
//! It comes from PyPI and shares the environment of [`httpbin`](super::httpbin).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;

use super::httpbin;

/// An environment that has it.
pub(crate) struct Warcio {
    programs: PathBuf,
}

/// A record as warcio reads it.
#[derive(Debug)]
pub(crate) struct WarcRecord(Value);

impl Warcio {
    /// # Panics
    /// When it is missing and `LONGHAUL_REQUIRE_PROGRAMS=1` is set.
    pub(crate) fn find() -> Option<Self> {
        let programs = httpbin::programs();
        let command = programs.join("warcio");
        super::required("warcio", command.exists().then_some(command))?;
        Some(Self { programs })
    }

    /// Asserts that `warcio check` has nothing to say, and that it has checked a digest of each record.
    pub(crate) fn check(&self, files: &[PathBuf]) {
        let output = self.run("warcio", &["check", "-v"], files);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        let records = text.matches("WARC-Record-ID").count();
        let passed = text.matches("digest pass").count();
        let revisits = text.matches("not checked (revisit)").count();
        assert!(records > 0 && passed + revisits == records, "{text}");
    }

    /// What `warcio index` tells of each record.
    pub(crate) fn index(&self, files: &[PathBuf]) -> Vec<Value> {
        let fields = "offset,length,filename,warc-type,warc-target-uri,http:status";
        let output = self.run("warcio", &["index", "-f", fields], files);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Every record.
    pub(crate) fn read(&self, files: &[PathBuf]) -> Vec<WarcRecord> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/read_warc.py");
        let output = self.run("python", &[script.to_str().unwrap()], files);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| WarcRecord(serde_json::from_str(line).unwrap())).collect()
    }

    fn run(&self, program: &str, arguments: &[&str], files: &[PathBuf]) -> Output {
        Command::new(self.programs.join(program)).args(arguments).args(files).output().unwrap()
    }
}

impl WarcRecord {
    pub(crate) fn kind(&self) -> &str {
        self.0["type"].as_str().unwrap()
    }

    /// A field of the record.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0["fields"][name].as_str()
    }

    pub(crate) fn url(&self) -> &str {
        self.field("WARC-Target-URI").unwrap_or_default()
    }

    pub(crate) fn id(&self) -> &str {
        self.field("WARC-Record-ID").unwrap()
    }

    pub(crate) fn offset(&self) -> u64 {
        self.0["offset"].as_u64().unwrap()
    }

    /// The first line of the message.
    pub(crate) fn line(&self) -> &str {
        self.0["line"].as_str().unwrap_or_default()
    }

    /// A field of the message, whatever its case.
    pub(crate) fn http(&self, name: &str) -> Option<&str> {
        let fields = self.0["http"].as_array()?;
        let field = fields.iter().find(|field| {
            field[0].as_str().is_some_and(|other| other.eq_ignore_ascii_case(name))
        })?;
        field[1].as_str()
    }

    /// What follows the head, as it was sent.
    pub(crate) fn payload(&self) -> Vec<u8> {
        BASE64_STANDARD.decode(self.0["payload"].as_str().unwrap()).unwrap()
    }

    /// The same without chunks and content coding.
    pub(crate) fn content(&self) -> Vec<u8> {
        BASE64_STANDARD.decode(self.0["content"].as_str().unwrap()).unwrap()
    }
}
