//! `kill -9` and torn files: nothing is lost, and nothing is there twice.

use std::collections::HashSet;
use std::fs::{self, File};

use crossbeam_channel::{Receiver, unbounded};
use longhaul::lab::{Origin, Received, Reply};
use longhaul::secs;
use rustix::process::Signal;

use super::job::{Job, Running, records};
use super::support::nginx::Nginx;

/// Numbers that look random, and are the same in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        // The multiplier of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Cuts this many bytes off the results; gives the number of records that went with them.
fn cut(job: &Job, bytes: usize) -> usize {
    let before = job.lines();
    let path = job.path("results.jsonl");
    let length = fs::metadata(&path).unwrap().len();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(length.saturating_sub(bytes as u64)).unwrap();
    before - job.lines()
}

/// The URLs that are recorded, torn line aside.
fn recorded(job: &Job) -> HashSet<String> {
    let text = job.read("results.jsonl");
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    records(complete).iter().map(|record| record["url"].as_str().unwrap().to_owned()).collect()
}

/// The URLs that nginx was asked for, in order.
fn fetched(nginx: &Nginx, log: &str) -> Vec<String> {
    log.lines().map(|line| nginx.url(line.split(' ').nth(2).unwrap())).collect()
}

#[test]
fn killed_in_the_middle_again_and_again() {
    let Some(nginx) = Nginx::start() else { return };
    let mut dice = Dice::new(1);
    for round in 1..=3 {
        let job = Job::new((0..2000).map(|page| nginx.url(&format!("/small/{page}"))));
        nginx.program().clear_log("access.log");
        let (mut lost, mut torn) = (0, 0);
        let (mut before, mut logged) = (HashSet::new(), 0);
        let mut flags = vec!["-w", "8", "--rate", "800/s"];
        for until in [300, 700, 1100, 1400, 2000] {
            if until == 2000 {
                job.run(&flags).assert_code(0);
            } else {
                let mut running = job.start(&flags);
                job.wait_for_lines(until + dice.below(100));
                running.kill();
                assert!(job.lines() < 2000, "it was too fast to be killed");
            }
            // Nothing that was recorded is fetched again; what flew when it was killed is.
            let now = recorded(&job);
            let log = nginx.program().wait_for_log("access.log", |log| {
                now.is_subset(&fetched(&nginx, log).into_iter().collect())
            });
            let fetched = fetched(&nginx, &log);
            let again = fetched[logged..].iter().find(|url| before.contains(*url));
            assert_eq!(again, None);
            logged = fetched.len();
            if until < 2000 {
                // What a crash of the machine could leave, on top of what the kill left.
                lost += cut(&job, dice.below(2500));
                torn += usize::from(!job.read("results.jsonl").ends_with('\n'));
                before = recorded(&job);
                flags = vec!["-w", "8", "--rate", "800/s", "--resume"];
            }
        }
        assert_eq!(job.all_ok_once().len(), 2000);
        println!(
            "round {round}: 4 kills, {torn} torn, {lost} records cut off, {} fetched twice",
            logged - 2000
        );
    }
}

#[test]
fn c151_torn_at_any_byte_it_is_whole_again() {
    let Some(nginx) = Nginx::start() else { return };
    let job = Job::new((0..40).map(|page| nginx.url(&format!("/small/{page}"))));
    job.run(&[]).assert_code(0);
    let whole = fs::read(job.path("results.jsonl")).unwrap();
    let mut dice = Dice::new(2);
    let mut positions: Vec<usize> = (0..30).map(|_| dice.below(whole.len())).collect();
    // And the edges: nothing left, one byte, all but the line feed, all.
    positions.extend([0, 1, whole.len() - 1, whole.len()]);
    for position in positions {
        job.write("results.jsonl", &whole[..position]);
        let ended = job.run(&["--resume"]);
        assert_eq!(ended.code, 0, "torn at {position}: {}", ended.stderr);
        assert_eq!(job.all_ok_once().len(), 40, "torn at {position}");
        let kept = whole[..position].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let now = fs::read(job.path("results.jsonl")).unwrap();
        assert!(now.starts_with(&whole[..kept]), "torn at {position}: records were touched");
    }
}

/// A site that tells each path it is asked for.
fn site() -> (Origin, Receiver<String>) {
    let (asked, paths) = unbounded();
    let page = move |request: &Received| {
        asked.send(request.path.clone()).unwrap();
        Reply::ok("page")
    };
    (Origin::builder().handler(page).start().unwrap(), paths)
}

/// Of the moments at which a run is ended.
const SEED: u64 = 3;

/// How often a run of 2000 URLs is ended; `LONGHAUL_KILLS` says it otherwise.
pub(crate) fn kills() -> usize {
    std::env::var("LONGHAUL_KILLS").map_or(50, |text| text.parse().expect("LONGHAUL_KILLS"))
}

