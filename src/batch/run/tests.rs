use super::*;
use crate::batch::Bodies;
use crate::batch::IterSource;
use crate::batch::input::Input;
use crate::batch::record::tests::{attempt, response};
use crate::batch::source::{Known, Source};
use crate::batch::writer::RecordWriter;
use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::message::{IntoRequest, Response};
use crate::time::SimClock;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Mutex;

/// What a pool would do with a URL, by its path and by how often it was asked.
type Play = fn(&str, usize) -> Result<Response, Error>;

/// A pool without threads: each job ends before the next is fed.
struct Scripted {
    play: Play,
    asked: RefCell<HashMap<String, usize>>,
    fed: Cell<u64>,
    /// The pool is stopped after so many results; the rest of the input ends as cancelled.
    stop_after: Option<u64>,
    stopped: Cell<bool>,
    aborted: Cell<bool>,
}

impl Scripted {
    fn new(play: Play) -> Self {
        Self {
            play,
            asked: RefCell::default(),
            fed: Cell::new(0),
            stop_after: None,
            stopped: Cell::new(false),
            aborted: Cell::new(false),
        }
    }
}

impl Jobs for Scripted {
    fn run(&self, jobs: Feed, take: &mut dyn FnMut(Option<Finished>)) {
        for (index, job) in (0..).zip(jobs) {
            self.fed.set(self.fed.get() + 1);
            let (url, method, result) = match job.into_request() {
                Err(error) => (String::new(), http::Method::GET, Err(error)),
                Ok(request) => {
                    let mut asked = self.asked.borrow_mut();
                    let asked = asked.entry(request.url.clone()).or_default();
                    *asked += 1;
                    let result = if self.stopped.get() {
                        Err(Error::local(ErrorKind::Cancelled, "stopped"))
                    } else {
                        (self.play)(&request.url, *asked)
                    };
                    (request.url, request.method, result)
                }
            };
            let elapsed = Duration::from_millis(5);
            take(None);
            take(Some(Finished { index, id: None, url, method, result, elapsed }));
            if self.stop_after.is_some_and(|after| self.fed.get() >= after) {
                self.stopped.set(true);
            }
        }
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }

    fn abort(&self) {
        self.aborted.set(true);
        self.stopped.set(true);
    }

    fn close(&self, _: String) {
        self.stopped.set(true);
    }

    fn stopped(&self) -> Option<Stopped> {
        self.stopped.get().then_some(Stopped::Interrupted)
    }
}

/// Bytes that can be looked at, with an end of the room.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>, usize, Option<io::ErrorKind>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut page = self.0.lock().unwrap();
        if let Some(kind) = self.2.filter(|_| page.len() >= self.1) {
            return Err(kind.into());
        }
        page.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn records(&self) -> Vec<Record> {
        let page = self.0.lock().unwrap();
        page.split_inclusive(|byte| *byte == b'\n').map(|l| Record::parse(l).unwrap()).collect()
    }

    /// URL, class, pass and attempts of each record.
    fn said(&self) -> Vec<(String, String, u32, u64)> {
        let records = self.records().into_iter();
        records.map(|r| (r.url.clone(), r.class.to_string(), r.pass, r.attempts_made())).collect()
    }
}

fn play(url: &str, asked: usize) -> Result<Response, Error> {
    let attempts = vec![attempt(url)];
    let failed = |kind, phase| {
        Err(Error::new(kind, phase, Fault::Target, "x").with_attempts(vec![attempt(url)]))
    };
    match url {
        "http://h/403-once" if asked == 1 => Ok(response(403, attempts)),
        "http://h/503-twice" if asked <= 2 => Ok(response(503, attempts)),
        "http://h/503" => Ok(response(503, attempts)),
        "http://h/404" => Ok(response(404, attempts)),
        "http://h/timeout" => failed(ErrorKind::ReadTimeout, Phase::Headers),
        _ => Ok(response(200, attempts)),
    }
}

