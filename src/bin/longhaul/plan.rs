//! What will be done, settled before anything is done.
//!
//! [`resolve`] turns what was typed ([`RunArgs`]) into a [`Plan`]: every default filled in, every
//! contradiction found, every file that can be checked in advance looked at. It is a function of its
//! arguments and of a [`World`] that answers questions about files and environment, so each of its
//! refusals is a line in a table of tests. After it, nothing is a matter of flags any more.

use crate::archive::Archive;
use crate::args::{CeilingArgs, HoursArgs, RunArgs, WatchArgs};
use crate::connection::Connection;
use crate::cookies::Cookies;
use crate::credentials::Credentials;
use crate::form;
use crate::policy::Policy;
use crate::proxies::Proxies;
use crate::refusals::Refusals;
use crate::usage::UsageError;
use crate::values::{HeaderArg, Rate};
use crate::voice::Manner;
use crate::window::Hours;
use crate::world::{Kind, World};
use jiff::tz::TimeZone;
use longhaul::batch::Format;
use longhaul::policy::{Concurrency, FailureShare};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod describe;

pub(crate) use describe::Counted;

/// A run with nothing left to decide.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Where the URLs come from, in this order.
    pub(crate) inputs: Vec<Input>,
    /// Where the records go; `None` is standard output.
    pub(crate) output: Option<PathBuf>,
    /// Go on with what `output` holds.
    pub(crate) resume: bool,
    /// Do those again that it holds as failed.
    pub(crate) retry_failed: bool,
    /// Make each record durable before the next.
    pub(crate) sync: bool,
    /// Where bodies are kept.
    pub(crate) bodies: Option<PathBuf>,
    /// How they are written.
    pub(crate) format: Format,
    /// From which size on another file begins.
    pub(crate) rotate_size: Option<u64>,
    /// Where the messages are kept.
    pub(crate) archive: Option<Archive>,
    /// How often what failed is gone over, the first time included.
    pub(crate) passes: u32,
    /// Threads, at most.
    pub(crate) workers: usize,
    /// Whether as many of them work as the other side bears.
    pub(crate) concurrency: Concurrency,
    /// Over all workers.
    pub(crate) rate: Option<Rate>,
    /// How many of that at once.
    pub(crate) burst: Option<u32>,
    /// To one host.
    pub(crate) host_rate: Option<Rate>,
    /// How many of that at once.
    pub(crate) host_burst: Option<u32>,
    /// In flight to one host.
    pub(crate) per_host: Option<usize>,
    /// The proxies in use.
    pub(crate) proxies: Proxies,
    /// Whether http targets are tunnelled to, whatever proxies are in use.
    pub(crate) always_connect: bool,
    /// Asked before the run.
    pub(crate) exit_check: Option<String>,
    /// Asked again after every so many URLs.
    pub(crate) exit_sample: Option<u64>,
    /// Whether the environment is heeded.
    pub(crate) trust_env: bool,
    /// Timeouts, retries and what they come to.
    pub(crate) policy: Policy,
    /// Those of the passes after the first, where they differ.
    pub(crate) later: Option<Policy>,
    /// What is a refusal, and what becomes of it.
    pub(crate) refusals: Refusals,
    /// When it may begin and has to end.
    pub(crate) hours: Hours,
    /// Where this machine is.
    pub(crate) zone: TimeZone,
    /// How long it may take.
    pub(crate) max_time: Option<Duration>,
    /// When too much goes wrong.
    pub(crate) stop_on_failures: Option<FailureShare>,
    /// Of every request.
    pub(crate) headers: Vec<HeaderArg>,
    /// Where cookies come from and where they go.
    pub(crate) cookies: Cookies,
    /// For the targets.
    pub(crate) credentials: Credentials,
    /// Of a decoded body.
    pub(crate) max_body: Option<u64>,
    /// Certificates, TLS versions and the own address.
    pub(crate) connection: Connection,
    /// What is said on standard error.
    pub(crate) manner: Manner,
    /// Where the table of failed attempts goes.
    pub(crate) tally: Option<PathBuf>,
    /// Where numbers are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// What jitter and rotation follow from; `None` is the operating system.
    pub(crate) seed: Option<u64>,
    /// Where values come from that were not typed.
    pub(crate) settings: Option<String>,
}

