//! The response head: read leniently here, handed to ureq in its strictest form.
//!
//! Real servers fold lines, put a PHP warning between their fields, send `103` before the
//! response, repeat `Content-Length`. A client that gives up a page for that loses one page in a
//! few thousand, so the bytes are put in order *before* ureq sees them: this module parses the
//! head with the leniency that browsers have, and tells ureq, in two or three lines of its own,
//! what follows from it for the framing of the body. ureq thus decides when a message is
//! complete, and never meets a head that it could reject.
//!
//! The limits are 64 KiB and 200 fields (`http.client`: 100 fields; ureq: 128), and an error
//! names them.

use crate::error::{Error, ErrorKind, Fault, Phase};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use httparse::{Header, ParserConfig, Status};
use std::borrow::Cow;
use std::io::Write as _;
use std::mem::MaybeUninit;

/// The longest head, in bytes.
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// The most fields.
const MAX_FIELDS: usize = 200;
/// The most interim responses before the final one.
pub(super) const MAX_INTERIM: usize = 16;

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none, whatever the fields say.
    None,
    /// After so many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked,
    /// Where the connection ends.
    Close,
}

/// A response head.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    /// Whether the peer keeps the connection open after the body.
    pub(super) keep_alive: bool,
    /// The first line that is no field and was passed over, safe to print.
    pub(super) malformed: Option<Box<str>>,
}

impl Head {
    /// Whether another response follows on its heels.
    pub(super) fn is_interim(&self) -> bool {
        // 101 is final: what follows it is no HTTP.
        (100..200).contains(&self.status) && self.status != 101
    }

    /// How many bytes at least have to be read before the connection can be used again; `None`
    /// where it ends with the body.
    pub(super) fn rest(&self) -> Option<u64> {
        self.keep_alive.then_some(match self.framing {
            Framing::Length(length) => length,
            Framing::None | Framing::Chunked | Framing::Close => 0,
        })
    }

    /// Writes the head that ureq gets to see.
    pub(super) fn write_for_engine(&self, out: &mut Vec<u8>) {
        // Writing to a vector does not fail.
        let _ = match self.framing {
            Framing::None => write!(out, "HTTP/1.1 {} \r\nContent-Length: 0\r\n", self.status),
            Framing::Length(length) => {
                write!(out, "HTTP/1.1 {} \r\nContent-Length: {length}\r\n", self.status)
            }
            Framing::Chunked => {
                write!(out, "HTTP/1.1 {} \r\nTransfer-Encoding: chunked\r\n", self.status)
            }
            Framing::Close => write!(out, "HTTP/1.1 {} \r\n", self.status),
        };
        if !self.keep_alive {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Looks for the end of a head in bytes that arrive piece by piece.
///
/// Each byte is looked at once, so that a head which drips costs no more than one that comes
/// whole.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    seen: usize,
    started: bool,
    lines: usize,
}

/// What a [`Scanner`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// More bytes are needed.
    Partial,
    /// So many empty bytes before the head can be thrown away.
    Skip(usize),
    /// The head ends here.
    Complete(usize),
    /// This is not HTTP/1.
    NotHttp,
}

impl Scanner {
    /// Goes on from where the last scan of the same bytes ended.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Scan {
        const MAGIC: &[u8] = b"HTTP/";
        if !self.started {
            let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            if blank > 0 {
                return Scan::Skip(blank);
            }
            if bytes.iter().zip(MAGIC).any(|(have, want)| have != want) {
                return Scan::NotHttp;
            }
            if bytes.len() < MAGIC.len() {
                return Scan::Partial;
            }
            self.started = true;
        }
        let mut rest = bytes.get(self.seen..).unwrap_or_default();
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            let line_end = bytes.len() - rest.len() + at;
            match rest.get(at + 1..).unwrap_or_default() {
                [b'\n', ..] => return self.complete(line_end + 2),
                [b'\r', b'\n', ..] => return self.complete(line_end + 3),
                [] | [b'\r'] => {
                    self.seen = line_end;
                    return Scan::Partial;
                }
                more => {
                    self.lines += 1;
                    rest = more;
                }
            }
        }
        self.seen = bytes.len();
        Scan::Partial
    }

    fn complete(&mut self, length: usize) -> Scan {
        // The last line and the empty one.
        self.lines += 2;
        Scan::Complete(length)
    }

    /// How many lines the head has that was found, the empty one included.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }
}

