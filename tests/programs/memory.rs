//! What a run holds at once: the same after a hundred thousand URLs as after ten, and no more of an
//! endless input than it can work on.

use std::fs;
use std::io::{self, Write as _};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crossbeam_channel::unbounded;
use longhaul::lab::{Origin, Received, Reply};
use longhaul::secs;

use super::job::{Job, Running};
use super::support::process::eventually;

/// How many URLs the memory of a run is watched over; `LONGHAUL_ITEMS` says it otherwise.
fn items() -> usize {
    std::env::var("LONGHAUL_ITEMS").map_or(40_000, |text| text.parse().expect("LONGHAUL_ITEMS"))
}

/// What is in memory of a process, in KiB.
#[cfg(target_os = "linux")]
fn resident(running: &Running) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Pages of every kind, each with another cookie, and some that have to be asked for again.
fn page(request: &Received) -> Reply {
    let number: usize = request.path.trim_start_matches('/').parse().unwrap();
    let reply = match number % 50 {
        1 => Reply::new(404),
        2 => Reply::new(500),
        3 => Reply::new(302).header("Location", "/0"),
        _ => Reply::ok("page".repeat(200)),
    };
    match number % 5 {
        0 => reply.header("Set-Cookie", format!("c{number}=1")),
        _ => reply,
    }
}

#[cfg(target_os = "linux")]
#[test]
fn c148_the_memory_of_a_run_does_not_grow_with_what_it_has_done() {
    let items = items();
    let origin = Origin::builder().keep(0).handler(page).start().unwrap();
    let job = Job::new([""; 0]);
    let flags = ["-w", "16", "--total", "1", "--backoff-factor", "0", "--slow-lane", "off"];
    let (mut running, input) = job.start_piped_in(&[("MALLOC_ARENA_MAX", "1")], &flags);
    let url = origin.url("");
    // The input stays open, so that the run is there to be looked at when all is done.
    let feeder = thread::spawn(move || {
        let mut input = io::BufWriter::new(input);
        for number in 0..items {
            writeln!(input, "{url}{number}").unwrap();
        }
        input.into_inner().unwrap()
    });
    let mut sizes = Vec::new();
    for percent in [10, 50, 100] {
        // Hundreds of times the ordinary patience would not be too much on a machine that is busy.
        let wanted = items * percent / 100;
        assert!((0..20).any(|_| eventually(|| job.lines() >= wanted)), "{} lines", job.lines());
        sizes.push(resident(&running));
    }
    drop(feeder.join().unwrap());
    assert_eq!(running.wait(), 1);
    println!("{items} URLs: {sizes:?} KiB at 10, 50 and 100 %");
    // For each line the key by which one knows it again, and a little until every thread and every
    // jar has met its most. A record alone would be 500 bytes for each.
    for (from, to, share, little) in [(0, 2, 90, 8 * 1024), (1, 2, 50, 4 * 1024)] {
        let most = sizes[from] + items * share / 100 * 18 / 1024 + little;
        assert!(sizes[to] <= most, "{sizes:?} KiB, of which {most} were all right");
    }
}

/// Jobs that a run of few workers holds at most.
const PERMITS: usize = 1024;
/// What lies between the pipe and the first job: blocks that are read ahead, and those in hand.
const BUFFERS: usize = 160 * 1024;

#[test]
fn c149_of_an_endless_input_no_more_is_read_than_can_be_held() {
    // The origin answers when it is told to.
    let (turn, turns) = unbounded();
    let answer = move |_: &Received| {
        let _turn_or_end = turns.recv();
        Reply::ok("page")
    };
    let origin = Origin::builder().handler(answer).start().unwrap();
    // Gone before the origin, which waits for its answers.
    let turn = turn;
    let (unread, mut input) = io::pipe().unwrap();
    let job = Job::new([""; 0]);
    let mut command =
        job.command(&["run", "-i", "-", "-o", "results.jsonl", "--no-env", "-w", "4"]);
    command.stdin(Stdio::from(unread.try_clone().unwrap()));
    let mut running = Running::new(command.spawn().unwrap());

    let (written, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = {
        let (written, is_over, url) = (Arc::clone(&written), Arc::clone(&is_over), origin.url(""));
        thread::spawn(move || {
            let mut lines = 0;
            while !is_over.load(Ordering::SeqCst) {
                let line = format!("{url}{lines:0900}\n");
                input.write_all(line.as_bytes()).unwrap();
                written.fetch_add(line.len(), Ordering::SeqCst);
                lines += 1;
            }
            // It breaks off within a line, which is one all the same.
            write!(input, "{url}last").unwrap();
            lines + 1
        })
    };
    let line = origin.url("").len() + 901;
    let read = || {
        let written = written.load(Ordering::SeqCst);
        let waits = rustix::io::ioctl_fionread(&unread).unwrap();
        written.saturating_sub(usize::try_from(waits).unwrap())
    };
    let mut most = 0;
    for answered in 0..300 {
        assert!(origin.wait_for_requests(answered + 4, secs(60.0)));
        let (read, held) = (read(), usize::try_from(answered).unwrap() + PERMITS);
        assert!(read <= held * line + BUFFERS, "{} lines after {answered} answers", read / line);
        most = most.max(read / line);
        turn.send(()).unwrap();
    }
    assert!(most >= PERMITS, "only {most} lines were read ahead");
    // The writer waits for a place in the pipe until the rest is answered.
    is_over.store(true, Ordering::SeqCst);
    drop((turn, unread));
    let lines = writer.join().unwrap();
    assert_eq!(running.wait(), 0, "{}", job.read("stderr"));
    let records = job.records();
    assert_eq!(records.len(), lines);
    assert!(records.iter().any(|record| record["url"].as_str().unwrap().ends_with("/last")));
    println!("{most} lines of {line} bytes read while 300 were answered, {lines} in all");
}