/// A run in one pass, whose records go nowhere.
fn run_of(jobs: &Scripted) -> Run<'_, Scripted> {
    Run {
        jobs,
        clock: Arc::new(SimClock::default()),
        sync_each: false,
        max_deliveries: 5,
        sink: Box::new(RecordWriter::stream("nowhere", io::sink())),
        keep: Keep::Nothing,
        passes: 1,
        pass_settings: PassSettings::default(),
        most_held: MOST_HELD,
        most_leased: MOST_HELD,
        total: None,
        deadline: None,
        sampling: None,
        window: Window::default(),
        stop_on_failures: None,
        on_progress: None,
        on_record: None,
        watched: Wanted::default(),
    }
}

fn lines(source: Source) -> input::Jobs {
    Input::from(source).jobs(Known::default(), Arc::new(|| false))
}

fn run_with(jobs: &Scripted, page: &Page, urls: &[&str], passes: u32, most_held: usize) -> Ended {
    run_watched(jobs, page, urls, (passes, most_held), Wanted::default())
}

fn run_watched(
    jobs: &Scripted,
    page: &Page,
    urls: &[&str],
    (passes, most_held): (u32, usize),
    watched: Wanted,
) -> Ended {
    Run { passes, most_held, watched, ..plain(jobs, page) }
        .run(lines(Source::urls(urls.iter().copied())))
}

/// One pass with nothing special.
fn plain<'a>(jobs: &'a Scripted, page: &Page) -> Run<'a, Scripted> {
    Run { sink: Box::new(RecordWriter::stream("page", page.clone())), ..run_of(jobs) }
}

fn said(list: &[(&str, &str, u32, u64)]) -> Vec<(String, String, u32, u64)> {
    list.iter().map(|(u, c, p, a)| (format!("http://h/{u}"), (*c).to_owned(), *p, *a)).collect()
}

const URLS: [&str; 6] = [
    "http://h/403-once",
    "http://h/ok",
    "http://h/503-twice",
    "http://h/404",
    "http://h/timeout",
    "http://h/ok",
];

#[test]
fn records_say_what_was_promised_for_their_pass() {
    use crate::policy::Timeouts;
    let of = |seconds: u64| Timeouts::new().with_deadline(Duration::from_secs(seconds)).unwrap();
    let promised = |deadline: Option<u64>, own: Setting<Timeouts>, later: Option<Timeouts>| {
        let (jobs, page) = (Scripted::new(play), Page::default());
        let deadline = deadline.map(Duration::from_secs);
        let pass_settings = PassSettings { timeouts: later, ..PassSettings::default() };
        let items = ["http://h/ok", "http://h/503"].map(|url| {
            let mut request = crate::Request::new(http::Method::GET, url);
            request.overrides.timeouts = own.clone();
            request
        });
        let jobs_of_it = Input::from(IterSource::new(items));
        Run { passes: 2, pass_settings, deadline, ..plain(&jobs, &page) }
            .run(jobs_of_it.jobs(Known::default(), Arc::new(|| false)));
        page.records().iter().map(|r| (r.pass, r.promised_ms)).collect::<Vec<_>>()
    };
    let inherit = || Setting::Inherit;
    for (deadline, own, later, first, second) in [
        (Some(2), inherit(), None, Some(2000.0), Some(2000.0)),
        // Nothing is enforced.
        (None, inherit(), None, None, None),
        (Some(2), Setting::Unset, None, None, None),
        (Some(2), Setting::Set(Timeouts::new()), None, None, None),
        (Some(2), Setting::Set(of(3)), None, Some(3000.0), Some(3000.0)),
        // Each pass its own.
        (Some(2), inherit(), Some(of(9)), Some(2000.0), Some(9000.0)),
        (Some(2), Setting::Set(of(3)), Some(of(1)), Some(3000.0), Some(1000.0)),
        (Some(2), inherit(), Some(Timeouts::new()), Some(2000.0), None),
        (None, inherit(), Some(of(9)), None, Some(9000.0)),
    ] {
        let name = format!("{deadline:?} {own:?} {later:?}");
        assert_eq!(promised(deadline, own, later), [(1, first), (2, second)], "{name}");
    }
}

