//! Which proxies there are and how they are used: their flags, resolved.

use crate::args::{ProxyListArgs, ProxyUseArgs, Rotate, SessionWho};
use crate::usage::UsageError;
use crate::world::World;
use longhaul::proxy::{EnvProxies, Rotation, SessionPer};
use longhaul::{ProxyPool, ProxyUrl};
use std::io;
use std::path::Path;

/// The proxies of a run.
#[derive(Debug, Clone)]
pub(crate) enum Proxies {
    /// None.
    Direct,
    /// Those of the environment; these, where exits are checked.
    Environment(Vec<ProxyUrl>),
    /// Those that were given.
    Pool {
        /// As they are used.
        pool: ProxyPool,
        /// As it was asked for.
        rotate: Rotate,
    },
}

impl Proxies {
    /// Fills in, checks, and refuses.
    ///
    /// # Errors
    /// The first mistake, with place and remedy.
    pub(crate) fn resolve(
        list: &ProxyListArgs,
        how: &ProxyUseArgs,
        trust_env: bool,
        world: &dyn World,
    ) -> Result<Self, UsageError> {
        let proxies = match read_list(list, world)? {
            Some(pool) => used(pool, how)?,
            None => {
                let proxies = of_environment(trust_env, world)?;
                refuse_use(how, &proxies)?;
                proxies
            }
        };
        check_exits(how, &proxies)?;
        Ok(proxies)
    }

    /// The proxies whose exits are checked.
    pub(crate) fn to_check(&self) -> Vec<ProxyUrl> {
        match self {
            Self::Direct => Vec::new(),
            Self::Environment(proxies) => proxies.clone(),
            Self::Pool { pool, .. } => pool.first_identities().collect(),
        }
    }
}

/// The proxies that were given, as a pool; `None` where none were.
///
/// # Errors
/// One that is none, and a file that cannot be read.
pub(crate) fn read_list(
    args: &ProxyListArgs,
    world: &dyn World,
) -> Result<Option<ProxyPool>, UsageError> {
    let ProxyListArgs { proxies, proxy_file } = args;
    let mut list = String::new();
    for proxy in proxies {
        proxy.parse::<ProxyUrl>().map_err(|error| UsageError::at("-x", &error))?;
        list.push_str(proxy);
        list.push('\n');
    }
    if let Some(path) = proxy_file {
        let text = world.read(path).map_err(|error| unreadable(path, &error))?;
        // Parsed on its own first, so that the line in the error is the line in the file.
        ProxyPool::parse(&text)
            .map_err(|error| UsageError::at(&format!("--proxies {}", path.display()), &error))?;
        list.push_str(text.trim_start_matches('\u{feff}'));
    }
    if list.is_empty() {
        return Ok(None);
    }
    ProxyPool::parse(&list).map(Some).map_err(|error| UsageError::at("-x", &error))
}

fn unreadable(path: &Path, error: &io::Error) -> UsageError {
    let text =
        format!("{} cannot be read: {error}; name a list of one proxy a line", path.display());
    UsageError::new("--proxies", text)
}

fn used(pool: ProxyPool, how: &ProxyUseArgs) -> Result<Proxies, UsageError> {
    // No `..`: a new flag has to be decided on here before anything compiles.
    let ProxyUseArgs {
        rotate,
        session_per,
        fresh_exit: _,
        no_fresh_exit,
        always_connect,
        proxy_headers,
        parallel_per_proxy,
        parallel_per_credential,
        rate_per_proxy,
        rate_per_credential,
        exit_check: _,
        exit_sample: _,
    } = how;
    let rotate = rotate.unwrap_or(Rotate::Request);
    let sessions = sessions(*session_per, &pool)?;
    let mut pool = pool
        .rotation(match rotate {
            Rotate::Request => Rotation::Request,
            Rotate::Retry => Rotation::Retry,
            Rotate::Host => Rotation::Host,
            Rotate::Random => Rotation::Random,
        })
        .sessions(sessions)
        .fresh_exit(!no_fresh_exit)
        .always_connect(*always_connect)
        .parallel_per_proxy(parallel_per_proxy.map(std::num::NonZero::get))
        .parallel_per_credential(parallel_per_credential.map(std::num::NonZero::get));
    pool = pool
        .rate_per_proxy(rate_per_proxy.map(|rate| rate.per_second))
        .map_err(|error| UsageError::at("--rate-per-proxy", &error))?;
    pool = pool
        .rate_per_credential(rate_per_credential.map(|rate| rate.per_second))
        .map_err(|error| UsageError::at("--rate-per-credential", &error))?;
    for header in proxy_headers {
        let value = header.value.as_deref().unwrap_or_default();
        pool = pool
            .proxy_header(&header.name, value)
            .map_err(|error| UsageError::at("--proxy-header", &error))?;
    }
    Ok(Proxies::Pool { pool, rotate })
}

