//! Whether waits cost workers: a list with 3 % of faults, against the least time that it can take.
//! You want it to see what a night loses to silence, throttling and resets.
//!
//! 20 000 pages that take 20 ms each, 24 workers. Of the URLs 2 % are silent when they are first
//! asked, until the read timeout of a second; 0.5 % answer 503 with `Retry-After: 2`, and 0.5 % are
//! reset. The origin is a process of its own. `work_conserved origin` is that alone, for other
//! contestants (`benches/work_conserved.py`).

use longhaul::lab::{Origin, Reply, Script, Step};
use longhaul::time::{Clock, SystemClock};
use longhaul::workers::simulation::{FaultModel, Persistence, Simulation, Trouble};
use longhaul::{Retry, Session, WorkerPool, secs};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Mutex;

const URLS: usize = 20_000;
const WORKERS: usize = 24;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        None => run(),
        Some("origin") => origin(),
        Some(_) => Err("usage: work_conserved [origin]".into()),
    }
}

/// Serves until standard input ends.
fn origin() -> Result<(), Box<dyn std::error::Error>> {
    let asked = Mutex::new(HashSet::new());
    let origin = Origin::builder()
        .keep(0)
        .handler(move |request| {
            let page = Script::new().pause(secs(0.02)).then_reply(Reply::new(200).body("page"));
            let number: usize = request.target.trim_start_matches('/').parse().unwrap_or(0);
            let trouble = match number % 200 {
                0 | 50 | 100 | 150 => Script::new().then(Step::Hold),
                25 => Reply::new(503).header("Retry-After", "2").into(),
                75 => Script::new().rst(),
                _ => return page,
            };
            let is_first = asked.lock().is_ok_and(|mut asked| asked.insert(number));
            if is_first { trouble } else { page }
        })
        .start()?;
    println!("{}", origin.url("/"));
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("origin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut base = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut base)?;
    let base = base.trim_end();

    let session = Session::builder()
        .trust_env(false)
        .retry(Retry::long_run())
        .timeout((secs(5.0), secs(1.0)));
    let pool = WorkerPool::builder(session).workers(WORKERS);
    let faults = FaultModel::none()
        .latency(secs(0.02))
        .share(Trouble::Silence, 0.02)
        .share(Trouble::Throttle(503), 0.005)
        .share(Trouble::Reset, 0.005)
        .persistence(Persistence::Once)
        .retry_after(secs(2.0));
    let ideal = Simulation::of(pool.clone()).urls(URLS).faults(faults).capacity()?;
    let ideal = ideal.run(WORKERS as u64)?.run_time();

    let pool = pool.build()?;
    let began = SystemClock.now();
    let mut good = 0;
    for done in pool.run((0..URLS).map(|number| format!("{base}{number}"))) {
        good += usize::from(done.result.is_ok_and(|response| response.status() == 200));
    }
    let took = SystemClock.now() - began;
    drop(child.stdin.take());
    child.wait()?;
    println!(
        "{good} of {URLS} pages, {} attempts, in {:.2} s; the least is {:.2} s: {:.3} times as long",
        pool.stats().attempts,
        took.as_secs_f64(),
        ideal.as_secs_f64(),
        took.as_secs_f64() / ideal.as_secs_f64(),
    );
    Ok(())
}