#[test]
fn one_record_a_url_in_one_pass() {
    let (jobs, page) = (Scripted::new(play), Page::default());
    let ended = run_with(&jobs, &page, &URLS, 1, MOST_HELD);
    let wanted = [
        ("403-once", "refused", 1, 1),
        ("ok", "ok", 1, 1),
        ("503-twice", "retryable", 1, 1),
        ("404", "permanent", 1, 1),
        ("timeout", "retryable", 1, 1),
    ];
    assert_eq!(page.said(), said(&wanted));
    assert_eq!((ended.tally.urls(), ended.tally.ok(), ended.repeated), (5, 1, 1));
    assert_eq!((ended.unfinished, ended.passes), (0, 1));
    assert!(ended.stopped.is_none());
}

#[test]
fn what_may_pass_is_passed_over_again_and_written_once() {
    let (jobs, page) = (Scripted::new(play), Page::default());
    let ended = run_with(&jobs, &page, &URLS, 3, MOST_HELD);
    let wanted = [
        ("ok", "ok", 1, 1),
        ("404", "permanent", 1, 1),
        ("403-once", "ok", 2, 2),
        ("503-twice", "ok", 3, 3),
        ("timeout", "retryable", 3, 3),
    ];
    assert_eq!(page.said(), said(&wanted));
    assert_eq!((ended.passes, ended.tally.ok(), jobs.fed.get()), (3, 3, 5 + 3 + 2));
}

#[test]
fn passes_end_where_nothing_is_left_and_hold_only_so_many() {
    let (jobs, page) = (Scripted::new(play), Page::default());
    assert_eq!(run_with(&jobs, &page, &["http://h/403-once"], 9, MOST_HELD).passes, 2);
    assert_eq!(page.said(), said(&[("403-once", "ok", 2, 2)]));
    let (jobs, page) = (Scripted::new(play), Page::default());
    run_with(&jobs, &page, &["http://h/503", "http://h/403-once"], 2, 1);
    assert_eq!(page.said(), said(&[("403-once", "refused", 1, 1), ("503", "retryable", 2, 2)]));
}

#[test]
fn what_did_not_end_has_no_record() {
    let mut jobs = Scripted::new(play);
    jobs.stop_after = Some(3);
    let page = Page::default();
    let ended = run_with(&jobs, &page, &URLS, 2, MOST_HELD);
    // Two are held back for a pass that never comes, two are cancelled.
    assert_eq!(page.said(), said(&[("ok", "ok", 1, 1)]));
    assert_eq!(ended.unfinished, 4);
    assert!(matches!(ended.stopped, Some(Stopped::Interrupted)));
}

#[test]
fn a_bad_line_is_a_record_of_class_input() {
    let (jobs, page) = (Scripted::new(play), Page::default());
    let bad = r#"{"url":"http://u:secret@h/","methd":1}"#;
    let ended = run_with(&jobs, &page, &[bad, "http://h/ok"], 2, MOST_HELD);
    let records = page.records();
    assert_eq!((records.len(), ended.tally.failed()), (2, 1));
    let record = &records[0];
    assert_eq!((record.url.as_str(), &*record.class), ("http://***@h/", "input"));
    let error = record.error.as_ref().unwrap();
    assert!(error.message.starts_with("argument 1: not a request as JSON: "), "{error:?}");
    assert!(record.attempts.is_empty());
}

