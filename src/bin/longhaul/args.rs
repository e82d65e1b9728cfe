//! What was typed, as types, and nothing more.
//!
//! Every flag says in its help what it does, its default and where that default comes from. A flag
//! that was left out stays `None` here, so that [`plan`](crate::plan) alone decides what that means
//! and can tell "left out" from "given with the default's value". Numbers may be typed with a minus,
//! so that `--read-timeout -1` is told that -1 is no timeout rather than that there is no flag `-1`.

use crate::values::{self, HeaderArg};
use clap::{Args, Parser, Subcommand};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

mod archive;
mod check;
mod connection;
mod cookies;
mod credentials;
mod form;
mod get;
mod later;
mod papers;
mod plan;
mod proxies;
mod report;
mod settings;
mod shared;
mod voice;

pub(crate) use archive::ArchiveArgs;
pub(crate) use check::CheckArgs;
pub(crate) use connection::ConnectionArgs;
pub(crate) use cookies::CookieArgs;
pub(crate) use credentials::CredentialArgs;
pub(crate) use form::{Form, FormArgs};
pub(crate) use get::GetArgs;
pub(crate) use later::LaterArgs;
pub(crate) use papers::{CompletionsArgs, ManArgs};
pub(crate) use plan::PlanArgs;
pub(crate) use proxies::{ProxyListArgs, ProxyUseArgs, Rotate, SessionWho};
pub(crate) use report::ReportArgs;
pub(crate) use settings::SettingsArgs;
pub(crate) use shared::{
    CeilingArgs, HoursArgs, Jitter, PaceArgs, PolicyArgs, RefusalArgs, RetryArgs, TimeoutArgs,
};
pub(crate) use voice::{Speak, VoiceArgs, WatchArgs};

/// Fetches a list of URLs through proxies, holds out for as long as it takes, and writes one
/// record per URL.
#[derive(Debug, Parser)]
#[command(
    name = "longhaul",
    version,
    about,
    after_help = "Exit codes: 0 every URL succeeded, 1 some failed, 2 usage or configuration, \
                  3 the run was stopped (407, exit leak, no proxy left), 4 its time was up and \
                  URLs are left, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fetch a list of URLs and write one record per URL, as JSON Lines.
    Run(Box<RunArgs>),
    /// Fetch one URL and print its body; with -v every step of it, to find out what is wrong.
    Get(Box<GetArgs>),
    /// Tell how long one URL and a whole run can take under a policy, without sending anything.
    Plan(Box<PlanArgs>),
    /// Find out what proxies really are: protocol, credentials, exits, latency, added fields.
    Check(Box<CheckArgs>),
    /// Tell what the results of a run say, as tables and as one page; or how two runs differ.
    Report(ReportArgs),
    /// Run the whole machine against servers that misbehave on purpose, all on this computer.
    Demo(DemoArgs),
    /// Print what a shell needs to complete commands, flags and values.
    Completions(CompletionsArgs),
    /// Print a page of the manual, or write all of them.
    Man(ManArgs),
}

/// `longhaul run`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Durations are seconds (5, 0.5) or carry a unit (250ms, 1m30s, 2h).\n\
                  The first Ctrl-C takes no new URL and finishes what flies; the second one cuts.\n\n\
                  Examples:\n  \
                  longhaul run -i urls.txt -o results.jsonl --proxies proxies.txt -w 24\n  \
                  longhaul run -i urls.txt -o results.jsonl --proxies proxies.txt -w 24 --resume\n  \
                  longhaul run -i urls.txt -o results.jsonl --passes 2 --rate 5/s --per-host 2\n  \
                  longhaul run -i urls.txt -o results.jsonl --plan-only")]
pub(crate) struct RunArgs {
    /// URLs to fetch. Default: those of `-i`, else standard input when it is not a terminal.
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,

    /// One URL or one JSON object (url, method, headers, body, id) a line; `-` is standard
    /// input. Default: standard input when it is not a terminal and no URL is given.
    #[arg(short, long, value_name = "FILE", help_heading = "Input and results")]
    pub(crate) input: Option<PathBuf>,

    /// Where the records go; a name in .zst is compressed. Default: standard output.
    #[arg(short, long, value_name = "FILE", help_heading = "Input and results")]
    pub(crate) output: Option<PathBuf>,

    /// Go on with the results in `-o`: what is recorded there is not fetched again.
    #[arg(long, help_heading = "Input and results")]
    pub(crate) resume: bool,

    /// With --resume: fetch those again that are recorded as failed.
    #[arg(long, help_heading = "Input and results")]
    pub(crate) retry_failed: bool,

    /// Make each record durable before the next one, so that a power cut takes none; one fsync a
    /// record. Default: every second or 1000 records, beside the writing.
    #[arg(long, help_heading = "Input and results")]
    pub(crate) sync: bool,

