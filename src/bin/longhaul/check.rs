//! `longhaul check`: what proxies really are, before a run depends on them.
//!
//! The finding out is the library's ([`ProxyCheck`]). Here is decided where the endpoint is, and how
//! the answer is told: a table with a line per proxy and below it what has to be done about some of
//! them, or one JSON object per proxy. Both go to standard output, since they are what was asked
//! for. Passwords go into the file of `--good` and nowhere else.

use crate::args::{CheckArgs, ProxyUseArgs};
use crate::connection::Connection;
use crate::exit::Exit;
use crate::output;
use crate::progress;
use crate::proxies::{Proxies, read_list};
use crate::tables::{align_numbers, table};
use crate::usage::UsageError;
use crate::world::{RealWorld, World};
use longhaul::batch::{CheckedProxy, ProxyCheck, ProxyChecks, ProxyState, Rotates, WayCheck};
use longhaul::lab::{Origin, reflect};
use longhaul::session::SessionBuilder;
use longhaul::{ProxyUrl, Session, Timeouts, secs};
use std::fmt::Write as _;
use std::num::NonZero;

/// The read timeout where none is given: shorter than that of a run.
const READ_TIMEOUT: f64 = 10.0;

/// `longhaul check`.
///
/// # Errors
/// A mistake of the user's, and standard output that cannot be written.
pub(crate) fn command(args: &CheckArgs) -> Result<Exit, UsageError> {
    let proxies = proxies(args, &RealWorld)?;
    let recipe = recipe(args, &RealWorld)?;
    if let Some(path) = &args.good {
        output::can_be_made("--good", path)?;
    }
    // Kept until the end: it answers as long as it lives.
    let own = match &args.url {
        Some(_) => None,
        None => Some(own_endpoint()?),
    };
    let url = args.url.clone().or_else(|| own.as_ref().map(|own| own.url("/"))).unwrap_or_default();
    let bar = progress::counter(proxies.len() as u64, "proxies checked");
    let told = bar.clone();
    let mut check = ProxyCheck::new(recipe, &url)
        .map_err(|error| UsageError::at("--url", &error))?
        .on_checked(move |_| told.inc(1));
    check = check.always_connect(args.always_connect);
    for header in &args.proxy_headers {
        check = check
            .proxy_header(&header.name, header.value.as_deref().unwrap_or_default())
            .map_err(|error| UsageError::at("--proxy-header", &error))?;
    }
    if let Some(requests) = args.requests {
        check = check.requests(requests.get());
    }
    if let Some(workers) = args.workers {
        check = check.workers(workers.get());
    }
    let found = check.run(&proxies);
    bar.finish_and_clear();
    let found = found.map_err(|error| UsageError::at("--url", &error))?;
    if let Some(path) = &args.good {
        found.write_good(path).map_err(|error| UsageError::at("--good", &error))?;
    }
    if args.json {
        let lines: Vec<String> =
            found.proxies.iter().filter_map(|proxy| serde_json::to_string(proxy).ok()).collect();
        output::print(&lines.join("\n"))?;
    } else {
        output::print(&render(&found))?;
    }
    Ok(if found.good().is_empty() { Exit::SOME_FAILED } else { Exit::SUCCESS })
}

fn proxies(args: &CheckArgs, world: &dyn World) -> Result<Vec<ProxyUrl>, UsageError> {
    let given = match read_list(&args.list, world)? {
        Some(pool) => pool.proxies().cloned().collect(),
        None => Proxies::resolve(&args.list, &ProxyUseArgs::default(), true, world)?.to_check(),
    };
    if given.is_empty() {
        return Err(UsageError::new(
            "-x",
            "there is no proxy to check; give some with -x, or a list with --proxies",
        ));
    }
    Ok(given)
}

fn recipe(args: &CheckArgs, world: &dyn World) -> Result<SessionBuilder, UsageError> {
    let read = args.read_timeout.map_or(Some(secs(READ_TIMEOUT)), |limit| limit.0);
    let mut timeouts = Timeouts::default()
        .with_read(read)
        .map_err(|error| UsageError::at("--read-timeout", &error))?;
    if let Some(limit) = args.connect_timeout {
        timeouts = timeouts
            .with_connect(limit.0)
            .map_err(|error| UsageError::at("--connect-timeout", &error))?;
    }
    let connection = Connection::resolve(&args.connection, world)?;
    connection.try_out()?;
    Ok(connection.apply(Session::builder().timeout(timeouts)))
}

fn own_endpoint() -> Result<Origin, UsageError> {
    progress::print(
        "longhaul: without --url the endpoint is a server on this computer; only proxies on this \
         computer can reach it, and their exits say nothing",
    );
    Origin::builder().handler(reflect).start().map_err(|error| UsageError::from_library(&error))
}

