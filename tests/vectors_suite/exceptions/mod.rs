//! Servers that misbehave, and what comes of it: the exception, and what the server saw.
//!
//! `in.scenario` is the name of a server in the generator of the vectors; here it is a
//! [`Scene`](scene::Scene) on the servers of the lab. The same request is made of it under the
//! same policy, once with a body that is read within the attempt, and once in stream mode, which
//! is what requests does.
//!
//! The timeouts are not those of the vectors. A scenario that runs into a clock gets a short one
//! there, and everything else a long one, so that neither a busy machine nor a slow one changes
//! what comes of it.

mod differences;
mod direct;
mod proxied;
mod rules;
mod scene;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use http::Method;
use longhaul::error::{Fault, Phase};
use longhaul::policy::Methods;
use longhaul::session::Proxies;
use longhaul::transport::{Resolve, ResolveError};
use longhaul::{Error, ErrorKind, ProxyMap, Response, Retry, Session};

use crate::verdict::{Vector, Verdict, text};
use scene::{CERTIFICATES, Peer, Scene};

/// How the body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mode {
    /// Within the attempt.
    Whole,
    /// After it, by the caller.
    Stream,
}

/// What came of a scenario.
#[derive(Debug, Clone)]
struct Seen {
    end: End,
    /// Connections at the first server, and heads at all of them.
    counts: Option<(u64, u64)>,
}

#[derive(Debug, Clone)]
enum End {
    Response {
        status: u16,
        length: usize,
        redirects: usize,
    },
    Error {
        kind: ErrorKind,
        phase: Phase,
        fault: Fault,
        #[allow(dead_code, reason = "part of the story of a failure")]
        message: String,
    },
}

pub(crate) fn raised(vector: &Vector) -> Option<Verdict> {
    outcome(vector, Mode::Whole)
}

pub(crate) fn raised_in_stream_mode(vector: &Vector) -> Option<Verdict> {
    outcome(vector, Mode::Stream)
}

pub(crate) fn attempts(vector: &Vector) -> Option<Verdict> {
    counts(vector, Mode::Whole)
}

pub(crate) fn attempts_in_stream_mode(vector: &Vector) -> Option<Verdict> {
    counts(vector, Mode::Stream)
}

/// Whether the same came out: the response, or the exception of that name for that cause.
fn outcome(vector: &Vector, mode: Mode) -> Option<Verdict> {
    let seen = seen(vector, mode)?;
    let out = &vector.out;
    let same = match &seen.end {
        End::Response { status, length, redirects } => {
            out["result"] == "response"
                && out["status"] == *status
                && out["body_len"] == *length
                && out["redirects"] == *redirects
        }
        End::Error { kind, .. } => {
            // A bare exception of Python or urllib3 is no answer that anything could equal.
            out["module"] == "requests"
                && text(&out["exception"]) == kind.requests_name()
                && rules::kinds_of(out).is_none_or(|kinds| kinds.contains(kind))
        }
    };
    Verdict::new(same, rules::of_the_outcome(&vector.given, out, &seen), || story(vector, &seen))
}

/// Whether the server saw as many connections and requests.
fn counts(vector: &Vector, mode: Mode) -> Option<Verdict> {
    let out = &vector.out;
    let wanted = (out["server_connections"].as_u64()?, out["server_requests"].as_u64()?);
    let seen = seen(vector, mode)?;
    let same = seen.counts == Some(wanted);
    let given = &vector.given;
    let rule = rules::of_the_attempts(
        given,
        out,
        &seen,
        &policy(text(&given["retries"])),
        &text(&given["method"]).parse().unwrap(),
        mode == Mode::Whole,
    );
    Verdict::new(same, rule, || story(vector, &seen))
}

fn story(vector: &Vector, seen: &Seen) -> String {
    format!("{seen:?}\n  of {}", vector.line)
}

/// Plays a scenario once for all who ask.
fn seen(vector: &Vector, mode: Mode) -> Option<Seen> {
    type Played = HashMap<(String, Mode), Arc<OnceLock<Option<Seen>>>>;
    static PLAYED: LazyLock<Mutex<Played>> = LazyLock::new(Mutex::default);
    let key = (vector.given.to_string(), mode);
    let cell = Arc::clone(PLAYED.lock().unwrap().entry(key).or_default());
    cell.get_or_init(|| play(vector, mode)).clone()
}