#[test]
fn ids_and_meta_come_back_as_they_were() {
    let (jobs, page) = (Scripted::new(play), Page::default());
    let line = r#"{"url":"http://h/ok","id":"x y","meta":{"z": 1,"a":[1.50]}}"#;
    run_with(&jobs, &page, &[line], 1, MOST_HELD);
    let records = page.records();
    assert_eq!(records[0].id, "x y");
    assert_eq!(records[0].meta.as_ref().unwrap().as_str(), r#"{"z": 1,"a":[1.50]}"#);
}

#[test]
fn a_gone_reader_and_a_full_disk_end_the_run_with_the_truth_in_the_file() {
    for (kind, closed) in [(io::ErrorKind::BrokenPipe, true), (io::ErrorKind::StorageFull, false)] {
        let jobs = Scripted::new(play);
        let page = Page(Arc::default(), 1, Some(kind));
        let ended = run_with(&jobs, &page, &URLS, 3, MOST_HELD);
        assert_eq!(page.said(), said(&[("ok", "ok", 1, 1)]));
        assert!(jobs.aborted.get());
        let stopped = ended.stopped.unwrap();
        assert_eq!(matches!(stopped, Stopped::SinkClosed), closed);
        assert_eq!(matches!(stopped, Stopped::SinkFailed(_)), !closed);
        // 403, 503 held back and 404, which could not be written; nothing was fed after that.
        assert_eq!((ended.unfinished, jobs.fed.get()), (3, 4));
    }
}

#[test]
fn an_input_that_breaks_off_is_said_after_what_came_before() {
    struct Fails;
    impl io::Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("cable"))
        }
    }
    let (jobs, page) = (Scripted::new(play), Page::default());
    let reader = io::BufReader::new(io::Read::chain(io::Cursor::new(b"http://h/ok\n"), Fails));
    let ended = Run {
        sink: Box::new(RecordWriter::stream("page", page.clone())),
        passes: 2,
        ..run_of(&jobs)
    }
    .run(lines(Source::new().add_reader("pipe", reader)));
    assert_eq!(page.said(), said(&[("ok", "ok", 1, 1)]));
    assert_eq!(
        ended.stopped.unwrap().to_string(),
        "pipe:2 cannot be read: cable; make it readable or name another input, and resume"
    );
}

#[test]
fn progress_at_start_and_end_and_at_most_ten_times_a_second() {
    let (jobs, page) = (Scripted::new(play), Page::default());
    let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let seen = Arc::clone(&told);
    let clock = Arc::new(SimClock::default());
    let moving = Arc::clone(&clock);
    let urls: Vec<_> = (0..10).map(|n| format!("http://h/{n}")).collect();
    Run {
        clock,
        sink: Box::new(RecordWriter::stream("page", page)),
        total: Some(10),
        on_progress: Some(Box::new(move |progress| seen.lock().unwrap().push(*progress))),
        on_record: Some(Box::new(move |_| moving.advance(Duration::from_millis(30)))),
        ..run_of(&jobs)
    }
    .run(lines(Source::urls(urls)));
    let told: Vec<_> = told.lock().unwrap().iter().map(|p| (p.ok, p.elapsed.as_millis())).collect();
    assert_eq!(told, [(0, 0), (4, 120), (8, 240), (10, 300)]);
}

#[test]
fn each_attempt_is_told_once_at_the_end_of_its_pass() {
    let (jobs, page) = (Scripted::new(play), Page::default());
    let told: Arc<Mutex<Vec<(String, u32, usize)>>> = Arc::default();
    let seen = Arc::clone(&told);
    let on_pass_end = move |record: &Record| {
        let path = record.url.trim_start_matches("http://h/").to_owned();
        seen.lock().unwrap().push((path, record.pass, record.attempts.len()));
    };
    let watched = Wanted { on_pass_end: Some(Box::new(on_pass_end)), ..Wanted::default() };
    let urls = ["http://h/503-twice", "http://h/ok", "http://h/503"];
    run_watched(&jobs, &page, &urls, (2, MOST_HELD), watched);
    let wanted = [("503-twice", 1), ("ok", 1), ("503", 1), ("503-twice", 2), ("503", 2)];
    let wanted: Vec<_> = wanted.map(|(path, pass)| (path.to_owned(), pass, 1)).into();
    assert_eq!(*told.lock().unwrap(), wanted);
    let in_records: u64 = page.records().iter().map(Record::attempts_made).sum();
    assert_eq!(in_records, 5);
}