/// A part of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// From the command line.
    Urls(Vec<String>),
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

/// Fills in, checks, and refuses.
///
/// # Errors
/// The first mistake, with place and remedy.
pub(crate) fn resolve(args: &RunArgs, world: &dyn World) -> Result<Plan, UsageError> {
    // No `..`: a new flag has to be decided on here before anything compiles.
    let RunArgs {
        urls,
        input,
        output,
        resume,
        retry_failed,
        sync,
        bodies,
        form,
        archive,
        passes,
        pace,
        proxy_list,
        proxy_use,
        no_env,
        policy,
        later,
        refusals,
        hours: HoursArgs { start_at, stop_at, max_time, stop_on_failures },
        headers,
        cookies,
        credentials,
        ceiling: CeilingArgs { max_body },
        connection,
        plan_only: _,
        watch: WatchArgs { tally, metrics },
        voice,
        settings,
    } = args;

    if *retry_failed && !*resume {
        return Err(UsageError::new(
            "--retry-failed",
            "there is nothing to retry without --resume; add --resume",
        ));
    }
    let manner = Manner::resolve(voice, world)?;
    let inputs = inputs(urls, input.as_deref(), world)?;
    let output = results(output.as_deref(), *resume, world)?;
    if *sync && output.is_none() {
        return Err(UsageError::new(
            "--sync",
            "standard output cannot be synced; name the results file with -o",
        ));
    }
    if let Some(tally) = tally {
        tally_file(tally, output.as_deref(), *resume, world)?;
    }
    let bodies = bodies.as_deref().map(|folder| body_folder(folder, world)).transpose()?;
    let format = form::resolve(form, output.as_deref())?;
    let archive = Archive::resolve(archive, bodies.as_deref(), world)?;
    let trust_env = !*no_env;
    let proxies = Proxies::resolve(proxy_list, proxy_use, trust_env, world)?;
    let proxied = !matches!(proxies, Proxies::Direct);
    let passes = passes.map_or(1, std::num::NonZero::get);
    let later = match later.given() {
        None => None,
        Some(flag) if passes < 2 => {
            let text = "there is no pass after the first; add --passes 2";
            return Err(UsageError::new(flag, text));
        }
        Some(_) => Some(Policy::resolve(&later.over(policy), proxied)?),
    };
    let policy = Policy::resolve(policy, proxied)?;

    Ok(Plan {
        inputs,
        output,
        resume: *resume,
        retry_failed: *retry_failed,
        sync: *sync,
        bodies,
        format,
        rotate_size: form.rotate_size,
        archive,
        passes,
        workers: pace.workers(),
        concurrency: pace.concurrency(),
        rate: pace.rate,
        burst: pace.burst.map(std::num::NonZero::get),
        host_rate: pace.host_rate,
        host_burst: pace.host_burst.map(std::num::NonZero::get),
        per_host: pace.per_host.map(std::num::NonZero::get),
        proxies,
        always_connect: proxy_use.always_connect,
        exit_check: proxy_use.exit_check.clone(),
        exit_sample: proxy_use.exit_sample.map(std::num::NonZero::get),
        trust_env,
        policy,
        later,
        refusals: Refusals::resolve(refusals)?,
        hours: Hours::resolve(*start_at, *stop_at, world.now(), &world.zone())?,
        zone: world.zone(),
        max_time: *max_time,
        stop_on_failures: *stop_on_failures,
        headers: headers.clone(),
        cookies: Cookies::resolve(cookies, world)?,
        credentials: Credentials::resolve(credentials, headers, world)?,
        max_body: *max_body,
        connection: Connection::resolve(connection, world)?,
        manner,
        tally: tally.clone(),
        metrics: *metrics,
        seed: None,
        settings: settings.clone(),
    })
}

