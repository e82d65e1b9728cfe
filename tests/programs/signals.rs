//! Ctrl-C, and a reader that leaves.

use std::io::Write as _;
use std::process::{Command, Stdio};

use longhaul::lab::{ClosedPort, Origin, Received, Reply};
use longhaul::secs;
use longhaul::time::{Clock as _, SystemClock};
use rustix::process::Signal;

use super::job::{Job, Running};
use super::support::nginx::Nginx;
use super::support::squid::{Squid, SquidOptions};

#[test]
fn c150_the_first_signal_finishes_what_flies() {
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
fn c150_what_waits_does_not_delay_the_end() {
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
fn c150_the_second_signal_cuts_what_is_silent() {
    // Nobody answers there: the system completes the handshake, and that is all.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let job = Job::new((0..50).map(|page| format!("http://{address}/{page}")));
    let mut running = job.start(&["-w", "4", "--read-timeout", "600"]);
    let _flying = silent.accept().unwrap();
    running.signal(Signal::INT);
    job.wait_for_words("again to cut it short");
    running.signal(Signal::INT);
    job.ended(&mut running).assert_code(130);
    job.wait_for_words("cutting what is under way");
    assert_eq!(job.read("results.jsonl"), "");
}

#[test]
fn c150_a_full_queue_that_waits_does_not_delay_the_end() {
    let busy = |_: &Received| Reply::new(503).header("Retry-After", "600");
    let origin = Origin::builder().handler(busy).start().unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        // More than are held at once, so that reading the list waits, too.
        let job = Job::new((0..3000).map(|page| origin.url(&format!("/{signal:?}/{page}"))));
        let before = origin.counts().requests;
        let flags = ["-w", "8", "--retry-after-max", "700", "--other", "3", "--json-progress"];
        let mut running = job.start(&flags);
        assert!(origin.wait_for_requests(before + 1, secs(30.0)));
        let waiting = || {
            let text = job.read("stderr");
            let last = text.lines().rfind(|line| line.starts_with('{'));
            last.is_some_and(|line| line.contains("\"waiting\":10"))
        };
        assert!(super::support::process::eventually(waiting), "{}", job.read("stderr"));
        running.signal(signal);
        job.ended(&mut running).assert_code(130);
        assert_eq!(job.read("results.jsonl"), "");
    }
}

#[test]
fn c150_an_empty_queue_does_not_delay_the_end() {
    let origin = Origin::builder().handler(|_: &Received| Reply::ok("page")).start().unwrap();
    let job = Job::new([""; 0]);
    // One URL, and then silence: nobody closes the input.
    let (mut running, mut input) = job.start_piped(&[]);
    writeln!(input, "{}", origin.url("/1")).unwrap();
    job.wait_for_lines(1);
    running.signal(Signal::INT);
    job.ended(&mut running).assert_code(130);
    assert_eq!(job.records().len(), 1);
    drop(input);
}

#[test]
fn c150_the_second_signal_cuts_a_connect() {
    use socket2::{Domain, Socket, Type};
    // A backlog of one, which is full after two: the system answers nobody else.
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    full.listen(0).unwrap();
    let address = full.local_addr().unwrap().as_socket().unwrap();
    let _taken: Vec<_> = (0..4)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _under_way = socket.connect(&address.into());
            socket
        })
        .collect();
    let job = Job::new((0..20).map(|page| format!("http://{address}/{page}")));
    let flags = ["-w", "4", "--connect-timeout", "600", "--json-progress"];
    let mut running = job.start(&flags);
    job.wait_for_words("\"in_flight\":4");
    running.signal(Signal::TERM);
    job.wait_for_words("again to cut it short");
    running.signal(Signal::TERM);
    job.ended(&mut running).assert_code(130);
    assert_eq!(job.read("results.jsonl"), "");
}