fn play(vector: &Vector, mode: Mode) -> Option<Seen> {
    let name = text(&vector.given["scenario"]);
    if name == "header_int_value" {
        // A field whose value is a number: it would not compile.
        return None;
    }
    let scene = direct::scene(name).or_else(|| proxied::scene(name));
    let scene = scene.unwrap_or_else(|| panic!("no scenario {name}"));
    let end = match ask(&scene, vector, mode) {
        Ok(end) => end,
        Err(error) => End::Error {
            kind: error.kind(),
            phase: error.phase(),
            fault: error.fault(),
            message: error.to_string(),
        },
    };
    Some(Seen { end, counts: scene.counts() })
}

fn ask(scene: &Scene, vector: &Vector, mode: Mode) -> Result<End, Error> {
    let given = &vector.given;
    let most = given["max_redirects"].as_u64().unwrap().try_into().unwrap();
    let mut recipe = Session::builder()
        .trust_env(false)
        .seed(1)
        .timeout((scene.connect, scene.read))
        .retry(policy(text(&given["retries"])))
        .max_redirects(most)
        .stream(mode == Mode::Stream)
        .verify(scene.verify.clone())
        .extra_roots(CERTIFICATES.root.path())
        .resolver(Arc::new(Names(scene.addresses.clone())));
    if let Some(proxy) = &scene.proxy {
        let map = ProxyMap::from_pairs([("http", proxy), ("https", proxy)])?;
        recipe = recipe.proxies(Proxies::from(map));
    }
    let session = recipe.build()?;
    let method = scene.method.clone();
    let method = method.unwrap_or_else(|| text(&given["method"]).parse().unwrap());
    let mut last = call(&session, scene, &method);
    for _ in 1..scene.calls {
        if let (true, Some(Peer::Origin(origin))) = (scene.leaves_between, scene.peers.first()) {
            assert!(origin.wait_until_idle(scene::PATIENT));
        }
        last = call(&session, scene, &method);
    }
    last
}

fn call(session: &Session, scene: &Scene, method: &Method) -> Result<End, Error> {
    // requests follows the redirects of a HEAD too, where it is asked through `request`.
    let mut request = session.request(method.clone(), &scene.url).allow_redirects(true);
    for (name, value) in &scene.headers {
        request = request.header(*name, *value);
    }
    if method == Method::POST {
        request = request.body(scene.body.clone());
    }
    let response: Response = request.send()?;
    Ok(End::Response {
        status: response.status(),
        length: response.bytes()?.len(),
        redirects: response.history().len(),
    })
}

/// The policies of the generator, by their names there.
fn policy(name: &str) -> Retry {
    // requests follows redirects itself, past the counters of the policy.
    let two = Retry::urllib3().total(2).redirects_count_in_total(false);
    let listed = two.clone().status_forcelist([500, 502, 503, 504, 429, 407]);
    match name {
        "none" => Retry::none(),
        "int2" => Retry::from_total(2).redirects_count_in_total(false),
        "total2" => two,
        "total2_read0" => two.read(0),
        "total2_readFalse" => two.read(false),
        "total2_connect0" => two.connect(0),
        "total2_other0" => two.other(0),
        "total2_status" => listed,
        "total2_status_noraise" => listed.raise_on_status(false),
        "total2_any_method" => two.allowed_methods(Methods::Any),
        "totalFalse" => two.total(false),
        other => panic!("no policy {other}"),
    }
}

/// Knows where `two.invalid` is, and nothing else.
#[derive(Debug)]
struct Names(Vec<IpAddr>);

impl Resolve for Names {
    fn resolve(&self, host: &str, _: Option<Duration>) -> Result<Vec<IpAddr>, ResolveError> {
        match host {
            "two.invalid" => Ok(self.0.clone()),
            _ => Err(ResolveError::NotFound("no such name".to_owned())),
        }
    }
}
