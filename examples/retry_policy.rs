//! When you decide what is worth another attempt: budgets by category, statuses, backoff and
//! Retry-After under urllib3's names. The clock is simulated, so waits of minutes pass at once.

use longhaul::error::{ErrorKind, Fault, Phase};
use longhaul::time::SimClock;
use longhaul::transport::{Play, Script};
use longhaul::{Retry, Session, secs};
use std::sync::Arc;

fn main() -> Result<(), longhaul::Error> {
    let clock = Arc::new(SimClock::default());
    let script = Script::new(
        clock.clone(),
        [
            Play::error(ErrorKind::Connection, Phase::Connect, Fault::Target).after(secs(0.3)),
            Play::status(503).after(secs(0.2)),
            Play::status(429).header("Retry-After", "90").after(secs(0.2)),
            Play::status(200).body("at last").after(secs(0.2)),
        ],
    );
    let retry = Retry::urllib3()
        .total(4)
        .connect(3)
        .read(2)
        .status(3)
        .status_forcelist([429, 500, 502, 503, 504])
        .backoff_factor(secs(0.6))
        .backoff_max(secs(60.0))
        .raise_on_status(false);

    let transport = script.clone();
    let recipe = Session::builder().retry(retry).clock(clock).transport(move || transport.clone());
    println!("whatever happens, it takes at most {}", recipe.worst_case());
    let response = recipe.build()?.get("http://site.test/").send()?;

    for (attempt, number) in response.attempts().iter().zip(1..) {
        let ended = match (&attempt.error, attempt.status) {
            (Some(error), _) => error.kind.requests_name().to_owned(),
            (None, Some(status)) => status.to_string(),
            (None, None) => "nothing".to_owned(),
        };
        println!("attempt {number}: {ended}, then {:?}", attempt.wait);
    }
    println!("{} after {:?}", response.text()?, response.elapsed());
    assert_eq!((response.status(), script.attempts()), (200, 4));
    Ok(())
}