#[test]
fn bodies_are_named_in_their_records() {
    let (jobs, page) = (Scripted::new(play), Page::default());
    let folder = tempfile::tempdir().unwrap();
    Run {
        sink: Box::new(RecordWriter::stream("page", page.clone())),
        keep: Keep::Bodies(Bodies::new(folder.path()).unwrap()),
        ..run_of(&jobs)
    }
    .run(lines(Source::urls(["http://h/ok", "http://h/404", "http://h/timeout"])));
    let files: Vec<_> = page.records().into_iter().map(|record| record.body_file).collect();
    assert_eq!((files[0].is_some(), &files[0], files[2].as_ref()), (true, &files[1], None));
    let kept = std::fs::read(folder.path().join(files[0].as_ref().unwrap())).unwrap();
    assert_eq!(kept, b"body");
}

/// A run over ten URLs with a sample after every three; `echo` answers the samples.
fn sampled(play: Play, own: &str) -> (Scripted, Page, Ended) {
    let (jobs, page) = (Scripted::new(play), Page::default());
    let own = Some(own.parse().unwrap());
    let recipe = crate::Session::builder();
    let ended = Run {
        sink: Box::new(RecordWriter::stream("page", page.clone())),
        passes: 2,
        sampling: Some(Sampling::new("http://e/echo".to_owned(), 3, own, recipe)),
        ..run_of(&jobs)
    }
    .run(lines(Source::urls((0..10).map(|n| format!("http://h/{n}")))));
    (jobs, page, ended)
}

fn echo(address: &'static str) -> Result<Response, Error> {
    let mut parts = response(200, Vec::new()).into_parts();
    parts.body = crate::message::ResponseBody::Bytes(address.into());
    Ok(Response::from_parts(parts))
}

#[test]
fn samples_of_the_exits_are_counted_and_in_no_record() {
    let play: Play = |url, asked| match (url, asked) {
        ("http://e/echo", 1) => echo("192.0.2.1"),
        ("http://e/echo", 2) => Err(Error::local(ErrorKind::Internal, "x")),
        ("http://e/echo", _) => echo("192.0.2.2"),
        _ => Ok(response(200, vec![attempt(url)])),
    };
    let (jobs, page, ended) = sampled(play, "203.0.113.1");
    assert_eq!((page.records().len(), ended.tally.urls(), jobs.fed.get()), (10, 10, 13));
    assert_eq!((ended.unfinished, ended.stopped.is_none()), (0, true));
    let exits = ended.exits.unwrap();
    assert_eq!((exits.samples, exits.failed, exits.distinct), (2, 1, 2));
    assert!(page.records().iter().all(|record| !record.url.contains("echo")));
}

#[test]
fn a_sample_that_shows_the_own_address_cuts_the_run() {
    let play: Play = |url, asked| match (url, asked) {
        ("http://e/echo", 1) => echo("192.0.2.1"),
        ("http://e/echo", _) => echo("203.0.113.1"),
        _ => Ok(response(200, vec![attempt(url)])),
    };
    let (jobs, page, ended) = sampled(play, "203.0.113.1");
    assert_eq!((page.records().len(), jobs.fed.get()), (6, 8));
    assert!(jobs.aborted.get());
    let Some(Stopped::Failure { kind, message }) = ended.stopped else { panic!() };
    assert_eq!(kind, ErrorKind::ExitLeak);
    assert!(message.contains("own address 203.0.113.1 through http://***@p:1"), "{message}");
}

