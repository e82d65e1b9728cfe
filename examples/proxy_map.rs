//! When you send some targets through one proxy, some through another, and some through none: a
//! map by scheme and host, as in requests, and an error instead of a leak for what it leaves out.

use longhaul::lab::{HttpProxy, Origin, Reply, SocksProxy};
use longhaul::{ErrorKind, ProxyMap, Session};

fn main() -> Result<(), longhaul::Error> {
    let origin = Origin::builder().handler(|_| Reply::ok("page")).start()?;
    let address = origin.address();
    let forward = HttpProxy::builder().credentials("ada", "secret").elsewhere(address).start()?;
    let socks = SocksProxy::builder().elsewhere(address).start()?;

    let forward_url = forward.url().replace("http://", "http://ada:secret@");
    let map = ProxyMap::from_pairs([
        // The key names the target; the scheme of the value is how the proxy is spoken to.
        ("http", forward_url.as_str()),
        ("http://archive.test", socks.url("socks5h").as_str()),
        // Empty: direct.
        ("http://127.0.0.1", ""),
    ])?;
    let session =
        Session::builder().trust_env(false).proxies(map).proxies_required(true).build()?;

    for url in ["http://shop.test/", "http://archive.test/", &origin.url("/")] {
        let response = session.get(url).send()?.raise_for_status()?;
        // Shown without the password.
        println!("{url} through {}", response.proxy().unwrap_or("nothing"));
    }
    assert_eq!((forward.counts().requests, socks.socks_counts().tunnels), (1, 1));
    assert_eq!(origin.counts().requests, 3);

    let uncovered = session.get("https://shop.test/").send().map(drop).map_err(|e| e.kind());
    println!("https is not covered: {uncovered:?}");
    assert_eq!(uncovered, Err(ErrorKind::ProxyRequired));
    Ok(())
}
