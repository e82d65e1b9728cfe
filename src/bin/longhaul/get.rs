//! `longhaul get`: one URL, to see what comes of it and why.
//!
//! The request goes the way of a run: the same flags, defaults, retries and proxies, since what is
//! seen here has to be what a run would meet. What differs is that somebody watches. The body goes
//! to standard output while it comes, each attempt that was in vain is told at once, and with `-v`
//! every step is, by the library's own trace.

mod download;
mod request;
mod screen;
mod tell;

use crate::args::{GetArgs, ProxyUseArgs};
use crate::connection::Connection;
use crate::cookies::Cookies;
use crate::credentials::Credentials;
use crate::exit::Exit;
use crate::output;
use crate::policy::Policy;
use crate::progress;
use crate::proxies::Proxies;
use crate::signals::{self, Interrupt};
use crate::usage::UsageError;
use crate::world::RealWorld;
use longhaul::batch::{Key, Record};
use longhaul::error::{Error, ErrorKind};
use longhaul::message::Body;
use longhaul::session::{Flight, SessionBuilder, Step};
use longhaul::time::{Clock, SystemClock};
use longhaul::transport::{Cutter, Event, Pinned, SystemResolver};
use longhaul::workers::Finished;
use longhaul::{Request, Response, Session};
use screen::{End, Screen};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// `longhaul get`.
///
/// # Errors
/// A mistake of the user's.
pub(crate) fn command(args: &GetArgs) -> Result<Exit, UsageError> {
    let get = Get::resolve(args)?;
    let (recipe, collector) = get.cookies.apply(get.recipe.clone());
    let session = recipe.build().map_err(|error| UsageError::from_library(&error))?;
    let exit = match &get.place {
        Place::Part(path) => get.download(&session, path)?,
        _ => get.fetch(&session, recipe.cutter())?,
    };
    // Only then its cookies are with the others.
    drop(session);
    match get.cookies.keep(&collector) {
        Ok(()) => Ok(exit),
        Err(error) => {
            progress::print(&format!("longhaul: the cookies are lost: {}", error.message()));
            Ok(if exit == Exit::SUCCESS { Exit::SOME_FAILED } else { exit })
        }
    }
}

/// A request with nothing left to decide.
#[derive(Debug)]
struct Get {
    request: Request,
    recipe: SessionBuilder,
    place: Place,
    cookies: Cookies,
    /// Of the answer, and of those on the way to it, where they are wanted.
    heads: Heads,
    include: bool,
    json_result: bool,
    fail: bool,
    quiet: bool,
    steps: bool,
}

/// Where the body goes.
#[derive(Debug)]
enum Place {
    /// Standard output; `guarded` where it is a terminal and nobody insists.
    Screen {
        guarded: bool,
    },
    File(PathBuf),
    /// A file, gone on with where an earlier download broke off.
    Part(PathBuf),
}

impl Get {
    fn resolve(args: &GetArgs) -> Result<Self, UsageError> {
        // No `..`: a new flag has to be decided on here before anything compiles.
        let GetArgs {
            url: _,
            method: _,
            data: _,
            json: _,
            headers,
            resolve,
            ceiling,
            cookies,
            credentials,
            connection,
            output,
            go_on,
            raw,
            include,
            head,
            json_result,
            fail,
            proxy_list,
            always_connect,
            proxy_headers,
            no_env,
            policy,
            quiet,
            verbose,
        } = args;
        if *quiet && *verbose > 0 {
            return Err(UsageError::new("-q", "contradicts -v; leave one of them out"));
        }
        let include = *include || *head;
        if *json_result && include {
            let flag = if *head { "-I" } else { "-i" };
            let text = format!("contradicts --json-result, which prints no head; leave out {flag}");
            return Err(UsageError::new(flag, text));
        }
        let steps = *verbose > 0;
        let heads = Heads::default();
        let connection = Connection::resolve(connection, &RealWorld)?;
        connection.try_out()?;
        let cookies = Cookies::resolve(cookies, &RealWorld)?;
        let credentials = Credentials::resolve(credentials, headers, &RealWorld)?;
        let request = request::describe(args)?.stream(!*json_result).decode_content(!*raw);
        let how = ProxyUseArgs {
            always_connect: *always_connect,
            proxy_headers: proxy_headers.clone(),
            ..ProxyUseArgs::default()
        };
        let proxies = Proxies::resolve(proxy_list, &how, !*no_env, &RealWorld)?;
        let policy = Policy::resolve(policy, !matches!(proxies, Proxies::Direct))?;
        let mut recipe = Session::builder()
            .retry(policy.retry)
            .timeout(policy.timeouts)
            .trust_env(!*no_env)
            .always_connect(*always_connect)
            .max_body_bytes(ceiling.max_body);
        recipe = credentials.apply(connection.apply(recipe));
        if let Proxies::Pool { pool, .. } = proxies {
            recipe = recipe.proxies(pool);
        }
        if steps || include {
            let heads = heads.clone();
            recipe = recipe.trace(move |event| {
                heads.note(event);
                if steps {
                    progress::print(event.to_string().trim_end_matches('\n'));
                }
            });
        }
        if !resolve.is_empty() {
            let names = resolve.iter().fold(Pinned::new(SystemResolver::shared()), |names, pin| {
                names.name(&pin.host, pin.addresses.iter().copied())
            });
            recipe = recipe.resolver(Arc::new(names));
        }
        let place = Place::resolve(output.as_deref(), *go_on)?;
        if *go_on {
            download::check(args, &request)?;
        }
        let (json_result, fail, quiet) = (*json_result, *fail, *quiet);
        Ok(Self {
            request,
            recipe,
            place,
            cookies,
            heads,
            include,
            json_result,
            fail,
            quiet,
            steps,
        })
    }

