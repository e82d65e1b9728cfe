use super::*;
use std::io::Cursor;

fn read(bytes: &'static [u8]) -> Items {
    Source::new().add_reader("list", Cursor::new(bytes)).items(Done::default())
}

fn shown(entry: Entry) -> String {
    match entry {
        Entry::Item(item) => format!("{} {}", item.place, item.request.url),
        Entry::Bad { error, .. } => format!("bad {error}"),
        Entry::Broken(error) => format!("broken {error}"),
    }
}

fn usable(url: &str) -> Result<(), Error> {
    if url.starts_with("http://") {
        return Ok(());
    }
    Err(Error::local(ErrorKind::InvalidScheme, format!("{url:?} does not start with http://")))
}

#[test]
fn lines_keep_their_numbers_across_what_is_skipped() {
    let items = read(
        b"\xef\xbb\xbfhttp://a/\r\n\r\n# no\n  http://b/  \n{\"url\":\"http://c/\"}\nhttp://d/",
    );
    assert_eq!(
        items.map(shown).collect::<Vec<_>>(),
        ["list:1 http://a/", "list:4 http://b/", "list:5 http://c/", "list:6 http://d/"]
    );
}

#[test]
fn a_bad_line_is_an_entry_and_not_the_end() {
    let items = read(b"http://a/\n{\"url\":1}\n\xff\xfe\nhttp://b/\n");
    assert_eq!(
        items.map(shown).collect::<Vec<_>>(),
        [
            "list:1 http://a/",
            "bad list:2: not a request as JSON: invalid type: integer `1`, expected a string at \
             column 8; correct or remove this line",
            "bad list:3: the line is not UTF-8; correct or remove this line",
            "list:4 http://b/",
        ]
    );
}

#[test]
fn utf_16_is_named_as_what_it_is() {
    for bytes in [b"\xff\xfeh\0t\0".as_slice(), b"\xfe\xff\0h\0t"] {
        assert_eq!(
            read(bytes).map(shown).collect::<Vec<_>>(),
            ["broken list is UTF-16; save it as UTF-8"]
        );
    }
}

#[test]
fn a_failing_reader_ends_the_input_with_its_place() {
    #[derive(Debug)]
    struct Fails;
    impl Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("cable"))
        }
    }
    let reader = BufReader::new(Cursor::new(b"http://a/\n").chain(Fails));
    let source = Source::new().add_reader("list", reader).add_urls(["http://b/"]);
    assert_eq!(
        source.items(Done::default()).map(shown).collect::<Vec<_>>(),
        [
            "list:1 http://a/",
            "broken list:2 cannot be read: cable; make it readable or name another input, and resume"
        ]
    );
}

#[test]
fn repeated_lines_once_unless_wanted() {
    let lines = [
        "http://a/",
        "http://b/",
        "http://a/",
        r#"{"url":"http://a/"}"#,
        r#"{"url":"http://a/","method":"POST"}"#,
        r#"{"url":"http://a/","body":"x"}"#,
        r#"{"url":"http://a/","id":1}"#,
        r#"{"url":"http://c/","id":"1"}"#,
    ];
    let mut items = Source::urls(lines).items(Done::default());
    let places: Vec<_> = items
        .by_ref()
        .map(|entry| match entry {
            Entry::Item(item) => item.place.line,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(places, [1, 2, 5, 6, 7]);
    assert_eq!((items.skipped_repeated(), items.skipped_done()), (3, 0));
    let all = Source::urls(lines).repeats(true).items(Done::default());
    assert_eq!(all.count(), lines.len());
}

#[test]
fn what_is_done_is_left_out_as_often_as_it_was_done() {
    let a = Key::of_request(&http::Method::GET, "http://a/", b"");
    let done: Done = [a, a].into_iter().collect();
    let lines = ["http://a/", "http://b/", "http://a/", "http://a/"];
    for (repeats, left, skipped, repeated) in [(false, 1, 1, 2), (true, 2, 2, 0)] {
        let mut items = Source::urls(lines).repeats(repeats).items(done.clone());
        assert_eq!(items.by_ref().count(), left);
        assert_eq!((items.skipped_done(), items.skipped_repeated()), (skipped, repeated));
    }
}

#[test]
fn the_check_names_the_first_bad_line_and_counts_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("urls.txt");
    let good = "http://a/\n".repeat(6);
    std::fs::write(&path, format!("{good}htp://x/\nhttp://b/\n{{}}\nftp://y/\n")).unwrap();
    let error = Source::file(&path).check_with(&Done::default(), &usable).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidScheme);
    assert_eq!(
        error.to_string(),
        format!(
            "{}:7: \"htp://x/\" does not start with http://; correct or remove this line \
             (and 2 more like it)",
            path.display()
        )
    );
    let error = Source::urls(["http://a/", "b"]).check_with(&Done::default(), &usable).unwrap_err();
    assert_eq!(
        error.to_string(),
        "argument 2: \"b\" does not start with http://; correct or remove this line"
    );
}

