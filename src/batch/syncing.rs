//! `fsync` beside the writing.
//!
//! A sync takes milliseconds on an idle disk and seconds on a busy one. Whoever waits for it takes no
//! results, and what has ended and is not written would be fetched again after a kill. So it happens
//! on a thread of its own, with a handle of its own, while records go on into the file. That thread
//! is started for the first sync that becomes due; a short run has none.

use super::bodies::is_body;
use super::sink::SinkError;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Something whose content can be made to survive a crash of the machine.
pub trait Durable: Send {
    /// Returns once everything that was written before this call will survive.
    ///
    /// # Errors
    /// Those of the system.
    fn sync(&mut self) -> io::Result<()>;
}

impl Durable for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// What one sync makes durable.
#[derive(Debug)]
pub(super) struct ToSync {
    /// Files that the records name: those first.
    pub(super) bodies: Vec<PathBuf>,
    /// How many records there are up to here.
    pub(super) records: u64,
}

/// Makes batches durable, one after the other.
pub(super) struct Syncing {
    name: String,
    how: How,
    /// Whether one is under way.
    busy: bool,
}

enum How {
    Here(Box<dyn Durable>),
    Beside(Beside),
    /// The thread could not be started, or is gone.
    Broken,
}

struct Beside {
    to_do: Option<Sender<ToSync>>,
    done: Receiver<Result<u64, SinkError>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncing {
    pub(super) fn new(name: &str, handle: Box<dyn Durable>) -> Self {
        Self { name: name.to_owned(), how: How::Here(handle), busy: false }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Makes a batch durable before it returns; the number of its records. None may be under way.
    pub(super) fn now(&mut self, batch: ToSync) -> Result<u64, SinkError> {
        if let How::Here(handle) = &mut self.how {
            return run(&mut **handle, &batch, &self.name);
        }
        self.begin(batch)?;
        Ok(self.ended(true)?.unwrap_or_default())
    }

    /// Begins with a batch. None may be under way.
    pub(super) fn begin(&mut self, batch: ToSync) -> Result<(), SinkError> {
        if let How::Here(_) = self.how {
            let How::Here(handle) = std::mem::replace(&mut self.how, How::Broken) else {
                return Ok(());
            };
            let beside = Beside::start(handle, self.name.clone());
            self.how = How::Beside(beside.map_err(|error| SinkError::of(error, &self.name))?);
        }
        if let How::Beside(Beside { to_do: Some(to_do), .. }) = &self.how
            && to_do.send(batch).is_ok()
        {
            self.busy = true;
            return Ok(());
        }
        Err(self.gone())
    }

    /// What came of the batch that is under way: the number of its records, once it is durable.
    pub(super) fn ended(&mut self, wait: bool) -> Result<Option<u64>, SinkError> {
        if !self.busy {
            return Ok(None);
        }
        let How::Beside(Beside { done, .. }) = &self.how else { return Err(self.gone()) };
        let ended = match wait {
            true => done.recv().map_err(|_| self.gone())?,
            false => match done.try_recv() {
                Ok(ended) => ended,
                Err(error) if error.is_empty() => return Ok(None),
                Err(_) => return Err(self.gone()),
            },
        };
        self.busy = false;
        ended.map(Some)
    }

    fn gone(&self) -> SinkError {
        SinkError::of(io::Error::other("the thread that syncs it has ended"), &self.name)
    }
}

impl Beside {
    fn start(mut handle: Box<dyn Durable>, name: String) -> io::Result<Self> {
        let (to_do, batches) = bounded::<ToSync>(1);
        let (tell, done) = bounded(1);
        let thread =
            std::thread::Builder::new().name("longhaul-sync".to_owned()).spawn(move || {
                for batch in batches {
                    if tell.send(run(&mut *handle, &batch, &name)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self { to_do: Some(to_do), done, thread: Some(thread) })
    }
}

impl Drop for Beside {
    /// The handle keeps the file locked, so it must be gone when the sink is.
    fn drop(&mut self) {
        self.to_do = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn run(handle: &mut dyn Durable, batch: &ToSync, name: &str) -> Result<u64, SinkError> {
    sync_bodies(&batch.bodies)?;
    handle.sync().map_err(|error| SinkError::of(error, name))?;
    Ok(batch.records)
}

/// The files, and then the folders that hold their names.
pub(super) fn sync_bodies(bodies: &[PathBuf]) -> Result<(), SinkError> {
    let mut folders = BTreeSet::new();
    for body in bodies {
        sync_path(body)?;
        folders.extend(folders_of(body));
    }
    if cfg!(unix) {
        folders.into_iter().try_for_each(sync_path)?;
    }
    Ok(())
}

/// The folders that a run may have made an entry in for this file: the one that it is in and, of a
/// body, the one above, too. No others: whoever may write in a folder need not be allowed to read the
/// one that holds it.
fn folders_of(file: &Path) -> impl Iterator<Item = &Path> {
    let levels = if is_body(file) { 2 } else { 1 };
    file.ancestors().skip(1).take(levels).map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    })
}

fn sync_path(path: &Path) -> Result<(), SinkError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| SinkError::of(error, &path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_the_run_writes_in_are_opened() {
        let digest = "0123456789abcdef".repeat(4);
        let (ab, name) = digest.split_at(2);
        let body = |folder: &str| format!("{folder}{ab}/{name}.html");
        for (file, wanted) in [
            ("results.1.jsonl".to_owned(), vec!["."]),
            ("/home/me/x-00000.warc.gz".to_owned(), vec!["/home/me"]),
            ("/x-00000.warc.gz".to_owned(), vec!["/"]),
            ("/home/ab/results.1.jsonl".to_owned(), vec!["/home/ab"]),
            (format!("/home/me/{name}.html"), vec!["/home/me"]),
            (body("/home/me/"), vec!["/home/me/01", "/home/me"]),
            (body("bodies/"), vec!["bodies/01", "bodies"]),
            (body(""), vec!["01", "."]),
        ] {
            let found: Vec<_> = folders_of(Path::new(&file)).collect();
            assert_eq!(found, wanted.into_iter().map(Path::new).collect::<Vec<_>>(), "{file}");
        }
    }

    #[test]
    fn a_file_in_the_current_folder_is_synced() {
        // Where tests run there is one.
        sync_bodies(&[PathBuf::from("Cargo.toml")]).unwrap();
    }
}