    /// Keep each body as a file in this folder, named by its content. Default: bodies are dropped.
    #[arg(long, value_name = "DIR", help_heading = "Input and results")]
    pub(crate) bodies: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) form: FormArgs,

    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,

    /// Go over what failed again, up to N passes in all. Default: 1, no second pass.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::passes, help_heading = "Input and results")]
    pub(crate) passes: Option<NonZeroU32>,

    #[command(flatten)]
    pub(crate) pace: PaceArgs,

    #[command(flatten)]
    pub(crate) proxy_list: ProxyListArgs,

    #[command(flatten)]
    pub(crate) proxy_use: ProxyUseArgs,

    /// Ignore the environment: proxies, NO_PROXY, .netrc, CA bundles. Default: heed it, as
    /// requests does.
    #[arg(long, help_heading = "Proxies")]
    pub(crate) no_env: bool,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) later: LaterArgs,

    #[command(flatten)]
    pub(crate) refusals: RefusalArgs,

    #[command(flatten)]
    pub(crate) hours: HoursArgs,

    /// A field of every request, 'Name: value'; 'Name:' removes one; may be given several times.
    /// Default: the four fields that requests sends.
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        value_parser = values::header,
        help_heading = "Requests"
    )]
    pub(crate) headers: Vec<HeaderArg>,

    #[command(flatten)]
    pub(crate) cookies: CookieArgs,

    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,

    #[command(flatten)]
    pub(crate) ceiling: CeilingArgs,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Print the plan with all that `longhaul plan` tells about it, and send nothing. Default: off.
    #[arg(long, help_heading = "Messages")]
    pub(crate) plan_only: bool,

    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    #[command(flatten)]
    pub(crate) voice: VoiceArgs,

    /// The sources of what was not typed, for the plan.
    #[arg(skip)]
    pub(crate) settings: Option<String>,
}

