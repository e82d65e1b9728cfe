//! When you want one page and nothing else: no session, no pool, the defaults of requests with
//! timeouts that requests has not. The site of this example is a server on your own machine.

use longhaul::lab::{Origin, Reply};

fn main() -> Result<(), longhaul::Error> {
    let site = Origin::builder().handler(|_| Reply::ok("hello from the origin")).start()?;

    let response = longhaul::get(site.url("/")).send()?.raise_for_status()?;
    let text = response.text()?;
    println!("{} {} in {:?}: {text}", response.status(), response.url(), response.elapsed());

    assert_eq!(text, "hello from the origin");
    Ok(())
}
