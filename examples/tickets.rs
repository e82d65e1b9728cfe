//! When you need requests here and there in a program: hand each to the pool, keep its ticket,
//! and ask for the answer when you need it; or give it up.

use longhaul::lab::{Origin, Received, Reply, Script};
use longhaul::{ErrorKind, Retry, Session, WorkerPool, secs};

fn site(request: &Received) -> Script {
    match request.path.as_str() {
        "/silent" => Script::new().hold(),
        path => Reply::ok(path).into(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::builder().handler(site).start()?;
    let recipe = Session::builder().retry(Retry::none()).timeout((secs(1.0), secs(5.0)));
    let cutter = recipe.cutter();
    let pool = WorkerPool::builder(recipe).workers(4).on_abort(move || cutter.cut()).build()?;

    let first = pool.submit(origin.url("/first"));
    let second = pool.submit(origin.url("/second"));
    let never = pool.submit(origin.url("/silent"));

    // In the order in which they are wanted, not in that in which they end.
    let (second, first) = (second.wait(), first.wait());
    println!("{} {}", second.index, second.result?.text()?);
    println!("{} {}", first.index, first.result?.text()?);

    // Not yet; the ticket comes back.
    let never = never.try_wait().err().ok_or("a silent site does not answer")?;
    never.cancel();
    // A cancelled request ends with its attempt; aborting cuts that as well.
    pool.abort();
    let given_up = never.wait().result.map(drop).map_err(|error| error.kind());
    println!("given up: {given_up:?}");
    assert_eq!(given_up, Err(ErrorKind::Cancelled));
    Ok(())
}