/// Flags of a run that so many ends fit into: what goes on between the last request that is counted
/// and the end must be little beside what is left to each.
fn flags(kills: usize) -> [&'static str; 5] {
    match kills {
        ..=50 => ["-w", "8", "--rate", "1000/s", "--resume"],
        _ => ["-w", "2", "--rate", "400/s", "--resume"],
    }
}

/// Begins a run over and over, and ends it after a random number of requests, one at least, so that
/// the list lasts for all of them. `end` is told of the run and the paths of this round so far.
fn interrupted(
    job: &Job,
    paths: &Receiver<String>,
    times: usize,
    mut end: impl FnMut(&mut Running, Vec<String>),
) -> usize {
    let mut dice = Dice::new(SEED);
    for time in 0..times {
        let left = 2000 - recorded(job).len();
        if left < 100 {
            return time;
        }
        // Some more are always fetched before the end comes, which the next ones make up for.
        let most = (2000 / times).min(left / (times - time)).max(1);
        let mut running = job.start(&flags(times));
        let mut asked = Vec::new();
        for _ in 0..1 + dice.below(most) {
            asked.push(paths.recv_timeout(secs(60.0)).expect("it stands still"));
        }
        end(&mut running, asked);
    }
    times
}

#[test]
fn c152_killed_at_any_moment_each_url_is_there_once() {
    let (origin, paths) = site();
    let job = Job::new((0..2000).map(|page| origin.url(&format!("/{page}"))));
    job.write("results.jsonl", "");
    let kills = kills();
    let (mut before, mut again) = (HashSet::new(), Vec::new());
    let ended = interrupted(&job, &paths, kills, |running, mut asked| {
        running.kill();
        asked.extend(paths.try_iter());
        let asked: HashSet<_> = asked.iter().map(|path| origin.url(path)).collect();
        assert_eq!(asked.intersection(&before).next(), None, "recorded, and fetched again");
        before = recorded(&job);
        again.push(asked.difference(&before).count());
    });
    job.run(&flags(kills)).assert_code(0);
    assert_eq!(job.all_ok_once().len(), 2000);
    // Whatever had ended and was not written: never more than a run holds at once.
    let (sum, most) = (again.iter().sum::<usize>(), again.iter().max().copied().unwrap_or(0));
    assert!(most <= 1024, "{most} fetched again after one kill");
    assert!(ended >= kills / 2, "it was too fast: {ended} kills");
    println!("seed {SEED}: {ended} kills, {sum} URLs fetched again, at most {most} after one");
}

#[test]
fn killed_under_zstd_it_loses_no_more_than_a_frame() {
    let (origin, paths) = site();
    let job = Job::new((0..2000).map(|page| origin.url(&format!("/{page}"))));
    let over = ["run", "-i", "urls.txt", "-o", "results.jsonl.zst", "--no-env", "--resume"];
    let flags = [&over[..], &["-w", "8", "--rate", "1500/s"]].concat();
    let mut running = Running::new(job.command(&flags).spawn().unwrap());
    for _ in 0..1700 {
        paths.recv_timeout(secs(60.0)).expect("it stands still");
    }
    running.kill();
    job.end(job.command(&flags)).assert_code(0);
    let fetched = 1700 + paths.try_iter().count();
    // 1000 records in a frame, and what had ended and was not taken.
    assert!(fetched <= 2000 + 1000 + 1024, "{fetched}");
    let packed = fs::read(job.path("results.jsonl.zst")).unwrap();
    job.write("results.jsonl", zstd::decode_all(packed.as_slice()).unwrap());
    assert_eq!(job.all_ok_once().len(), 2000);
    println!("{} of 2000 URLs fetched again", fetched - 2000);
}

#[test]
fn c152_ended_by_sigterm_at_any_moment_nothing_is_fetched_twice() {
    let (origin, paths) = site();
    let job = Job::new((0..2000).map(|page| origin.url(&format!("/{page}"))));
    job.write("results.jsonl", "");
    let kills = kills();
    let mut fetched = 0;
    let ended = interrupted(&job, &paths, kills, |running, asked| {
        running.signal(Signal::TERM);
        let code = running.wait();
        assert_eq!(code, 130, "{}", job.read("stderr"));
        fetched += asked.len() + paths.try_iter().count();
        assert!(fetched <= job.records().len(), "something was finished in vain");
    });
    job.run(&flags(kills)).assert_code(0);
    fetched += paths.try_iter().count();
    assert_eq!((job.all_ok_once().len(), fetched), (2000, 2000));
    assert!(ended >= kills / 2, "it was too fast: {ended} times SIGTERM");
    println!("seed {SEED}: {ended} times SIGTERM, no URL fetched twice");
}
