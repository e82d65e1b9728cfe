//! From a plan to a run: the one place that speaks to the library's batch.

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::metrics::Served;
use crate::output;
use crate::plan::{self, Counted, Input, Plan};
use crate::plan_command::{self, Facts, Forecast};
use crate::progress::{self, AboveTheBar, Progress};
use crate::proxies::Proxies;
use crate::signals;
use crate::summary;
use crate::usage::UsageError;
use crate::world::RealWorld;
use longhaul::batch::{self, Existing, Outcome, RecordWriter, Source, exit_code_of};
use longhaul::session::SessionBuilder;
use longhaul::{Batch, Error, Session};
use std::sync::Arc;

/// `longhaul run`.
///
/// # Errors
/// A mistake of the user's, before anything was sent.
pub(crate) fn command(args: &RunArgs) -> Result<Exit, UsageError> {
    let plan = plan::resolve(args, &RealWorld)?;
    plan.connection.try_out()?;
    if args.plan_only { tell(plan) } else { run(&plan) }
}

/// Prints what the run would do and how long that can take. Nothing is sent, and no file is made.
fn tell(mut plan: Plan) -> Result<Exit, UsageError> {
    // Results that are not there yet hold nothing that would be left out.
    let output = plan.output.take_if(|path| !path.exists());
    let mut run = recipe(&plan)
        .and_then(|recipe| batch(&plan, &recipe, None))
        .map_err(|error| UsageError::from_library(&error))?;
    let counted = counted(run.plan().map_err(|error| UsageError::from_library(&error))?);
    plan.output = output.or(plan.output);
    let text = plan.describe(&counted);
    let facts = Facts { max_body: plan.max_body, lowest_rate: None };
    let forecast = Forecast::about(plan.policy, facts);
    let tables = plan_command::render(&forecast, false, plan_command::width(&RealWorld));
    output::print(&format!("{text}\n\n{tables}"))
}

/// Carries the plan out, from its printout to its summary.
///
/// # Errors
/// A mistake of the user's that only the library could find, before anything was sent.
pub(crate) fn run(plan: &Plan) -> Result<Exit, UsageError> {
    // An address that is taken is told before anything else is done.
    let served = plan.metrics.map(Served::at).transpose()?;
    match begin(plan, served.as_ref()) {
        Ok(exit) => Ok(exit),
        Err(error) if exit_code_of(&error) == Exit::USAGE.0 => {
            Err(UsageError::from_library(&error))
        }
        Err(error) => {
            progress::print(&format!("longhaul: stopped before the first URL: {error}"));
            Ok(Exit(exit_code_of(&error)))
        }
    }
}

fn begin(plan: &Plan, served: Option<&Served>) -> Result<Exit, Error> {
    let (recipe, collector) = plan.cookies.apply(recipe(plan)?);
    let mut run = batch(plan, &recipe, served)?;
    let counted = counted(run.plan()?);
    if plan.manner.talks {
        progress::print(&plan.describe(&counted));
        if let Some(served) = served {
            progress::print(&format!("  metrics  {}", served.url()));
        }
    }
    if let Err(error) = signals::listen(run.stopper()) {
        // The run goes on; only the orderly end on Ctrl-C is missing.
        log::warn!(target: "longhaul::command", "no handler for Ctrl-C: {error}");
    }
    let outcome = run.run()?;
    let exit = report(plan, &recipe, outcome)?;
    // The sessions of the workers have ended with the run.
    match plan.cookies.keep(&collector) {
        Ok(()) => Ok(exit),
        Err(error) => {
            progress::print(&format!("longhaul: the cookies are lost: {}", error.message()));
            Ok(if exit == Exit::SUCCESS { Exit::SOME_FAILED } else { exit })
        }
    }
}

/// The sessions of the workers.
fn recipe(plan: &Plan) -> Result<SessionBuilder, Error> {
    let mut recipe = Session::builder()
        .retry(plan.policy.retry.clone())
        .timeout(plan.policy.timeouts)
        .trust_env(plan.trust_env)
        .always_connect(plan.always_connect)
        .max_body_bytes(plan.max_body);
    recipe = plan.connection.apply(recipe);
    if let Proxies::Pool { pool, .. } = &plan.proxies {
        recipe = recipe.proxies(pool.clone());
    }
    if let Some(seed) = plan.seed {
        recipe = recipe.seed(seed);
    }
    recipe = plan.credentials.apply(recipe);
    for header in &plan.headers {
        recipe = match &header.value {
            Some(value) => recipe.header(&header.name, value.as_str()),
            None => recipe.without_header(&header.name),
        };
    }
    Ok(recipe)
}