/// Parses a complete head of so many lines; `bodyless` is for the answer to HEAD.
pub(super) fn parse(bytes: &[u8], lines: usize, bodyless: bool) -> Result<Head, Error> {
    let mut head = parse_fields(bytes, bodyless)?;
    // Of a head without a fold and without junk, each line but the first and the last is a field.
    if head.headers.len() + 2 != lines {
        head.malformed = first_malformed(bytes).map(|line| shown(line).into());
    }
    Ok(head)
}

fn parse_fields(bytes: &[u8], bodyless: bool) -> Result<Head, Error> {
    parse_lines(bytes, bodyless).or_else(|error| {
        let known = as_1_1(bytes);
        // What the parser does not pass over line by line: a NUL, and a CR that ends no line.
        let is_whole = |line: &&[u8]| {
            let end = line.strip_suffix(b"\n").unwrap_or(line);
            let text = end.strip_suffix(b"\r").unwrap_or(end);
            !text.iter().any(|byte| matches!(byte, 0 | b'\r'))
        };
        let lines = known.split_inclusive(|byte| *byte == b'\n');
        let whole = lines.filter(is_whole).collect::<Vec<_>>().concat();
        if whole == bytes { Err(error) } else { parse_lines(&whole, bodyless) }
    })
}

/// The same head in HTTP/1.1 where it claims a later minor version, which changes nothing that a
/// recipient has to know of (RFC 9110, 2.5).
fn as_1_1(bytes: &[u8]) -> Cow<'_, [u8]> {
    match bytes {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9', b' ', rest @ ..] => {
            Cow::Owned([&b"HTTP/1.1 "[..], rest].concat())
        }
        _ => Cow::Borrowed(bytes),
    }
}

fn parse_lines(bytes: &[u8], bodyless: bool) -> Result<Head, Error> {
    let mut config = ParserConfig::default();
    config
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_multiple_spaces_in_response_status_delimiters(true)
        .ignore_invalid_headers_in_responses(true);
    let mut fields = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    match config.parse_response_with_uninit_headers(&mut response, bytes, &mut fields) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) => return Err(malformed("its head has no end")),
        Err(httparse::Error::TooManyHeaders) => return Err(too_many_fields()),
        Err(error) => {
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            return Err(malformed(&format!("{error} ({})", shown(line))));
        }
    }
    let minor = response.version.unwrap_or(1);
    let status = response.code.unwrap_or_default();
    if !(100..=999).contains(&status) {
        return Err(malformed(&format!("{status:03} is no status")));
    }

    let mut headers = HeaderMap::with_capacity(response.headers.len());
    for field in response.headers.iter() {
        let value = unfold(field.value);
        let name = HeaderName::from_bytes(field.name.as_bytes());
        // What is no field is told of with the others, see `first_malformed`.
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&value))
            && headers.try_append(name, value).is_err()
        {
            return Err(too_many_fields());
        }
    }
    let framing = if bodyless || matches!(status, 100..200 | 204 | 304) {
        Framing::None
    } else {
        framing(&headers)?
    };
    let keep_alive = keep_alive(minor, &headers, framing) && status != 101;
    let reason = reason(bytes);
    Ok(Head { status, reason, headers, framing, keep_alive, malformed: None })
}

/// The first line that is neither a field nor the continuation of one.
fn first_malformed(bytes: &[u8]) -> Option<&[u8]> {
    let mut lines = bytes.split(|byte| *byte == b'\n').skip(1);
    lines.by_ref().enumerate().find_map(|(number, line)| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_fold = line.starts_with(b" ") || line.starts_with(b"\t");
        if line.is_empty() || (is_fold && number > 0) {
            return None;
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let name = halves.next().unwrap_or_default().trim_ascii_end();
        let value = halves.next().map(HeaderValue::from_bytes);
        let is_field = HeaderName::from_bytes(name).is_ok() && matches!(value, Some(Ok(_)));
        (!is_field).then_some(line)
    })
}

