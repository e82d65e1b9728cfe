//! Downloads and conditional requests against the ranges, tags and codings of nginx.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use longhaul::error::Fault;
use longhaul::{ErrorKind, Retry, Session, secs};

use crate::support::nginx::{LARGE, Nginx, PAGE};
use crate::support::relay::Relay;
use crate::support::skip;

fn session(retry: Retry) -> Session {
    Session::builder()
        .trust_env(false)
        .retry(retry.backoff_factor(Duration::ZERO))
        .timeout((secs(20.0), secs(20.0)))
        .build()
        .unwrap()
}

fn page(nginx: &Nginx, name: &str) -> PathBuf {
    nginx.program().folder().join("www").join(name)
}

/// An hour ago, so that nobody doubts the date.
fn age(path: &Path) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

fn url(address: SocketAddr, path: &str) -> String {
    format!("http://{address}{path}")
}

#[test]
fn nginx_goes_on_where_a_connection_was_cut() {
    let Some(nginx) = Nginx::start() else { return };
    let large = page(&nginx, "large.html");
    age(&large);
    let wanted = fs::read(&large).unwrap();
    for path in ["/large/1", "/untagged/1"] {
        nginx.program().clear_log("access.log");
        // Within the head, right behind it or nearly so, in the middle, and close to the end.
        let cuts = [100, 400, 1000, 200_000, 700_000];
        let relay = Relay::cutting(nginx.plain(), &cuts);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file.bin");
        let session = session(Retry::long_run().total(10).read(10));
        let done = session.get(url(relay.address(), path)).download(&file).send().unwrap();
        assert_eq!(done.bytes, LARGE as u64);
        assert!(fs::read(&file).unwrap() == wanted, "{path}: another file than the server's");
        assert_eq!(done.attempts.len(), 6);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let log = nginx.program().wait_for_log("access.log", |log| log.lines().count() == 6);
        let partial = log.lines().filter(|line| line.contains("HTTP/1.1\" 206 ")).count();
        // The first two cuts may leave nothing to go on from.
        assert!(partial >= 3, "{log}");
    }
}

#[test]
fn nginx_gives_the_whole_file_where_it_has_changed_or_is_there_already() {
    let Some(nginx) = Nginx::start() else { return };
    let large = page(&nginx, "large.html");
    age(&large);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.bin");
    let session = session(Retry::none());
    let relay = Relay::cutting(nginx.plain(), &[500_000, u64::MAX, 500_000]);
    let target = url(relay.address(), "/large/1");
    let fetch = || session.get(&target).download(&file).send();

    assert_eq!(fetch().unwrap_err().kind(), ErrorKind::IncompleteBody);
    let mut other = fs::read(&large).unwrap();
    other.reverse();
    fs::write(&large, &other).unwrap();
    let done = fetch().unwrap();
    assert_eq!((done.resumed_from, done.bytes), (0, LARGE as u64));
    assert!(fs::read(&file).unwrap() == other);

    // A new session, since the connection of the last one was in order and is not cut.
    let session = self::session(Retry::none());
    let fetch = || session.get(&target).download(&file).send();
    assert_eq!(fetch().unwrap_err().kind(), ErrorKind::IncompleteBody);
    // As if the end of the program had come between the last byte and the name.
    let part = folder.path().join("file.bin.part");
    assert!(part.metadata().unwrap().len() < LARGE as u64);
    fs::write(&part, &other).unwrap();
    let beside = folder.path().join("file.bin.part.json");
    let mut note: serde_json::Value = serde_json::from_slice(&fs::read(&beside).unwrap()).unwrap();
    note["have"] = LARGE.into();
    fs::write(&beside, note.to_string()).unwrap();
    nginx.program().clear_log("access.log");
    let done = fetch().unwrap();
    assert_eq!((done.resumed_from, done.bytes), (LARGE as u64, LARGE as u64));
    assert!(fs::read(&file).unwrap() == other);
    nginx.program().wait_for_log("access.log", |log| log.contains("HTTP/1.1\" 416 "));
}

#[test]
fn nginx_says_304_to_the_validators_of_plain_and_coded_pages() {
    let Some(nginx) = Nginx::start() else { return };
    let session = session(Retry::none());
    for coding in ["gzip", "identity"] {
        age(&page(&nginx, "page.html"));
        let get = || session.get(nginx.url("/page/1")).header("Accept-Encoding", coding);
        let first = get().send().unwrap();
        assert_eq!((first.status(), first.body().len()), (200, PAGE));
        let validators = first.validators();
        let tag = validators.etag().unwrap();
        assert_eq!(tag.starts_with("W/"), coding == "gzip", "{tag}");
        assert_eq!(validators.if_range().is_some(), coding == "identity");
        let second = get().if_changed(&validators).send().unwrap();
        assert!(second.not_modified() && second.body().is_empty(), "{coding}");
        let by_date =
            longhaul::message::Validators::new(None, validators.last_modified().map(str::to_owned));
        assert!(get().if_changed(&by_date).send().unwrap().not_modified(), "{coding}");
        File::options()
            .write(true)
            .open(page(&nginx, "page.html"))
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_760_000_000))
            .unwrap();
        let third = get().if_changed(&validators).send().unwrap();
        assert_eq!((third.status(), third.body().len()), (200, PAGE), "{coding}");
    }
}

/// A file system of a few pages; `None` where it may not be mounted.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "longhaul-test"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            skip("no small file system can be mounted");
            return None;
        }
        Some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_an_error_with_the_path() {
    let (Some(nginx), Some(disk)) = (Nginx::start(), SmallDisk::mount()) else { return };
    let session = session(Retry::long_run());
    let file = disk.0.path().join("file.bin");
    let download = || session.get(nginx.url("/large/1")).download(&file).send().unwrap_err();
    let save = || {
        let response = session.get(nginx.url("/large/1")).stream(true).send().unwrap();
        response.save_to(&file).unwrap_err()
    };
    for error in [save(), download()] {
        assert_eq!((error.kind(), error.fault()), (ErrorKind::Io, Fault::Local), "{error}");
        assert!(error.message().contains("file.bin"), "{error}");
        assert!(error.message().contains("No space left"), "{error}");
        assert!(error.attempts().len() <= 1, "a disk is not retried: {error}");
    }
    // What came is kept for the day when there is room.
    let names: Vec<_> = fs::read_dir(disk.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| name.starts_with("file.bin.part")), "{names:?}");
    assert!(!file.exists());
}