fn inputs(
    urls: &[String],
    file: Option<&Path>,
    world: &dyn World,
) -> Result<Vec<Input>, UsageError> {
    let mut inputs = Vec::new();
    if !urls.is_empty() {
        inputs.push(Input::Urls(urls.to_vec()));
    }
    match file {
        Some(path) if path == Path::new("-") => inputs.push(Input::Stdin),
        Some(path) => {
            match world.kind(path) {
                Ok(Kind::Folder) => {
                    let text = format!("{} is a folder; name a file of URLs", path.display());
                    return Err(UsageError::new("-i", text));
                }
                Ok(Kind::File | Kind::Other) => {}
                Err(error) => return Err(unreadable("-i", path, &error, "-i FILE of URLs")),
            }
            inputs.push(Input::File(path.to_path_buf()));
        }
        None if inputs.is_empty() && world.stdin_is_terminal() => {
            return Err(UsageError::new(
                "URL",
                "there is none; give URLs, or a file of them with -i, or pipe them in",
            ));
        }
        None if inputs.is_empty() => inputs.push(Input::Stdin),
        None => {}
    }
    Ok(inputs)
}

fn results(
    path: Option<&Path>,
    resume: bool,
    world: &dyn World,
) -> Result<Option<PathBuf>, UsageError> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else {
        if resume {
            return Err(UsageError::new(
                "--resume",
                "standard output cannot be read back; name the results file with -o",
            ));
        }
        return Ok(None);
    };
    let shown = path.display();
    match world.kind(path) {
        Ok(Kind::Folder) => {
            Err(UsageError::new("-o", format!("{shown} is a folder; name a file in it")))
        }
        Ok(Kind::File) if !resume && !world.is_empty(path) => Err(UsageError::new(
            "-o",
            format!(
                "{shown} holds results already; add --resume to go on with it, or name another"
            ),
        )),
        Ok(_) => Ok(Some(path.to_path_buf())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            match folder.map(|folder| (folder, world.kind(folder))) {
                None | Some((_, Ok(Kind::Folder))) => Ok(Some(path.to_path_buf())),
                Some((folder, _)) => Err(UsageError::new(
                    "-o",
                    format!("{} is no folder; make it, or name another file", folder.display()),
                )),
            }
        }
        Err(error) => {
            let text = format!("{shown} cannot be used: {error}; name another file");
            Err(UsageError::new("-o", text))
        }
    }
}

fn tally_file(
    path: &Path,
    output: Option<&Path>,
    resume: bool,
    world: &dyn World,
) -> Result<(), UsageError> {
    let shown = path.display();
    if Some(path) == output {
        let text = format!("{shown} is where the records go; name another file");
        return Err(UsageError::new("--tally", text));
    }
    match world.kind(path) {
        Ok(Kind::Folder) => {
            Err(UsageError::new("--tally", format!("{shown} is a folder; name a file in it")))
        }
        Ok(Kind::Other) => {
            Err(UsageError::new("--tally", format!("{shown} is no regular file; name one")))
        }
        Ok(Kind::File) if !resume && !world.is_empty(path) => Err(UsageError::new(
            "--tally",
            format!("{shown} holds something; go on with it by --resume, or name another file"),
        )),
        // What else may be wrong with it the library finds before anything is sent.
        _ => Ok(()),
    }
}

fn body_folder(folder: &Path, world: &dyn World) -> Result<PathBuf, UsageError> {
    match world.kind(folder) {
        Ok(Kind::File | Kind::Other) => Err(UsageError::new(
            "--bodies",
            format!("{} is not a folder; name one, which may be new", folder.display()),
        )),
        _ => Ok(folder.to_path_buf()),
    }
}

fn unreadable(place: &str, path: &Path, error: &io::Error, wanted: &str) -> UsageError {
    let text = format!("{} cannot be read: {error}; name {wanted}", path.display());
    UsageError::new(place, text)
}

#[cfg(test)]
mod tests;