/// RFC 9112, section 6.3, with `chunked` believed of HTTP/1.0 servers too.
fn framing(headers: &HeaderMap) -> Result<Framing, Error> {
    // `identity` was once a coding and says nothing.
    let mut codings = tokens(headers, &header::TRANSFER_ENCODING)
        .filter(|coding| !coding.eq_ignore_ascii_case(b"identity"))
        .peekable();
    if codings.peek().is_some() {
        // Not last, its end could not be seen; of any other coding only the connection's end.
        let chunked = codings.last().is_some_and(|last| last.eq_ignore_ascii_case(b"chunked"));
        return Ok(if chunked { Framing::Chunked } else { Framing::Close });
    }
    let mut length = None;
    for value in tokens(headers, &header::CONTENT_LENGTH) {
        let number = std::str::from_utf8(value)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse::<u64>().ok())
            .ok_or_else(|| malformed(&format!("Content-Length {} is no length", shown(value))))?;
        // The same said twice is one of the commoner mistakes; two lengths are a smuggler's.
        if length.replace(number).is_some_and(|before| before != number) {
            return Err(malformed("it has several Content-Lengths that differ"));
        }
    }
    Ok(length.map_or(Framing::Close, Framing::Length))
}

fn keep_alive(minor: u8, headers: &HeaderMap, framing: Framing) -> bool {
    // Both framings at once: believed once (chunked wins), and never again.
    let dubious = headers.contains_key(header::TRANSFER_ENCODING)
        && headers.contains_key(header::CONTENT_LENGTH);
    if framing == Framing::Close || dubious {
        return false;
    }
    let says = |word: &[u8]| {
        tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case(word))
    };
    !says(b"close") && (minor >= 1 || says(b"keep-alive"))
}

/// The comma-separated members of all lines of a field, without the empty ones.
fn tokens<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

/// One line of several: a break with the white space around it becomes a space (RFC 9112, 5.2).
fn unfold(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'\n') {
        return Cow::Borrowed(value);
    }
    let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    Cow::Owned(lines.join(&b' '))
}

/// The reason phrase as it came; bytes beyond ASCII are Latin-1.
fn reason(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let mut words = line.splitn(2, |byte| *byte == b' ');
    let after_version = words.nth(1).unwrap_or_default().trim_ascii_start();
    let phrase = after_version.get(3..).unwrap_or_default().trim_ascii();
    phrase.iter().map(|byte| char::from(*byte)).collect()
}

fn malformed(what: &str) -> Error {
    Error::new(
        ErrorKind::Protocol,
        Phase::Headers,
        Fault::Target,
        format!("the response is malformed: {what}"),
    )
}

fn too_many_fields() -> Error {
    Error::new(
        ErrorKind::TooLarge,
        Phase::Headers,
        Fault::Target,
        format!("the response has more than {MAX_FIELDS} header fields"),
    )
}

/// The error for a head that does not end.
pub(super) fn too_long() -> Error {
    Error::new(
        ErrorKind::TooLarge,
        Phase::Headers,
        Fault::Target,
        format!("the response head is longer than {} KiB", MAX_HEAD / 1024),
    )
}

/// The error for an answer that does not begin as one; of a proxy, where it was to fetch.
pub(super) fn not_http(bytes: &[u8], forwarded: bool) -> Error {
    // An alert or a handshake message, and the number that stands in every version's records.
    if matches!(bytes, [0x15 | 0x16, 0x03, ..]) {
        let (fault, what) = match forwarded {
            true => (Fault::Proxy, "the proxy answers in TLS; write https:// in front of it"),
            false => (
                Fault::Target,
                "the server answers in TLS: this port is meant for https; write https:// in the URL",
            ),
        };
        return Error::new(ErrorKind::Protocol, Phase::Headers, fault, what);
    }
    malformed(&format!("it does not begin with HTTP/1 but with {}", shown(bytes)))
}

