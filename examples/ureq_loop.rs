//! The yardstick of `benches/side_by_side.py`: threads with a ureq agent each and nothing else, no
//! retries, no records. You want it to see what longhaul costs on top of its engine.

use std::sync::atomic::{AtomicUsize, Ordering};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(workers)) = (args.next(), args.next()) else {
        return Err("usage: ureq_loop FILE WORKERS".into());
    };
    let text = std::fs::read_to_string(file)?;
    let urls: Vec<&str> = text.lines().collect();
    let next = AtomicUsize::new(0);
    let good = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..workers.parse::<usize>().unwrap_or(24) {
            scope.spawn(|| {
                let agent = ureq::Agent::new_with_defaults();
                while let Some(url) = urls.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let page = agent.get(*url).call().and_then(|mut r| r.body_mut().read_to_vec());
                    good.fetch_add(usize::from(page.is_ok()), Ordering::Relaxed);
                }
            });
        }
    });
    if good.into_inner() == urls.len() { Ok(()) } else { Err("not every page came".into()) }
}
