use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

const BOUNDARY: &str = "b0undary";

/// The bytes of one attempt, and the length that is promised for them.
fn read(body: &Body) -> Result<(String, Option<u64>), Error> {
    Ok(match body.open()? {
        OpenBody::Empty => (String::new(), Some(0)),
        OpenBody::Bytes(bytes) => {
            (String::from_utf8(bytes.to_vec()).unwrap(), Some(bytes.len() as u64))
        }
        OpenBody::Reader(mut reader, length) => {
            let mut text = String::new();
            reader.read_to_string(&mut text).map_err(unopened)?;
            (text, length)
        }
    })
}

fn part(head: &str, content: &str) -> String {
    format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n")
}

fn end() -> String {
    format!("--{BOUNDARY}--\r\n")
}

#[test]
fn a_form_in_memory_is_joined_with_its_fields_first() {
    let form = Multipart::new()
        .part(Part::new("p", "1").file_name("a\"b\r\n.txt").content_type("text/plain"))
        .field("f", "2");
    let (body, content_type) = form.with_boundary(BOUNDARY).unwrap();
    assert!(matches!(body, Body::Bytes(_)));
    let head = "name=\"p\"; filename=\"a%22b%0D%0A.txt\"\r\nContent-Type: text/plain";
    let wanted = [part("name=\"f\"", "2"), part(head, "1"), end()].concat();
    assert_eq!(read(&body).unwrap().0, wanted);
    assert_eq!(content_type, "multipart/form-data; boundary=b0undary");
}

#[test]
fn files_and_openers_are_sent_again_and_their_lengths_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grüße.txt");
    std::fs::write(&path, "from disk").unwrap();
    let opener = || Ok((Box::new(&b"opened"[..]) as Box<dyn Read + Send>, Some(6)));
    let form = Multipart::new()
        .file("a", &path)
        .part(Part::new("b", Body::replayable(opener)))
        .part(Part::new("c", Body::Empty))
        .field("d", "last added, first sent");
    let (body, _) = form.with_boundary(BOUNDARY).unwrap();
    assert!(body.is_replayable());
    let wanted = [
        part("name=\"d\"", "last added, first sent"),
        part("name=\"a\"; filename=\"grüße.txt\"", "from disk"),
        part("name=\"b\"", "opened"),
        part("name=\"c\"", ""),
        end(),
    ]
    .concat();
    for _ in 0..2 {
        assert_eq!(read(&body).unwrap(), (wanted.clone(), Some(wanted.len() as u64)));
    }
}

#[test]
fn a_reader_is_sent_once_and_without_a_length_in_chunks() {
    for length in [None, Some(4)] {
        let form = Multipart::new().part(Part::new("r", Body::reader(&b"once"[..], length)));
        let (body, _) = form.with_boundary(BOUNDARY).unwrap();
        assert!(!body.is_replayable());
        let wanted = part("name=\"r\"", "once") + &end();
        let total = length.map(|_| wanted.len() as u64);
        assert_eq!(read(&body).unwrap(), (wanted, total));
        assert_eq!(read(&body).unwrap_err().kind(), ErrorKind::BodyNotReplayable);
    }
}

#[test]
fn a_part_that_is_shorter_than_promised_is_named_and_a_longer_one_is_cut() {
    let form = |length| {
        let form = Multipart::new().part(Part::new("lies", Body::reader(&b"1234"[..], length)));
        form.with_boundary(BOUNDARY).unwrap().0
    };
    let error = read(&form(Some(6))).unwrap_err().to_string();
    assert!(error.contains("the part \"lies\" ended 2 bytes before"), "{error}");
    assert_eq!(read(&form(Some(2))).unwrap().0, part("name=\"lies\"", "12") + &end());
}

#[test]
fn a_file_that_changes_after_it_was_measured_is_an_error() {
    for length in [3, 9] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, b"payload").unwrap();
        let (body, _) = Multipart::new().file("f", &path).with_boundary(BOUNDARY).unwrap();
        let OpenBody::Reader(mut reader, Some(_)) = body.open().unwrap() else { panic!() };
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(length).unwrap();
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("log became"), "{error}");
    }
}

#[test]
fn a_missing_file_is_named_before_anything_is_sent() {
    let form = Multipart::new().file("f", "/nonexistent/f.bin");
    let error = form.with_boundary(BOUNDARY).unwrap().0.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("/nonexistent/f.bin"), "{error}");
}

#[test]
fn what_is_not_in_memory_is_read_in_the_pieces_that_are_asked_for() {
    /// Zeros without end, and a count of how many were asked for at most at once.
    struct Zeros(Arc<AtomicUsize>);
    impl Read for Zeros {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.0.fetch_max(buf.len(), Ordering::Relaxed);
            buf.fill(0);
            Ok(buf.len())
        }
    }
    const LENGTH: u64 = 200 * 1000 * 1000;
    let most = Arc::new(AtomicUsize::new(0));
    let zeros = Body::reader(Zeros(Arc::clone(&most)), Some(LENGTH));
    let form = Multipart::new().part(Part::new("z", zeros));
    let (body, _) = form.with_boundary(BOUNDARY).unwrap();
    let OpenBody::Reader(mut reader, length) = body.open().unwrap() else { panic!() };
    let (mut piece, mut total) = (vec![1; 16 * 1024], 0);
    loop {
        match reader.read(&mut piece).unwrap() {
            0 => break,
            count => total += count as u64,
        }
    }
    assert!(total > LENGTH && Some(total) == length);
    assert!(most.load(Ordering::Relaxed) <= 16 * 1024);
}

#[test]
fn a_boundary_repeats_with_its_seed_and_never_stands_in_a_text() {
    let drawn = |form: Multipart| form.into_body(&mut Rng::seeded(7)).unwrap().1;
    let first = drawn(Multipart::new());
    let boundary = first.strip_prefix("multipart/form-data; boundary=").unwrap();
    assert!(boundary.len() == 32 && boundary.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(first, drawn(Multipart::new()));
    for holding in [
        Multipart::new().field("f", format!("x{boundary}x")),
        Multipart::new().field(boundary, "v"),
        Multipart::new().part(Part::new("p", boundary)),
        Multipart::new().part(Part::new("p", "").file_name(boundary)),
    ] {
        assert_ne!(first, drawn(holding));
    }
}

#[test]
fn types_are_guessed_only_where_that_is_asked_for() {
    for (name, wanted) in [
        ("a.png", "image/png"),
        ("a.JSON", "application/json"),
        ("a.unheard-of", "application/octet-stream"),
        ("", "application/octet-stream"),
    ] {
        let guessed = Part::new("f", "").file_name(name).guess_content_type();
        assert_eq!(guessed.content_type.as_deref(), Some(wanted), "{name}");
    }
    assert_eq!(Part::file("f", "a.png").content_type, None);
    let guessed = Part::file("f", "folder/a.png").guess_content_type();
    assert_eq!(
        (guessed.file_name.as_deref(), guessed.content_type.as_deref()),
        (Some("a.png"), Some("image/png"))
    );
}

#[test]
fn a_boundary_of_the_users_is_checked_and_quoted_where_it_has_to_be() {
    for (boundary, quoted) in [("a'b+c", "a'b+c"), ("a=b:c", "\"a=b:c\"")] {
        let (_, content_type) = Multipart::new().with_boundary(boundary).unwrap();
        assert_eq!(content_type, format!("multipart/form-data; boundary={quoted}"));
    }
    for boundary in ["", "a b", "ä", "a\r\nb", "a\"b", &"x".repeat(71)] {
        let error = Multipart::new().with_boundary(boundary).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidHeader, "{boundary:?}");
    }
}
