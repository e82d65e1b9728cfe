//! Memory over a hundred thousand identities: one gateway, another user name for each request.
//!
//! Cookies, sockets and TLS tickets belong to an identity, and a gateway makes an identity of each
//! user name. What is kept of them is bounded, so the memory of a run is as flat after the hundred
//! thousandth as after the first thousand:
//!
//! ```sh
//! cargo run --release --features lab --example identities
//! ```
//!
//! The gateway and the site run in a process of their own, so that the figures are the client's.

use longhaul::lab::{Ca, HttpProxy, Origin, Reply};
use longhaul::{ProxyMap, ProxyUrl, Session};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// Identities in all; every tenth visits over TLS, which has the tickets.
const IDENTITIES: u32 = 100_000;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(),
        Some(count) => visit(count.parse()?),
        None => visit(IDENTITIES),
    }
}

fn visit(count: u32) -> Outcome {
    let mut servers = Command::new(std::env::current_exe()?)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(servers.stdout.take().ok_or("no output")?).lines();
    let mut next = || lines.next().ok_or("the servers did not start")?.map_err(Box::from);
    let result = rotate(count, &mut next);
    // They end with their input.
    drop(servers.stdin.take());
    servers.wait()?;
    result
}

fn rotate(
    count: u32,
    next: &mut dyn FnMut() -> Result<String, Box<dyn std::error::Error>>,
) -> Outcome {
    let (gateway, root) = (next()?, next()?);
    let recipe = Session::builder().trust_env(false).extra_roots(root);
    let sockets = recipe.cutter();
    let session = recipe.build()?;
    println!("identities\tresident KiB\tsockets");
    let step = (count / 20).max(1);
    for number in 0..count {
        let user: ProxyUrl = format!("http://user-{number}:p@{gateway}").parse()?;
        let scheme = if number % 10 == 0 { "https" } else { "http" };
        session
            .get(format!("{scheme}://site.test/"))
            .proxies(ProxyMap::all(user))
            .send()?
            .raise_for_status()?;
        if number % step == step - 1 {
            println!("{}\t{}\t{}", number + 1, resident(), sockets.live_sockets());
        }
    }
    Ok(())
}

/// The gateway and the site, until the input ends.
fn serve() -> Outcome {
    let ca = Ca::new()?;
    let root = tempfile::NamedTempFile::new()?;
    ca.write_pem(root.path())?;
    let site = Origin::builder()
        .keep(0)
        .handler(|_| Reply::ok("page").header("Set-Cookie", "visitor=1; Max-Age=86400"));
    let (plain, secure) = (site.clone().start()?, site.tls(&ca).start()?);
    let gateway = HttpProxy::builder()
        .keep(0)
        .name("site.test:80", plain.address())
        .name("site.test:443", secure.address())
        .start()?;
    println!("{}\n{}", gateway.address(), root.path().display());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Resident memory, where the system tells.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or("unknown", |line| line.trim().trim_end_matches(" kB")).to_owned()
}