fn batch(plan: &Plan, recipe: &SessionBuilder, served: Option<&Served>) -> Result<Batch, Error> {
    let source = plan.inputs.iter().fold(Source::new(), |source, input| match input {
        Input::Urls(urls) => source.add_urls(urls.iter().cloned()),
        Input::File(path) => source.add_file(path),
        Input::Stdin => source.add_stdin(),
    });
    let mut builder = Batch::builder(recipe.clone())
        .source(source)
        .workers(plan.workers)
        .concurrency(plan.concurrency)
        .passes(plan.passes)
        .sync_each(plan.sync);
    if let Some(later) = &plan.later {
        builder = builder.pass_retry(later.retry.clone()).pass_timeout(later.timeouts);
    }
    builder = builder.slow_lane(plan.refusals.lane).block_page(plan.refusals.page.clone());
    builder = builder.format(plan.format.clone());
    if let Some(path) = &plan.output {
        builder = builder.output(path);
        if let Some(bytes) = plan.rotate_size {
            builder = builder.rotate_size(bytes);
        }
    } else if plan.manner.shares_terminal {
        let above = RecordWriter::stream("standard output", AboveTheBar);
        builder = builder.sink(above.format(plan.format.clone()));
    }
    if let Some(path) = &plan.tally {
        builder = builder.tally(path);
    }
    if plan.resume {
        builder = builder.existing(Existing::Resume { retry_failed: plan.retry_failed });
    }
    if let Some(folder) = &plan.bodies {
        builder = builder.bodies(folder);
    }
    if let Some(archive) = &plan.archive {
        builder = archive.apply(builder);
    }
    if let Some(rate) = plan.rate {
        builder = builder.rate(rate.per_second);
    }
    if let Some(burst) = plan.burst {
        builder = builder.rate_burst(burst);
    }
    if let Some(rate) = plan.host_rate {
        builder = builder.host_rate(rate.per_second);
    }
    if let Some(burst) = plan.host_burst {
        builder = builder.host_rate_burst(burst);
    }
    if let Some(per_host) = plan.per_host {
        builder = builder.per_host(per_host);
    }
    if let Some(url) = &plan.exit_check {
        builder = builder.exit_check(url, plan.proxies.to_check());
    }
    if let Some(every) = plan.exit_sample {
        builder = builder.exit_sample(every);
    }
    if let Some(time) = plan.hours.start() {
        builder = builder.start_at(time);
    }
    if let Some(time) = plan.hours.stop() {
        builder = builder.stop_at(time);
    }
    if let Some(time) = plan.max_time {
        builder = builder.max_time(time);
    }
    if let Some(rule) = plan.stop_on_failures {
        builder = builder.stop_on_failures(rule);
    }
    let numbers = served.map(|served| served.numbers(recipe.clone()));
    if let Some(numbers) = &numbers {
        let (of_passes, of_records) = (Arc::clone(numbers), Arc::clone(numbers));
        builder = builder
            .on_pass_end(move |record| of_passes.pass_end(record))
            .on_record(move |record| of_records.record(record));
    }
    let mut teller: Option<Progress> = None;
    let (manner, concurrency) = (plan.manner, plan.concurrency);
    builder = builder.on_progress(move |now| {
        if let Some(numbers) = &numbers {
            numbers.progress(now);
        }
        // The first call tells the total, which shapes the bar.
        teller.get_or_insert_with(|| Progress::new(manner, concurrency, now.total)).update(now);
    });
    builder.build()
}

fn counted(found: &batch::Plan) -> Counted {
    Counted {
        urls: found.input.complete.then_some(found.input.items),
        done: found.input.done,
        repeated: found.input.repeated,
    }
}

fn report(plan: &Plan, recipe: &SessionBuilder, outcome: Outcome) -> Result<Exit, Error> {
    let exit = Exit(outcome.exit_code());
    let summary = outcome.summary;
    if plan.manner.talks {
        progress::print(&summary::render(&summary, &recipe.proxy_stats()));
    } else if let Some(reason) = summary.stopped.filter(|_| exit != Exit::SUCCESS) {
        progress::print(&format!("longhaul: stopped: {reason}"));
    }
    Ok(exit)
}
