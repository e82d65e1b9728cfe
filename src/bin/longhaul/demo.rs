//! The main job against servers that misbehave on purpose, with every outcome checked.
//!
//! Nothing here is a simulation of the command: the demo writes a list of URLs, makes the arguments
//! that a user would type, and goes through the same plan and the same run. What it adds is at both
//! ends: the servers ([`servers`]), which play the faults that the URLs name, and the check of the
//! results file ([`check`]) against what those faults demand ([`pages`]).

mod check;
mod pages;
mod servers;

use crate::args::{
    DemoArgs, PaceArgs, PolicyArgs, ProxyListArgs, ProxyUseArgs, RefusalArgs, RetryArgs, RunArgs,
    TimeoutArgs,
};
use crate::exit::Exit;
use crate::plan::{self, Plan};
use crate::progress;
use crate::run;
use crate::usage::UsageError;
use crate::values::{Limit, Workers};
use crate::world::RealWorld;
use longhaul::policy::Budget;
use longhaul::{Retry, secs};
use pages::Budgets;
use servers::Servers;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How many deviations are told in full.
const MOST_DEVIATIONS: usize = 20;

/// `longhaul demo`.
///
/// # Errors
/// A results file that cannot be used, or a machine that does not allow servers on loopback.
pub(crate) fn command(args: &DemoArgs) -> Result<Exit, UsageError> {
    let folder = Folder::new(args.output.is_none())
        .map_err(|error| UsageError::new("demo", format!("no folder for its files: {error}")))?;
    let budgets = budgets(&Retry::long_run());
    let servers = Servers::start()
        .map_err(|error| UsageError::new("demo", format!("its servers do not start: {error}")))?;
    let pages = pages::generate(args.urls.get(), args.seed, budgets);
    let urls: Vec<String> = pages.iter().map(Servers::url).collect();
    let mut typed = arguments(args, &folder, &servers);
    write(&folder.file("urls.txt"), &(urls.join("\n") + "\n"))?;
    write(&folder.file("ca.pem"), &servers.certificate())?;
    typed.input = Some(folder.file("urls.txt"));
    typed.connection.cacert = Some(folder.file("ca.pem"));

    let mut plan = plan::resolve(&typed, &RealWorld)?;
    plan.seed = Some(args.seed);
    let exit = run::run(&plan)?;
    if exit == Exit::INTERRUPTED {
        return Ok(exit);
    }
    let results = typed.output.unwrap_or_default();
    verdict(&plan, &results, &urls, budgets)
}

/// What a user would type. Timeouts are short, so that silences do not take half a minute each; the
/// budgets are those of the long run.
fn arguments(args: &DemoArgs, folder: &Folder, servers: &Servers) -> RunArgs {
    RunArgs {
        output: Some(args.output.clone().unwrap_or_else(|| folder.file("results.jsonl"))),
        pace: PaceArgs { workers: Some(Workers::Count(args.workers)), ..PaceArgs::default() },
        proxy_list: ProxyListArgs { proxies: servers.proxies(), proxy_file: None },
        policy: PolicyArgs {
            timeouts: TimeoutArgs {
                connect_timeout: Some(Limit(Some(secs(5.0)))),
                read_timeout: Some(Limit(Some(secs(5.0)))),
                ..TimeoutArgs::default()
            },
            retries: RetryArgs {
                backoff_factor: Some(secs(0.1)),
                retry_after_max: Some(secs(2.0)),
                ..RetryArgs::default()
            },
        },
        proxy_use: ProxyUseArgs { exit_check: servers.address_page(), ..ProxyUseArgs::default() },
        // As short as the timeouts.
        refusals: RefusalArgs {
            slow_lane_pause: Some(secs(0.1)),
            slow_lane_spacing: Some(secs(0.005)),
            ..RefusalArgs::default()
        },
        no_env: true,
        voice: args.voice.clone(),
        ..RunArgs::default()
    }
}

fn verdict(
    plan: &Plan,
    results: &Path,
    urls: &[String],
    budgets: Budgets,
) -> Result<Exit, UsageError> {
    let shown = results.display();
    let text = fs::read_to_string(results)
        .map_err(|error| UsageError::new("demo", format!("{shown} cannot be read: {error}")))?;
    let wrong = check::deviations(&text, urls, budgets, plan.policy.timeouts.deadline());
    if wrong.is_empty() {
        if plan.manner.talks {
            progress::print(&format!("demo: {} URLs, every outcome as expected", urls.len()));
            progress::print(&format!("demo: the records are in {shown}"));
        }
        return Ok(Exit::SUCCESS);
    }
    progress::print(&format!("demo: {} outcomes are not as expected", wrong.len()));
    for deviation in wrong.iter().take(MOST_DEVIATIONS) {
        progress::print(&format!("demo: {deviation}"));
    }
    progress::print(&format!("demo: the records are in {shown}"));
    Ok(Exit::SOME_FAILED)
}

/// The budgets that the expectations are computed from; the policy has numbers for all three.
fn budgets(retry: &Retry) -> Budgets {
    let number = |budget: Budget| budget.limit().unwrap_or(u32::MAX);
    Budgets {
        total: number(retry.total_budget()),
        read: number(retry.read_budget()),
        status: number(retry.status_budget()),
    }
}

fn write(path: &Path, text: &str) -> Result<(), UsageError> {
    fs::write(path, text).map_err(|error| {
        UsageError::new("demo", format!("{} cannot be written: {error}", path.display()))
    })
}

/// A new folder among the temporary files, kept only where the results are in it.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn new(keep: bool) -> io::Result<Self> {
        let mut number = 0_u32;
        loop {
            let name = format!("longhaul-demo-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, keep }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                    number += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
