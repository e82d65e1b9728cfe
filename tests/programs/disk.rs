//! A disk that fills up: a clean stop, and what is on it is true.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crossbeam_channel::unbounded;
use longhaul::lab::{Origin, Received, Reply};
use serde_json::Value;

use super::job::{Job, records};
use super::kill::kills;

/// A small file system of its own, which only root can have; gone when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let options = format!("size={size}");
        if run("mount", &["-t", "tmpfs", "-o", &options, "none"], &at) {
            return Some(Self(at));
        }
        println!("SKIPPED: no tmpfs can be mounted here; root can");
        None
    }

    fn grow(&self, size: &str) {
        assert!(run("mount", &["-o", &format!("remount,size={size}")], &self.0));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["-l"], &self.0);
    }
}

fn run(program: &str, arguments: &[&str], at: &Path) -> bool {
    Command::new(program).args(arguments).arg(at).output().is_ok_and(|out| out.status.success())
}

/// The records in a results file, whatever its form.
fn recorded(path: &Path) -> Vec<Value> {
    let mut bytes = fs::read(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "zst") {
        bytes = zstd::decode_all(bytes.as_slice()).unwrap();
    }
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "a torn line");
    records(&text)
}

fn urls(records: &[Value]) -> HashSet<String> {
    let urls: HashSet<_> =
        records.iter().map(|record| record["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(urls.len(), records.len(), "a URL stands there twice");
    urls
}

#[test]
fn a_full_disk_stops_the_run_and_with_space_it_goes_on() {
    let (asked, paths) = unbounded();
    let page = move |request: &Received| {
        asked.send(request.path.clone()).unwrap();
        Reply::ok(request.path.repeat(400))
    };
    let origin = Origin::builder().handler(page).start().unwrap();
    let pages: Vec<_> = (0..2000).map(|page| origin.url(&format!("/{page}"))).collect();
    // The results fill it, compressed ones do, bodies do, and WARC files do.
    for (name, size, count, more) in [
        ("disk/results.jsonl", "512k", 2000, &[][..]),
        ("disk/results.jsonl.zst", "64k", 2000, &[]),
        ("results.jsonl", "512k", 2000, &["--bodies", "disk/bodies"]),
        ("results.jsonl", "256k", 400, &["--warc", "disk/p.warc.gz", "--warc-size", "100k"]),
    ] {
        let all = &pages[..count];
        let job = Job::new(all);
        let Some(disk) = Disk::mount(job.path("disk"), size) else { return };
        let mut flags =
            vec!["run", "-i", "urls.txt", "-o", name, "--resume", "--no-env", "-w", "8"];
        flags.extend(more);
        let ended = job.end(job.command(&flags));
        ended.assert_code(3);
        for part in ["cannot be written: ", "No space left", "free some space and resume"] {
            assert!(ended.stderr.contains(part), "{name}: {}", ended.stderr);
        }
        let first = recorded(&job.path(name));
        let before = urls(&first);
        assert!((1..count).contains(&before.len()), "{name}: {}", before.len());
        let whole = |records: &[Value]| {
            for file in records.iter().filter_map(|record| record["body_file"].as_str()) {
                let body = fs::read(job.path("disk/bodies").join(file)).unwrap();
                assert!(body.starts_with(b"/") && body.len().is_multiple_of(400), "{file} is torn");
            }
            for record in records.iter().filter(|record| record["warc_file"].is_string()) {
                let file = fs::read(job.path("disk").join(record["warc_file"].as_str().unwrap()));
                let from = usize::try_from(record["warc_offset"].as_u64().unwrap()).unwrap();
                let file = file.unwrap();
                let mut member = flate2::bufread::MultiGzDecoder::new(&file[from..]);
                let copied = std::io::copy(&mut member, &mut std::io::sink());
                assert!(copied.is_ok(), "{record} is torn");
            }
        };
        whole(&first);
        paths.try_iter().for_each(drop);

        disk.grow("64m");
        job.end(job.command(&flags)).assert_code(0);
        let last = recorded(&job.path(name));
        assert_eq!(urls(&last), all.iter().cloned().collect(), "{name}");
        whole(&last);
        let again = paths.try_iter().find(|path| before.contains(&origin.url(path)));
        assert_eq!(again, None, "{name}: recorded, and fetched again");
        println!("{name} on {size}: full after {} records, then complete", before.len());
    }
}

#[test]
fn c152_a_disk_that_fills_up_again_and_again_loses_nothing() {
    let (asked, paths) = unbounded();
    let page = move |request: &Received| {
        asked.send(request.path.clone()).unwrap();
        Reply::ok("page")
    };
    let origin = Origin::builder().handler(page).start().unwrap();
    let all: Vec<_> = (0..2000).map(|page| origin.url(&format!("/{page}"))).collect();
    let job = Job::new(&all);
    let Some(disk) = Disk::mount(job.path("disk"), "16k") else { return };
    let name = "disk/results.jsonl";
    let flags = ["run", "-i", "urls.txt", "-o", name, "--resume", "--no-env", "-w", "8"];
    let times = kills();
    let (mut before, mut filled, mut fetched) = (HashSet::new(), 0, 0);
    for time in 1..=times {
        // 400 bytes a record, in whole pages of memory.
        disk.grow(&format!("{}k", 16 + time * 800 / times / 4 * 4));
        let ended = job.end(job.command(&flags));
        if ended.code == 0 {
            break;
        }
        ended.assert_code(3);
        assert!(ended.stderr.contains("No space left"), "{}", ended.stderr);
        filled += 1;
        let now = urls(&recorded(&job.path(name)));
        assert!(now.is_superset(&before), "something that was recorded is gone");
        let round: Vec<_> = paths.try_iter().collect();
        let again = round.iter().find(|path| before.contains(&origin.url(path)));
        assert_eq!(again, None, "recorded, and fetched again");
        fetched += round.len();
        before = now;
    }
    disk.grow("64m");
    job.end(job.command(&flags)).assert_code(0);
    fetched += paths.try_iter().count();
    let last = recorded(&job.path(name));
    assert_eq!(urls(&last), all.into_iter().collect());
    assert!(last.iter().all(|record| record["ok"] == true));
    assert!(filled >= times / 2, "too few records to fill it: {filled} times");
    println!("full {filled} times, then complete; {} URLs fetched again", fetched - 2000);
}
