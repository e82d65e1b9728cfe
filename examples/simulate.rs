//! When you want to know what a night will cost before you spend it: the course of a run with
//! faults, calculated on the code that would make it.

use longhaul::policy::format_duration;
use longhaul::workers::simulation::{FaultModel, Latency, Persistence, Simulation, Trouble};
use longhaul::{Session, WorkerPool, secs};
use std::time::Instant;

fn main() -> Result<(), longhaul::Error> {
    let pool = WorkerPool::builder(Session::builder()).workers(24);
    let faults = FaultModel::none()
        .latency(Latency::lognormal(secs(0.8), secs(3.0))?)
        .share(Trouble::Stall, 0.02)
        .persistence(Persistence::Always);
    let t = Instant::now();
    let report = Simulation::of(pool).urls(40_000).hosts(200).faults(faults).seed(1).run()?;
    println!("{:?}", t.elapsed());
    println!("{} {:?}", format_duration(report.run_time), report.classes);
    println!("{report:?}");
    Ok(())
}