/// As [`run_with`], under a rule or a window, over URLs of which each takes a second.
fn run_until(
    jobs: &Scripted,
    page: &Page,
    urls: &[&str],
    window: Window,
    rule: Option<&str>,
) -> Ended {
    let clock = Arc::new(SimClock::default());
    let moving = Arc::clone(&clock);
    Run {
        clock,
        sink: Box::new(RecordWriter::stream("page", page.clone())),
        passes: 2,
        most_held: 1,
        window,
        stop_on_failures: rule.map(|rule| LastOutcomes::new(rule.parse().unwrap())),
        on_record: Some(Box::new(move |_| moving.advance(Duration::from_secs(1)))),
        ..run_of(jobs)
    }
    .run(lines(Source::urls(urls.iter().copied())))
}

#[test]
fn too_many_failures_among_the_last_close_the_run() {
    let list = ["ok", "404", "x", "timeout", "{", "503", "y", "z"].map(|path| match path {
        "{" => path.to_owned(),
        path => format!("http://h/{path}"),
    });
    let urls: Vec<&str> = list.iter().map(String::as_str).collect();
    let (jobs, page) = (Scripted::new(play), Page::default());
    let ended = run_until(&jobs, &page, &urls, Window::default(), Some("50%/4"));
    // 404 is an answer and the line that is none is not counted: 404, x, timeout, 503.
    let Some(Stopped::FailureShare { failures: 2, .. }) = ended.stopped else {
        panic!("{ended:?}")
    };
    let urls: Vec<_> = page.said().into_iter().map(|(url, ..)| url).collect();
    assert_eq!(urls, ["http://h/ok", "http://h/404", "http://h/x", "", "http://h/503"]);
    assert_eq!(ended.unfinished, 3, "the one held back, and those that were not begun");
    assert!(!jobs.aborted.get(), "what flies may finish");
    let (jobs, page) = (Scripted::new(play), Page::default());
    let ended = run_until(&jobs, &page, &["http://h/ok"; 1], Window::default(), Some("50%/4"));
    assert!(ended.stopped.is_none());
}