/// The first few bytes, safe to print.
fn shown(bytes: &[u8]) -> String {
    let start = bytes.get(..40).unwrap_or(bytes);
    format!("\"{}\"", start.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Head, Error> {
        parse(text.as_bytes(), false)
    }

    fn parse(bytes: &[u8], bodyless: bool) -> Result<Head, Error> {
        let mut scanner = Scanner::default();
        scanner.scan(bytes);
        super::parse(bytes, scanner.lines(), bodyless)
    }

    #[test]
    fn scanning_finds_the_end_wherever_the_pieces_break() {
        let whole = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody";
        for cut in 0..whole.len() {
            let mut scanner = Scanner::default();
            let first = scanner.scan(&whole[..cut]);
            if first == Scan::Partial {
                assert_eq!(scanner.scan(whole), Scan::Complete(25), "{cut}");
            } else {
                assert_eq!(first, Scan::Complete(25), "{cut}");
            }
        }
        assert_eq!(Scanner::default().scan(b"HTTP/1.1 200\n\nx"), Scan::Complete(14));
        assert_eq!(Scanner::default().scan(b"\r\n\r\nHTTP"), Scan::Skip(4));
        assert_eq!(Scanner::default().scan(b"HTT"), Scan::Partial);
        assert_eq!(Scanner::default().scan(b"<html>"), Scan::NotHttp);
        assert_eq!(Scanner::default().scan(b"ICY 200 OK\r\n\r\n"), Scan::NotHttp);
    }

    #[test]
    fn status_lines() {
        for (line, status, phrase) in [
            ("HTTP/1.1 200 OK", 200, "OK"),
            ("HTTP/1.1 200", 200, ""),
            ("HTTP/1.1 200 ", 200, ""),
            ("HTTP/1.0 404 Not Found", 404, "Not Found"),
            ("HTTP/1.1  503  Slow down", 503, "Slow down"),
            ("HTTP/1.1 999 Request denied", 999, "Request denied"),
            ("HTTP/1.2 200 OK", 200, "OK"),
            ("HTTP/1.9 404 Not Found", 404, "Not Found"),
        ] {
            let head = head(&format!("{line}\r\n\r\n")).unwrap();
            assert_eq!((head.status, head.reason.as_str()), (status, phrase), "{line}");
        }
        for line in [
            "HTTP/1.1 099 X",
            "HTTP/1.1 1000 X",
            "HTTP/1.1 abc",
            "HTTP/2 200 OK",
            "HTTP/1.1",
            "HTTP/1.10 200 OK",
            "HTTP/1.x 200 OK",
        ] {
            let error = head(&format!("{line}\r\n\r\n")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Protocol, "{line}");
        }
        let latin = parse(b"HTTP/1.1 200 caf\xe9\r\n\r\n", false).unwrap();
        assert_eq!(latin.reason, "caf\u{e9}");
    }

    #[test]
    fn a_malformed_line_costs_itself_alone() {
        for line in [
            "PHP Warning: x y",
            "nocolonhere",
            ": v",
            "X-B\u{0}: v",
            "X-N: a\u{0}b",
            "X-C: a\rb",
            "X-D: a\r",
            "X@Y Z: 1",
        ] {
            let head = head(&format!("HTTP/1.1 200 OK\r\nA: 1\r\n{line}\r\nB: 2\r\n\r\n")).unwrap();
            assert_eq!(head.headers.len(), 2, "{line}: {:?}", head.headers);
            assert_eq!(head.headers["b"], "2", "{line}");
            assert_eq!(head.malformed.as_deref(), Some(&*shown(line.as_bytes())), "{line}");
        }
        // Told of, and nothing else is: a fold, a space before the colon, an empty value.
        let first = "HTTP/1.1 200 OK\r\n fold of nothing\r\nA: 1\r\n\r\n";
        assert_eq!(head(first).unwrap().malformed.as_deref(), Some("\" fold of nothing\""));
        let odd = "HTTP/1.1 200 OK\r\nA: 1\r\n 2\r\nB : 3\r\nC:\r\nD: caf\u{e9}\r\n\r\n";
        assert_eq!(head(odd).unwrap().malformed, None);
    }

    #[test]
    fn folded_spaced_repeated_and_foreign_fields() {
        let head = parse(
            b"HTTP/1.1 200 OK\nX-Fold: a\r\n b\r\n\t c\r\nX-A : 1\r\nSet-Cookie: a\r\n\
              Set-Cookie: b\r\nX-N: caf\xe9\r\nX-E:\r\n\r\n",
            false,
        )
        .unwrap();
        assert_eq!(head.headers["x-fold"], "a b c");
        assert_eq!(head.headers["x-a"], "1");
        assert_eq!(head.headers.get_all("set-cookie").iter().count(), 2);
        assert_eq!(head.headers["x-n"].as_bytes(), b"caf\xe9");
        assert_eq!(head.headers["x-e"], "");
    }

    #[test]
    fn framing_follows_rfc_9112() {
        use Framing::{Chunked, Close, Length};
        for (fields, wanted, keep) in [
            ("", Close, false),
            ("Content-Length: 5\r\n", Length(5), true),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", Length(5), true),
            ("Content-Length: 5, 5\r\n", Length(5), true),
            ("Content-Length: 0\r\nConnection: Close\r\n", Length(0), false),
            ("Content-Length: 0\r\nConnection: a, close\r\n", Length(0), false),
            ("Transfer-Encoding: chunked\r\n", Chunked, true),
            ("Transfer-Encoding: gzip, Chunked\r\n", Chunked, true),
            ("Transfer-Encoding: chunked, gzip\r\n", Close, false),
            ("Transfer-Encoding: identity\r\nContent-Length: 3\r\n", Length(3), false),
            ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", Chunked, false),
        ] {
            let head = head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).unwrap();
            assert_eq!((head.framing, head.keep_alive), (wanted, keep), "{fields}");
        }
        for value in ["+5", "-1", "5, 6", "abc", "99999999999999999999999", "5 5"] {
            let error = head(&format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\n"));
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Protocol, "{value}");
        }
        let old =
            |fields: &str| head(&format!("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n{fields}\r\n"));
        assert!(!old("").unwrap().keep_alive);
        assert!(old("Connection: keep-alive\r\n").unwrap().keep_alive);
    }

    #[test]
    fn no_body_where_none_is_possible() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let head = parse(text, true).unwrap();
        assert_eq!((head.framing, head.keep_alive), (Framing::None, true));
        assert_eq!(head.headers["content-length"], "5");
        for status in [100, 103, 204, 304] {
            let head = self::head(&format!("HTTP/1.1 {status} X\r\n\r\n")).unwrap();
            assert_eq!((head.framing, head.keep_alive), (Framing::None, true), "{status}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_break_it(
            start in proptest::sample::select(&["", "HTTP/1.1 200 OK\r\n", "\r\nHTTP/1.0 3"][..]),
            rest in "[\\PC\r\n\u{0}:, ]{0,80}",
            piece in 1..20usize,
        ) {
            let bytes = format!("{start}{rest}\r\n\r\n").into_bytes();
            let _ = parse(&bytes, false);
            // Piece by piece or at once, the end is found at the same place.
            let scan = |piece: usize| {
                let (mut scanner, mut from) = (Scanner::default(), 0);
                let mut to = piece;
                loop {
                    match scanner.scan(&bytes[from..to.min(bytes.len())]) {
                        Scan::Skip(blank) => from += blank,
                        Scan::Complete(length) => return Some(from + length),
                        Scan::NotHttp => return None,
                        Scan::Partial if to >= bytes.len() => return None,
                        Scan::Partial => to += piece,
                    }
                }
            };
            proptest::prop_assert_eq!(scan(piece), scan(bytes.len()));
        }
    }

    #[test]
    fn two_hundred_fields_pass_and_one_more_is_named() {
        let with = |count: usize| {
            let fields: String = (0..count).map(|i| format!("X-{i}: v\r\n")).collect();
            head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"))
        };
        assert_eq!(with(200).unwrap().headers.len(), 200);
        let error = with(201).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("200 header fields"), "{error}");
    }
}