    /// Fetches and hands out what comes of it.
    fn fetch(&self, session: &Session, cutter: Arc<Cutter>) -> Result<Exit, UsageError> {
        let interrupt = signals::cut_on_interrupt(cutter);
        let begun = SystemClock.now();
        match self.fly(session, &interrupt) {
            // What arrived in the last moment was not wanted any more either.
            _ if interrupt.is_raised() => Ok(Exit::INTERRUPTED),
            Some(result) => self.deliver(result, begun, &interrupt),
            None => Ok(Exit::INTERRUPTED),
        }
    }

    /// Steps the request to its end, and tells of its waits; `None` when it was interrupted.
    fn fly(&self, session: &Session, interrupt: &Interrupt) -> Option<Result<Response, Error>> {
        let mut flight = Flight::new(self.request.clone(), 0);
        loop {
            match flight.step(session) {
                Step::Done(response) => return Some(Ok(response)),
                Step::Failed(error) => return Some(Err(error)),
                Step::Wait { until, reason } => {
                    let wait = until.saturating_duration_since(SystemClock.now());
                    if !self.quiet {
                        progress::print(&tell::waiting(flight.attempts(), wait, reason));
                    }
                    if interrupt.comes_within(wait) {
                        return None;
                    }
                }
            }
        }
    }

    /// Hands out what came of it.
    fn deliver(
        &self,
        result: Result<Response, Error>,
        begun: Instant,
        interrupt: &Interrupt,
    ) -> Result<Exit, UsageError> {
        if let Err(error) = &result
            && let Some(usage) = usage(error)
        {
            return Err(usage);
        }
        if self.json_result {
            return self.record(result, begun);
        }
        let response = match result {
            Ok(response) => response,
            Err(error) => return Ok(self.failed(&error)),
        };
        let arrived = SystemClock.now();
        if self.is_refused(&response) {
            self.tell_summary(&response, 0, Duration::ZERO);
            return Ok(refused(&response));
        }
        let copied = match &self.place {
            Place::File(path) | Place::Part(path) => self.keep_in_file(&response, path),
            Place::Screen { guarded } => self.print_body(&response, *guarded),
        };
        let reading = SystemClock.now().saturating_duration_since(arrived);
        match copied {
            Ok(length) => {
                self.tell_summary(&response, length, reading);
                Ok(Exit::SUCCESS)
            }
            Err(_) if interrupt.is_raised() => Ok(Exit::INTERRUPTED),
            Err(Broken::Left) => Ok(Exit::SUCCESS),
            Err(Broken::Binary) => {
                progress::print(
                    "longhaul: failed: the body is binary, which would make this terminal \
                     unusable; keep it with -o FILE, or insist with -o -",
                );
                Ok(Exit::SOME_FAILED)
            }
            Err(Broken::Output(error)) => Ok(unwritable(&error)),
            Err(Broken::Failed(error)) => Ok(self.failed(&error)),
        }
    }

    /// Prints the record, and keeps the body where a file is named.
    fn record(&self, result: Result<Response, Error>, begun: Instant) -> Result<Exit, UsageError> {
        let elapsed = SystemClock.now().saturating_duration_since(begun);
        let finished = Finished::of(&self.request, result, elapsed);
        let body = match &self.request.body {
            Body::Bytes(body) => body.as_ref(),
            _ => b"",
        };
        let key = Key::of_request(&self.request.method, &self.request.url, body);
        let mut record = Record::of(&finished, &key.to_string(), 1, SystemClock.wall());
        let promised = self.recipe.settings().timeouts.deadline();
        record.promised_ms = promised
            .filter(|_| !record.attempts.is_empty())
            .map(|deadline| deadline.as_micros() as f64 / 1000.0);
        let line = serde_json::to_string(&record)
            .map_err(|error| UsageError::new("--json-result", error.to_string()))?;
        output::print(&line)?;
        match &finished.result {
            Err(error) => Ok(self.failed(error)),
            Ok(response) if self.is_refused(response) => Ok(refused(response)),
            Ok(response) => {
                self.tell_summary(response, record.bytes_body, Duration::ZERO);
                let Place::File(path) = &self.place else { return Ok(Exit::SUCCESS) };
                match response.save_to(path) {
                    Ok(_) => Ok(Exit::SUCCESS),
                    Err(error) => Ok(self.failed(&error)),
                }
            }
        }
    }