/// `longhaul demo`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Exit codes: 0 every URL came out as its fault demands, 1 some did not.\n\n\
                  Examples:\n  longhaul demo --urls 200 --seed 7 -o results.jsonl"
)]
pub(crate) struct DemoArgs {
    /// What the URLs, their faults and the order of everything random follow from. Default: 1.
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 1,
        hide_default_value = true
    )]
    pub(crate) seed: u64,

    /// How many URLs. Default: 1200.
    #[arg(
        long,
        value_name = "N", allow_negative_numbers = true,
        value_parser = values::count::<NonZeroUsize>,
        default_value = "1200",
        hide_default_value = true
    )]
    pub(crate) urls: NonZeroUsize,

    /// Worker threads. Default: 24.
    #[arg(
        short,
        long,
        value_name = "N", allow_negative_numbers = true,
        value_parser = values::workers,
        default_value = "24",
        hide_default_value = true
    )]
    pub(crate) workers: NonZeroUsize,

    /// Where the records go. Default: a new folder among the temporary files.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) voice: VoiceArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::UsageError;
    use crate::values::Limit;
    use clap::CommandFactory;
    use longhaul::policy::Budget;
    use std::path::Path;

    /// The line that is printed for these arguments; `None` where they are fine.
    fn line(arguments: &[&str]) -> Option<String> {
        let error = Cli::try_parse_from([&["longhaul"], arguments].concat()).err()?;
        UsageError::from_clap(&error).map(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_tells_its_default() {
        for command in Cli::command().get_subcommands() {
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let name = argument.get_id().as_str();
                let is_switch = matches!(name, "help" | "resume" | "retry_failed");
                assert!(is_switch || help.contains("Default: "), "{name}: {help}");
            }
        }
    }

    #[test]
    fn everything_at_once() {
        let command = "longhaul run -i urls.txt -o out.jsonl -w 24 -x a:1 -x b:2 --proxies p.txt \
            --rotate host --session-per url --no-fresh-exit --always-connect \
            --proxy-header K:v --parallel-per-proxy 4 --parallel-per-credential 2 --rate-per-proxy 5/s --rate-per-credential 60/min --exit-sample 100 --connect-timeout 5 --read-timeout 25s --deadline none --total 4 \
            --connect none --read off --status 3 --redirect 5 --other 0 --forcelist 429,500-504 \
            --methods GET,HEAD --backoff-factor 0.6 --backoff-max 2m --jitter decorrelated \
            --retry-after-max 60 --rate 5/s --per-host 4 --passes 2 \
            --pass-total 6 --pass-connect 4 --pass-read none --pass-status off \
            --pass-backoff-factor 2 --pass-retry-after-max 5m --pass-connect-timeout 10 \
            --pass-read-timeout 60 --pass-deadline none --exit-check http://e/ \
            --start-at 22:00 --stop-at 06:00 --max-time 8h --stop-on-failures 50%/200 \
            --slow-lane 2 --slow-lane-pause 1m --slow-lane-spacing 0.5 --block-status 429 \
            --block-header Via:x --block-body captcha --user u:p --digest --netrc-file n --max-body 10M \
            --bodies d --format csv --columns id,ok --rotate-size 1G --warc p.warc.gz --warc-size 1G --warc-credentials -b in.txt -c out.json --cacert ca.pem --cert c.pem \
            --key k.pem --tls-min 1.2 \
            --tls-max TLSv1.3 --source-address 127.0.0.2 --no-env -HA:b -H C: --resume \
            --retry-failed --sync --json-progress --progress json --progress-every 5 --tally t.tsv \
            --metrics 9100 -vv";
        let cli = Cli::try_parse_from(command.split_whitespace()).unwrap();
        let Command::Run(run) = cli.command else { panic!("{command}") };
        assert_eq!(run.proxy_list.proxies, ["a:1", "b:2"]);
        let PolicyArgs { timeouts, retries } = run.policy;
        assert_eq!(timeouts.deadline, Some(Limit(None)));
        assert_eq!(retries.connect, Some(Budget::Unlimited));
        assert_eq!(retries.read, Some(Budget::Off));
        assert_eq!(retries.jitter, Some(Jitter::Decorrelated));
        assert_eq!(run.later.pass_total, Some(Budget::Times(6)));
        assert_eq!(run.later.pass_deadline, Some(Limit(None)));
        assert_eq!(run.proxy_use.rotate, Some(Rotate::Host));
        assert_eq!(run.ceiling.max_body, Some(10 << 20));
        assert_eq!(run.headers.len(), 2);
        assert_eq!(run.cookies.from.as_deref(), Some(Path::new("in.txt")));
        assert_eq!(run.cookies.cookie_jar.as_deref(), Some(Path::new("out.json")));
        assert!(run.credentials.user.is_some() && run.credentials.digest);
        assert!(!format!("{:?}", run.credentials).contains("u:p"));
        assert_eq!(run.voice.verbose, 2);
        assert!(
            run.resume && run.retry_failed && run.sync && run.no_env && run.voice.json_progress
        );
    }

    #[test]
    fn mistakes_are_one_line_with_place_value_and_remedy() {
        for (arguments, parts) in [
            (&["run", "--connect-timeout", "0"][..], &["--connect-timeout: ", "0"][..]),
            (&["run", "--backoff-factor", "x"], &["--backoff-factor: 'x' is not a wait; give"]),
            (&["run", "-w", "0"], &["--workers: '0' is not a number of workers; give 1 to 10000"]),
            (
                &["run", "-w", "auto:0"],
                &["--workers: 'auto:0' is not a number", "such as auto:200"],
            ),
            (&["run", "-w", "automatic"], &["--workers: 'automatic' is not a number of workers"]),
            (
                &["run", "--rotate", "daily"],
                &["--rotate: there is no 'daily'; give one of request, retry, host, random"],
            ),
            (&["run", "--totl", "3"], &["--totl: there is no such flag; did you mean --total?"]),
            (&["run", "--total", "many"], &["--total: ", "many", "none", "off"]),
            (&["run", "--forcelist", "429,5xx"], &["--forcelist: ", "5xx", "429,500-504"]),
            (&["run", "--methods", "G T"], &["--methods: ", "G T", "any"]),
            (&["run", "--tls-min", "1.1"], &["--tls-min: '1.1' is no TLS version; give 1.2 or"]),
            (
                &["check", "--source-address", "here"],
                &["--source-address: 'here' is no IP address; give one such as 192.0.2.1"],
            ),
            (&["run", "--max-body", "ten\nM"], &["--max-body: 'ten\\nM' is not a size; give"]),
            (
                &["run", "--columns", "id,statsu"],
                &["--columns: there is no column \"statsu\"; did you mean status?"],
            ),
            (&["run", "--total"], &["--total: has no value; give it as --total <N>"]),
            (&["run", "--total", "1", "--total", "2"], &["--total: is given twice; leave one"]),
            (
                &["run", "--metrics", "here:9"],
                &["--metrics: 'here:9' is no address; give a port such as 9100, or 127.0.0.1:9100"],
            ),
            (
                &["run", "--progress", "loud"],
                &["--progress: there is no 'loud'; give one of auto, bar, plain, json, none"],
            ),
            (&["fly"], &["there is no command 'fly'; see `longhaul --help`"]),
            (&["get"], &["URL: is missing; see `longhaul get --help`"]),
            (&["get", "http://a/", "-X", "G T"], &["--request: 'G T' is no method; give"]),
            (&[], &["no command is given; see `longhaul --help`"]),
        ] {
            let line = line(arguments).unwrap_or_default();
            assert!(line.starts_with("longhaul: error: "), "{line}");
            assert_eq!(line.lines().count(), 1, "{line}");
            for part in parts {
                assert!(line.contains(part), "{line} lacks {part}");
            }
        }
    }

    #[test]
    fn help_and_version_are_no_mistakes() {
        for arguments in [&["--help"][..], &["--version"], &["run", "--help"], &["demo", "-h"]] {
            assert_eq!(line(arguments), None, "{arguments:?}");
        }
    }
}
