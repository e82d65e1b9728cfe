//! Ctrl-C, and a reader that leaves.

use std::process::{Command, Stdio};

use longhaul::lab::{Origin, Received, Reply};
use longhaul::secs;
use rustix::process::Signal;

use super::job::{Job, Running};
use super::support::nginx::Nginx;
use super::support::squid::{Squid, SquidOptions};

#[test]
fn the_first_signal_finishes_what_flies() {
    let (Some(nginx), Some(squid)) = (Nginx::start(), Squid::start(&SquidOptions::default()))
    else {
        return;
    };
    for signal in [Signal::INT, Signal::TERM] {
        nginx.program().clear_log("access.log");
        // Half a second each.
        let job = Job::new((0..60).map(|page| nginx.url(&format!("/slow/{page}"))));
        let proxy = format!("http://{}", squid.address());
        let flags = ["-w", "6", "-x", &proxy, "--resume"];
        let mut running = job.start(&flags);
        job.wait_for_lines(6);
        running.signal(signal);
        let ended = job.ended(&mut running);
        ended.assert_code(130);
        let message = "longhaul: finishing what is under way; again to cut it short";
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
        let first = job.lines();
        assert!((6..60).contains(&first), "{first}");
        let served = |log: &str| log.matches(" 200 ").count();
        // What flew was finished and recorded, none of it in vain.
        let log = nginx.program().wait_for_log("access.log", |log| served(log) >= first);
        assert_eq!((served(&log), log.lines().count()), (first, first));

        job.run(&flags).assert_code(0);
        assert_eq!(job.all_ok_once().len(), 60);
        let log = nginx.program().wait_for_log("access.log", |log| log.lines().count() >= 60);
        assert_eq!(log.lines().count(), 60);
        println!("{signal:?}: {first} of 60 recorded, the rest by --resume, none twice");
    }
}

#[test]
fn what_waits_does_not_delay_the_end() {
    let busy = |request: &Received| match request.path.as_str() {
        "/good" => Reply::ok("page"),
        _ => Reply::new(503).header("Retry-After", "600"),
    };
    let origin = Origin::builder().handler(busy).start().unwrap();
    let urls: Vec<String> = ["/good", "/1", "/2", "/3"].map(|path| origin.url(path)).into();
    let job = Job::new(&urls);
    let flags = ["--retry-after-max", "700", "--resume"];
    let mut running = job.start(&flags);
    assert!(origin.wait_for_requests(4, secs(30.0)));
    job.wait_for_lines(1);
    running.signal(Signal::INT);
    // It would take ten minutes.
    job.ended(&mut running).assert_code(130);
    let records = job.records();
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0]["url"], urls[0].as_str());
}

#[test]
fn the_second_signal_cuts_what_is_silent() {
    // Nobody answers there: the system completes the handshake, and that is all.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let job = Job::new((0..50).map(|page| format!("http://{address}/{page}")));
    let mut running = job.start(&["-w", "4", "--read-timeout", "600"]);
    let _flying = silent.accept().unwrap();
    running.signal(Signal::INT);
    let said = |message: &str| {
        assert!(super::support::process::eventually(|| job.read("stderr").contains(message)));
    };
    said("again to cut it short");
    running.signal(Signal::INT);
    job.ended(&mut running).assert_code(130);
    said("cutting what is under way");
    assert_eq!(job.read("results.jsonl"), "");
}

#[test]
fn head_takes_what_it_wants() {
    let Some(nginx) = Nginx::start() else { return };
    let job = Job::new((0..2000).map(|page| nginx.url(&format!("/small/{page}"))));
    let mut command = job.command(&["run", "-i", "urls.txt", "-w", "4", "--no-env"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let head = Command::new("head")
        .args(["-n", "1"])
        .stdin(child.stdout.take().unwrap())
        .output()
        .unwrap();
    let mut running = Running::new(child);
    job.ended(&mut running).assert_code(0);
    let line: serde_json::Value = serde_json::from_slice(&head.stdout).unwrap();
    assert_eq!(line["ok"], true);
    let served = nginx.access_log().lines().count();
    assert!(served < 2000, "{served}");
    println!("head -n 1: exit code 0 after {served} requests");
}