#[test]
fn a_window_that_closes_ends_the_run_and_says_so() {
    let urls: Vec<String> = (0..10).map(|n| format!("http://h/{n}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let stop_at = Some(SimClock::default().wall() + Duration::from_secs(3));
    for window in [
        Window { stop_at, ..Window::default() },
        Window { max_time: Some(Duration::from_secs(3)), ..Window::default() },
    ] {
        let (jobs, page) = (Scripted::new(play), Page::default());
        let ended = run_until(&jobs, &page, &urls, window, None);
        assert!(matches!(ended.stopped, Some(Stopped::TimeUp(_))), "{ended:?}");
        assert_eq!((page.records().len(), ended.unfinished), (3, 7));
        assert!(!jobs.aborted.get());
    }
}

#[test]
fn later_passes_have_settings_of_their_own() {
    let board = Board::default();
    let clock = Arc::new(SimClock::default());
    let claims = Claims::new(lines(Source::urls(["http://h/1"])), board.clone(), clock);
    let input = feed::Input { claims, keep: true, max_deliveries: 5 };
    let mut input = Feed::input(input, board.clone());
    let first = input.next().unwrap().into_request().unwrap();
    assert!(matches!(first.overrides.timeouts, crate::message::Setting::Inherit));
    let held = vec![board.take(0).unwrap()];
    let timeouts = crate::Timeouts::from((Duration::from_secs(1), Duration::from_secs(60)));
    let settings =
        PassSettings { retry: Some(crate::Retry::from_total(9)), timeouts: Some(timeouts) };
    let again = Feed::held(held, board, false, settings).next().unwrap().into_request().unwrap();
    let crate::message::Setting::Set(retry) = &again.overrides.retry else { panic!() };
    assert_eq!(retry.total_budget().limit(), Some(9));
    assert!(
        matches!(again.overrides.timeouts, crate::message::Setting::Set(set) if set == timeouts)
    );
}

/// A sink that tells what it is asked for.
struct Told(Arc<Mutex<Vec<String>>>, u64);

impl Sink for Told {
    fn write(
        &mut self,
        record: &Record,
        response: Option<&Response>,
        _: Instant,
    ) -> Result<(), SinkError> {
        let body = response.map(|response| String::from_utf8_lossy(response.body()).into_owned());
        self.0.lock().unwrap().push(format!("{} {}", record.url, body.unwrap_or_default()));
        self.1 += 1;
        Ok(())
    }

    fn sync(&mut self, _: Instant) -> Result<(), SinkError> {
        self.0.lock().unwrap().push("sync".to_owned());
        Ok(())
    }

    fn durable(&self) -> u64 {
        self.1
    }

    fn rely_on(&mut self, files: &mut Vec<std::path::PathBuf>) -> Result<(), SinkError> {
        self.0.lock().unwrap().push(format!("{} file", files.drain(..).count()));
        Ok(())
    }
}

#[test]
fn each_record_is_durable_before_the_next_where_that_is_asked_for() {
    for (sync_each, wanted) in [
        (false, vec!["1 file", "http://h/1 body", "http://h/timeout ", "sync"]),
        // The file was synced before, so the sink has nothing to rely on.
        (true, vec!["http://h/1 body", "sync", "http://h/timeout ", "sync", "sync"]),
    ] {
        let (jobs, folder) = (Scripted::new(play), tempfile::tempdir().unwrap());
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let ended = Run {
            sync_each,
            sink: Box::new(Told(Arc::clone(&told), 0)),
            keep: Keep::Bodies(Bodies::new(folder.path()).unwrap()),
            ..run_of(&jobs)
        }
        .run(lines(Source::urls(["http://h/1", "http://h/timeout"])));
        assert_eq!(*told.lock().unwrap(), wanted);
        assert!(ended.stopped.is_none());
    }
}

#[test]
fn an_iterator_of_requests_urls_and_mistakes_is_an_input() {
    use crate::batch::{Claimed, FnSink, Item, IterSource, Place};
    let place = Place { source: "mine".into(), line: 3 };
    let meta = "[1]".parse::<crate::batch::Meta>().unwrap();
    let url = |path: &str| Ok(crate::Request::new(http::Method::GET, format!("http://h/{path}")));
    let mistake = || Err(Error::config("no such page"));
    let jobs: Vec<Claimed> = vec![
        Item::new(url("item").unwrap(), place.clone()).meta(meta).into(),
        Claimed::line("http://h/line", place).unwrap(),
        Claimed::bad("the third", Error::config("nothing")),
    ];
    let told: Arc<Mutex<Vec<(String, String, bool)>>> = Arc::default();
    for source in [
        Input::from(IterSource::new(["http://h/1", "http://h/1"])),
        Input::from(IterSource::new([url("2"), mistake()])),
        Input::from(IterSource::new(jobs)),
    ] {
        let (jobs, told) = (Scripted::new(play), Arc::clone(&told));
        let sink = FnSink::new(move |record, response| {
            let line = (record.url.clone(), record.class.to_string(), response.is_some());
            told.lock().unwrap().push(line);
            Ok(())
        });
        let ended = Run { sink: Box::new(sink), ..run_of(&jobs) }
            .run(source.jobs(Known::default(), Arc::new(|| false)));
        assert!(ended.stopped.is_none());
    }
    let told = told.lock().unwrap();
    let told: Vec<_> = told.iter().map(|(u, c, r)| (u.as_str(), c.as_str(), *r)).collect();
    let wanted = [
        ("http://h/1", "ok", true),
        ("http://h/1", "ok", true),
        ("http://h/2", "ok", true),
        ("", "input", false),
        ("http://h/item", "ok", true),
        ("http://h/line", "ok", true),
        ("", "input", false),
    ];
    assert_eq!(told, wanted);
}