fn sessions(asked: Option<SessionWho>, pool: &ProxyPool) -> Result<Option<SessionPer>, UsageError> {
    match asked {
        Some(_) if !pool.proxies().any(ProxyUrl::is_template) => Err(UsageError::new(
            "--session-per",
            "no user name of a proxy has {n}; write it where the number stands, as in \
             host:port:user-session-{n}:password",
        )),
        Some(SessionWho::Worker) => Ok(Some(SessionPer::Worker)),
        Some(SessionWho::Url) => Ok(Some(SessionPer::Url)),
        Some(SessionWho::Request) => Ok(Some(SessionPer::Request)),
        None => Ok(pool.proxies().any(ProxyUrl::has_template_user).then_some(SessionPer::Worker)),
    }
}

/// Says of what was asked for about proxies that there are none, or that those of the environment
/// are no list.
fn refuse_use(how: &ProxyUseArgs, proxies: &Proxies) -> Result<(), UsageError> {
    let none = matches!(proxies, Proxies::Direct);
    let remedy = "give proxies with -x or --proxies";
    for (given, flag, what) in [
        (how.rotate.is_some(), "--rotate", "there is nothing to rotate"),
        (how.session_per.is_some(), "--session-per", "there is no user name to number"),
        (how.fresh_exit, "--fresh-exit", "there is no exit to change"),
        (how.no_fresh_exit, "--no-fresh-exit", "there is no exit to keep"),
        (how.always_connect && none, "--always-connect", "there is no proxy to tunnel through"),
        (!how.proxy_headers.is_empty(), "--proxy-header", "there is no proxy to send it to"),
        (how.parallel_per_proxy.is_some(), "--parallel-per-proxy", "there is no proxy to spare"),
        (
            how.parallel_per_credential.is_some(),
            "--parallel-per-credential",
            "there is no proxy to spare",
        ),
        (how.rate_per_proxy.is_some(), "--rate-per-proxy", "there is no proxy to spare"),
        (how.rate_per_credential.is_some(), "--rate-per-credential", "there is no proxy to spare"),
    ] {
        if given {
            return Err(UsageError::new(flag, format!("{what}; {remedy}")));
        }
    }
    Ok(())
}

fn of_environment(trust_env: bool, world: &dyn World) -> Result<Proxies, UsageError> {
    if !trust_env {
        return Ok(Proxies::Direct);
    }
    // Read now, so that a broken variable is found before the run and not by its first URL.
    let environment = EnvProxies::read(|name| world.var(name))
        .map_err(|error| UsageError::at("environment", &error))?;
    let proxies: Vec<ProxyUrl> = environment.proxies().cloned().collect();
    Ok(if proxies.is_empty() { Proxies::Direct } else { Proxies::Environment(proxies) })
}

fn check_exits(how: &ProxyUseArgs, proxies: &Proxies) -> Result<(), UsageError> {
    let Some(url) = &how.exit_check else {
        return match how.exit_sample {
            Some(_) => Err(UsageError::new(
                "--exit-sample",
                "there is no URL to ask; name it with --exit-check",
            )),
            None => Ok(()),
        };
    };
    if matches!(proxies, Proxies::Direct) {
        return Err(UsageError::new(
            "--exit-check",
            "without a proxy every exit is the own address; give proxies with -x or --proxies",
        ));
    }
    match url::Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() => Ok(()),
        _ => Err(UsageError::new(
            "--exit-check",
            "this is no http or https URL; give one that answers with the caller's address",
        )),
    }
}