#[test]
fn the_check_counts_and_leaves_alone_what_can_be_read_once() {
    let done = Done::from_iter([Key::of_request(&http::Method::GET, "http://a/", b"")]);
    let source = Source::urls(["http://a/", "http://b/", "http://b/", "http://c/"]);
    let (checked, _) = source.check_with(&done, &usable).unwrap();
    assert_eq!(checked, Checked { items: 2, done: 1, repeated: 1, complete: true });
    let source = source.add_reader("pipe", Cursor::new(b"nonsense"));
    let (checked, known) = source.check_with(&done, &usable).unwrap();
    assert_eq!(checked, Checked { items: 2, done: 1, repeated: 1, complete: false });
    // What the check knows changes nothing about what is found; it only needs no further memory.
    let mut items = source.surveyed(known);
    assert_eq!(items.by_ref().count(), 3);
    assert_eq!((items.skipped_done(), items.skipped_repeated()), (1, 1));
    assert_eq!(items.seen.len(), 1, "the line of the pipe");
}

#[test]
fn a_file_that_is_not_there_is_named_with_the_remedy() {
    let error =
        Source::file("/nonexistent/u.txt").check_with(&Done::default(), &usable).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(
        error.to_string(),
        "/nonexistent/u.txt cannot be read: No such file or directory (os error 2); name a file \
         of one URL or JSON object a line, or - for standard input"
    );
    let error = Source::file("/").check_with(&Done::default(), &usable).unwrap_err();
    assert_eq!(error.to_string(), "/ is a folder; name a file of URLs");
}

#[test]
fn reading_is_lazy() {
    struct Endless(usize);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let line = b"http://a/\n";
            for byte in &mut *buffer {
                *byte = line[self.0 % line.len()];
                self.0 += 1;
            }
            Ok(buffer.len())
        }
    }
    let source = Source::new().add_reader("endless", BufReader::new(Endless(0))).repeats(true);
    assert_eq!(source.items(Done::default()).take(1000).count(), 1000);
}

#[test]
fn nobody_waits_for_a_silent_input_once_the_run_is_over() {
    use std::sync::atomic::{AtomicBool, Ordering};
    struct Silent(Option<crossbeam_channel::Receiver<()>>);
    impl Read for Silent {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(never) = self.0.take() else {
                buffer[..10].copy_from_slice(b"http://a/\n");
                return Ok(10);
            };
            let _gone = never.recv();
            Ok(0)
        }
    }
    // The first read is silent forever: it waits for a sender that says nothing.
    let (keep, never) = crossbeam_channel::bounded(0);
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let first = BufReader::new(Cursor::new(b"http://b/\n").chain(Silent(Some(never))));
    let mut items = Source::new()
        .add_reader("pipe", first)
        .items(Done::default())
        .until(move || is_over.load(Ordering::SeqCst));
    assert_eq!(items.next().map(shown).as_deref(), Some("pipe:1 http://b/"));
    over.store(true, Ordering::SeqCst);
    assert!(items.next().is_none());
    drop(keep);
}
