//! When you have a list of proxies of which some are dead: another one for every request and on
//! every retry, the bad ones out of the draw, and a table of how each has done.

use longhaul::lab::{ClosedPort, HttpProxy, Origin, Reply};
use longhaul::proxy::Rotation;
use longhaul::{ProxyPool, Retry, Session, WorkerPool, secs};
use std::collections::HashSet;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::builder().handler(|_| Reply::ok("page")).start()?;
    let proxies: Vec<HttpProxy> = (0..3)
        .map(|_| HttpProxy::builder().elsewhere(origin.address()).start())
        .collect::<Result<_, _>>()?;
    let closed = ClosedPort::new()?;
    let mut list: String = proxies.iter().map(|proxy| proxy.url() + "\n").collect();
    list += &format!("# this one is gone\n{}\n", closed.address());

    let pool = ProxyPool::parse(&list)?.rotation(Rotation::Request).parallel_per_proxy(Some(2));
    let recipe =
        Session::builder().proxies(pool).retry(Retry::long_run().backoff_factor(secs(0.01)));
    let workers = WorkerPool::builder(recipe.clone()).workers(6).build()?;
    let mut used = HashSet::new();
    for done in workers.run((0..60).map(|page| format!("http://site.test/{page}"))) {
        let response = done.result?;
        used.extend(response.proxy().map(str::to_owned));
    }

    for proxy in recipe.proxy_stats() {
        println!("{:<24} {}: {} good, {} bad", proxy.proxy, proxy.state, proxy.good, proxy.bad);
    }
    assert_eq!(used.len(), 3, "every URL came through one of those that live");
    assert_eq!(origin.counts().requests, 60);
    Ok(())
}
