//! When you give a site no more time than you have: connect and read are clocks of their own,
//! neither of which caps the total; the deadline does, over all retries.

use longhaul::lab::{Origin, Received, Script};
use longhaul::policy::WorstCase;
use longhaul::{ErrorKind, Retry, Session, Timeouts, secs};

fn site(request: &Received) -> Script {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    match request.path.as_str() {
        "/silent" => Script::new().hold(),
        // Never silent for long, never done: the read timeout cannot see it.
        _ => Script::send(head).repeat("x", 1000, secs(0.02)),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::builder().handler(site).start()?;
    let timeouts = Timeouts::from((secs(0.5), secs(0.3))).with_deadline(secs(2.0))?;
    let retry = Retry::long_run().backoff_factor(secs(0.01));

    // What the policy alone would allow, and what the deadline makes of it.
    let worst = WorstCase::of(&retry, &timeouts);
    println!(
        "formula {}, exact {}, enforced {:?}",
        worst.formula(),
        worst.exact(),
        worst.enforced()
    );
    assert_eq!(worst.enforced(), Some(secs(2.0)));

    let session = Session::builder().retry(retry).timeout(timeouts).build()?;
    for (path, expected) in [("/silent", ErrorKind::ReadTimeout), ("/drip", ErrorKind::Deadline)] {
        let error = session.get(origin.url(path)).send().err().ok_or("neither can succeed")?;
        println!(
            "{path}: {} in phase {} after {} attempts: {error}",
            error.kind(),
            error.phase(),
            error.attempts().len()
        );
        assert_eq!(error.kind(), expected);
        assert!(error.is_timeout());
    }
    Ok(())
}