#[test]
fn c150_head_takes_what_it_wants() {
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

/// What a run of few URLs may wait for while its input is silent and no worker is busy.
#[test]
fn c150_whatever_is_waited_for_a_signal_ends_it() {
    let answer = |request: &Received| match request.path.as_str() {
        "/busy" => Reply::new(503).header("Retry-After", "600"),
        "/forbidden" => Reply::new(403),
        "/broken" => Reply::new(500),
        _ => Reply::ok("page"),
    };
    let origin = Origin::builder().handler(answer).start().unwrap();
    let closed = ClosedPort::new().unwrap();
    let dead = format!("http://{}", closed.address());
    // The flags, and by which words of the progress one knows that it waits.
    for (paths, flags, words) in [
        (&[][..], &[][..], "\"in_flight\":0"),
        (&["/busy"], &["--retry-after-max", "700"], "\"retry_after\":1"),
        (&["/forbidden"], &["--slow-lane-pause", "500", "--deadline", "none"], "\"refused\":1"),
        (&["/broken"], &["--backoff-factor", "500", "--backoff-max", "500"], "\"backoff\":1"),
        (&["/1", "/2", "/3"], &["--rate", "1/h"], "\"attempts\":1"),
        (&["/1", "/2"], &["-x", &dead, "--connect", "none", "--deadline", "none"], "\"no_proxy\":"),
    ] {
        for signal in [Signal::INT, Signal::TERM] {
            let job = Job::new([""; 0]);
            let flags = [flags, &["-w", "4", "--json-progress"]].concat();
            let (mut running, mut input) = job.start_piped(&flags);
            for path in paths {
                writeln!(input, "{}", origin.url(path)).unwrap();
            }
            job.wait_for_words(words);
            running.signal(signal);
            let ended = job.ended(&mut running);
            assert_eq!(ended.code, 130, "{words}: {}", ended.stderr);
            // Each record there is, is whole.
            assert!(job.records().len() < 2, "{words}");
            drop(input);
        }
    }
}

#[test]
fn c150_however_many_signals_come_at_once_no_line_is_torn() {
    let origin = Origin::builder().handler(|_: &Received| Reply::ok("page")).start().unwrap();
    let job = Job::new((0..3000).map(|page| origin.url(&format!("/{page}"))));
    let mut running = job.start(&["-w", "8", "--rate", "500/s"]);
    job.wait_for_lines(20);
    for _ in 0..3 {
        running.signal(Signal::INT);
    }
    assert_eq!(running.wait(), 130);
    let records = job.records();
    assert!((20..3000).contains(&records.len()));
    assert!(records.iter().all(|record| record["ok"] == true));
    job.run(&["--resume", "-w", "8"]).assert_code(0);
    assert_eq!(job.all_ok_once().len(), 3000);
}

#[test]
fn c150_the_third_signal_leaves_even_a_reader_who_stands_still() {
    let origin = Origin::builder().handler(|_: &Received| Reply::ok("page")).start().unwrap();
    let job = Job::new((0..3000).map(|page| origin.url(&format!("/{page}"))));
    let mut command = job.command(&["run", "-i", "urls.txt", "-w", "4", "--no-env"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    // A pipe holds less than the records of all.
    let unread = child.stdout.take().unwrap();
    let mut running = Running::new(child);
    assert!(origin.wait_for_requests(1000, secs(30.0)));
    for words in ["again to cut it short", "again to leave at once"] {
        running.signal(Signal::TERM);
        job.wait_for_words(words);
    }
    running.signal(Signal::TERM);
    assert_eq!(running.wait(), 130);
    drop(unread);
}

#[test]
fn c150_its_time_is_up_while_the_input_is_silent() {
    let answer = |request: &Received| match request.path.as_str() {
        "/busy" => Reply::new(503).header("Retry-After", "600"),
        _ => Reply::ok("page"),
    };
    let origin = Origin::builder().handler(answer).start().unwrap();
    for paths in [&[][..], &["/1"], &["/1", "/busy"]] {
        for flag in ["--stop-at", "--max-time"] {
            let soon = SystemClock.wall() + secs(1.5);
            let soon = jiff::Timestamp::try_from(soon).unwrap().to_string();
            let value = if flag == "--max-time" { "1" } else { &soon };
            let job = Job::new([""; 0]);
            let flags = [flag, value, "--retry-after-max", "700"];
            let (mut running, mut input) = job.start_piped(&flags);
            for path in paths {
                writeln!(input, "{}", origin.url(path)).unwrap();
            }
            let ended = job.ended(&mut running);
            assert_eq!(ended.code, 4, "{flag} {paths:?}: {}", ended.stderr);
            assert!(ended.stderr.contains("stopped: "), "{}", ended.stderr);
            assert_eq!(job.records().len(), paths.len().min(1), "{flag} {paths:?}");
            drop(input);
        }
    }
}

#[test]
fn c150_sigpipe_and_a_reader_who_leaves_end_nothing_that_goes_elsewhere() {
    let origin = Origin::builder().handler(|_: &Received| Reply::ok("page")).start().unwrap();
    let job = Job::new((0..200).map(|page| origin.url(&format!("/{page}"))));
    let mut command = job.over_list(&["-w", "4", "--rate", "400/s", "--json-progress"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // Nobody reads what is said of the run; the records go into their file.
    drop(child.stderr.take());
    let mut running = Running::new(child);
    job.wait_for_lines(10);
    running.signal(Signal::PIPE);
    assert_eq!(running.wait(), 0);
    assert_eq!(job.all_ok_once().len(), 200);
}