/// The table, and what has to be done about some of its lines.
fn render(found: &ProxyChecks) -> String {
    let mut lines = table(&[
        "#",
        "proxy",
        "state",
        "ways",
        "exit",
        "rotates",
        "keep-alive",
        "connect",
        "handshake",
        "first byte",
    ]);
    for proxy in &found.proxies {
        lines.add_row(row(proxy));
    }
    align_numbers(&mut lines, 0..1);
    align_numbers(&mut lines, 7..10);
    let mut text = format!("{}\n", lines.trim_fmt());
    let remarks: Vec<(&CheckedProxy, String)> = found
        .proxies
        .iter()
        .flat_map(|proxy| remarks(proxy).into_iter().map(move |r| (proxy, r)))
        .collect();
    if !remarks.is_empty() {
        text.push('\n');
    }
    for (proxy, remark) in remarks {
        let _ = writeln!(text, "{} {}: {remark}", proxy.n, proxy.proxy);
    }
    let own = match found.direct {
        Some(own) => format!("the own address is {own}"),
        None => "the own address is not known".to_owned(),
    };
    let (good, all) = (found.good().len(), found.proxies.len());
    let _ = write!(text, "\n{good} of {all} work; {own}");
    text
}

fn row(proxy: &CheckedProxy) -> Vec<String> {
    let ways = [("forward", &proxy.forward), ("connect", &proxy.connect), ("socks", &proxy.socks)];
    let ways: Vec<String> = ways
        .iter()
        .filter_map(|(name, way)| Some(format!("{name} {}", outcome(way.as_ref()?))))
        .collect();
    let exit = match &proxy.exits[..] {
        [] => String::new(),
        [only] => only.address.to_string(),
        many => format!("{} in {}", many.len(), proxy.told),
    };
    let rotates = match proxy.rotates {
        Some(Rotates::Sticky) => "no",
        Some(Rotates::PerConnection) => "per connection",
        Some(Rotates::PerRequest) => "per request",
        _ => "",
    };
    let kept = proxy.keep_alive.map_or("", |kept| if kept { "yes" } else { "no" });
    let tried = [&proxy.forward, &proxy.connect, &proxy.socks].into_iter().flatten();
    let timings = tried.filter(|way| way.ok).find_map(|way| way.timings.as_ref());
    let time = |milliseconds: Option<f64>| {
        milliseconds.map_or_else(String::new, |time| format!("{time:.0} ms"))
    };
    let handshake = timings.and_then(|timings| match (timings.proxy_ms, timings.tls_ms) {
        (None, None) => None,
        (proxy, tls) => Some(proxy.unwrap_or_default() + tls.unwrap_or_default()),
    });
    vec![
        proxy.n.to_string(),
        proxy.proxy.clone(),
        proxy.state.to_string(),
        ways.join(", "),
        exit,
        rotates.to_owned(),
        kept.to_owned(),
        time(timings.and_then(|timings| timings.connect_ms)),
        time(handshake),
        time(timings.and_then(|timings| timings.first_byte_ms)),
    ]
}

fn outcome(way: &WayCheck) -> String {
    match (way.ok, way.status, &way.error) {
        (true, _, _) => "ok".to_owned(),
        (false, Some(status), _) => status.to_string(),
        (false, None, Some(error)) => error.kind.replace('_', " "),
        (false, None, None) => "no".to_owned(),
    }
}

/// What there is to say about a proxy beyond its line.
fn remarks(proxy: &CheckedProxy) -> Vec<String> {
    let mut remarks = Vec::new();
    match (proxy.speaks, proxy.state) {
        (Some(scheme), ProxyState::WrongScheme) => {
            remarks.push(format!("it speaks {scheme}; write {scheme}:// in front of it"));
        }
        (Some(scheme), _) => remarks.push(format!(
            "what listens there answers to {scheme} and refuses; perhaps it is no proxy"
        )),
        (None, _) => {
            remarks.extend(proxy.error.as_ref().map(|error| error.message.clone()));
        }
    }
    if let Some(headers) = &proxy.headers {
        let names = |list: &mut dyn Iterator<Item = &str>| list.collect::<Vec<_>>().join(", ");
        for (verb, names) in [
            ("adds", names(&mut headers.added.iter().map(|field| &*field.name))),
            ("changes", names(&mut headers.changed.iter().map(|field| &*field.name))),
            ("takes away", names(&mut headers.removed.iter().map(String::as_str))),
        ] {
            if !names.is_empty() {
                remarks.push(format!("it {verb} {names}"));
            }
        }
    }
    if proxy.reveals_client == Some(true) {
        remarks.push("it tells targets the own address".to_owned());
    }
    if let Some(missing) = NonZero::new(proxy.asked.saturating_sub(proxy.told)) {
        remarks.push(format!("{missing} of {} requests for its exit failed", proxy.asked));
    }
    remarks
}