    /// Whether `--fail` takes this answer for none.
    fn is_refused(&self, response: &Response) -> bool {
        self.fail && !response.ok()
    }

    fn keep_in_file(&self, response: &Response, path: &Path) -> Result<u64, Broken> {
        self.print_heads(&mut Screen::new(io::stdout().lock(), false))?;
        response.save_to(path).map_err(Broken::Failed)
    }

    fn print_heads(&self, screen: &mut Screen<impl Write>) -> Result<(), Broken> {
        if !self.include {
            return Ok(());
        }
        screen.aside(&self.heads.wanted(self.steps)).map_err(Broken::output)
    }

    fn print_body(&self, response: &Response, guarded: bool) -> Result<u64, Broken> {
        let mut screen = Screen::new(io::stdout().lock(), guarded);
        self.print_heads(&mut screen)?;
        response.copy_to(&mut screen).map_err(|error| match screen.end {
            Some(End::Binary) => Broken::Binary,
            Some(End::Left) => Broken::Left,
            None => Broken::Failed(error),
        })
    }

    fn tell_summary(&self, response: &Response, length: u64, reading: Duration) {
        if self.steps {
            progress::print(&tell::summary(response, length, reading));
        }
    }

    fn failed(&self, error: &Error) -> Exit {
        if self.steps {
            let history = tell::attempts(error.attempts());
            let words = tell::reply_of_proxy(error).unwrap_or_default();
            for text in [history.trim_end(), &words] {
                if !text.is_empty() {
                    progress::print(text);
                }
            }
        }
        progress::print(&tell::failure(error));
        match error.kind() {
            ErrorKind::ProxyAuth | ErrorKind::NoProxyAlive => Exit::STOPPED,
            _ => Exit::SOME_FAILED,
        }
    }
}

impl Place {
    fn resolve(output: Option<&Path>, go_on: bool) -> Result<Self, UsageError> {
        match output.filter(|path| !go_on || *path != Path::new("-")) {
            None if go_on => Err(UsageError::new(
                "--continue",
                "what was printed cannot be gone on with; name a file with -o",
            )),
            None => Ok(Self::Screen { guarded: io::stdout().is_terminal() }),
            Some(path) if path == Path::new("-") => Ok(Self::Screen { guarded: false }),
            Some(path) => {
                output::can_be_made("-o", path)?;
                Ok(if go_on { Self::Part(path.to_owned()) } else { Self::File(path.to_owned()) })
            }
        }
    }
}

/// Why the body was not handed on to its end.
enum Broken {
    /// Nobody reads any more, as behind `head`.
    Left,
    Binary,
    Failed(Error),
    Output(io::Error),
}

impl Broken {
    fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Left,
            _ => Self::Output(error),
        }
    }
}

fn unwritable(error: &io::Error) -> Exit {
    progress::print(&format!("longhaul: failed: standard output cannot be written: {error}"));
    Exit::SOME_FAILED
}

fn refused(response: &Response) -> Exit {
    let (status, reason) = (response.status(), response.reason());
    progress::print(&format!("longhaul: failed: {status} {reason} ({})", response.url()));
    Exit::SOME_FAILED
}

/// The mistake of the user's for which nothing was tried.
fn usage(error: &Error) -> Option<UsageError> {
    let is_first = error.attempts().is_empty();
    match error.kind() {
        ErrorKind::InvalidUrl | ErrorKind::MissingScheme | ErrorKind::InvalidScheme if is_first => {
            Some(UsageError::at("URL", error))
        }
        ErrorKind::InvalidHeader | ErrorKind::Config if is_first => {
            Some(UsageError::from_library(error))
        }
        _ => None,
    }
}

/// The heads that came, as they came.
#[derive(Debug, Clone, Default)]
struct Heads(Arc<Mutex<Vec<Vec<u8>>>>);

impl Heads {
    fn note(&self, event: &Event<'_>) {
        if let Event::Received(head) = event
            && !is_interim(head.exposed())
        {
            self.lock().push(head.exposed().to_vec());
        }
    }

    /// The last one, or all of them.
    fn wanted(&self, all: bool) -> Vec<u8> {
        let heads = self.lock();
        let from = if all { 0 } else { heads.len().saturating_sub(1) };
        heads.get(from..).unwrap_or_default().concat()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether another head follows for the same request.
fn is_interim(head: &[u8]) -> bool {
    let status = head.split(u8::is_ascii_whitespace).nth(1).unwrap_or_default();
    status.starts_with(b"1") && status != b"101"
}
