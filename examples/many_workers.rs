//! What thousands of workers cost: threads and memory, before, while and after they all work.
//! You want it before you ask for 3000.
//!
//! The origin is a process of its own. Each connection takes a file; `ulimit -n 8192` before it
//! gives them.

use longhaul::lab::{Origin, Reply, Script};
use longhaul::time::{Clock, SystemClock};
use longhaul::{Session, WorkerPool, secs};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("origin") => origin(),
        Some(workers) => run(workers.parse()?),
        None => run(3000),
    }
}

/// Serves until standard input ends.
fn origin() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::builder()
        .keep(0)
        .max_connections(10_000)
        .handler(|_| Script::new().pause(secs(1.0)).then_reply(Reply::new(200).body("page")))
        .start()?;
    println!("{}", origin.url("/"));
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn run(workers: usize) -> Result<(), Box<dyn std::error::Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("origin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut base = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut base)?;

    tell("before");
    let began = SystemClock.now();
    let pool = WorkerPool::builder(Session::builder().trust_env(false)).workers(workers).build()?;
    println!(
        "{workers} threads were started in {:.0} ms",
        (SystemClock.now() - began).as_secs_f64() * 1e3
    );
    tell("started");
    let (urls, base, mut good) = (5 * workers, base.trim_end(), 0);
    for done in pool.run((0..urls).map(|number| format!("{base}{number}"))) {
        good += usize::from(done.result.is_ok());
        if good == urls / 2 {
            tell("at work");
        }
    }
    tell("done");
    drop(pool);
    tell("ended");
    println!("{good} of {urls} pages in {:.1} s", (SystemClock.now() - began).as_secs_f64());
    drop(child.stdin.take());
    child.wait()?;
    Ok(())
}

/// What Linux says of this process.
fn tell(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let figure = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or("?").trim().to_owned()
    };
    println!("{when:>8}: {} threads, {} resident", figure("Threads:"), figure("VmRSS:"));
}
