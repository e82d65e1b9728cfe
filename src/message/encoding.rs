//! Character encodings, as requests finds them.
//!
//! `text` never fails: a page with a wrong label is still a page. The order is requests': the
//! charset that `Content-Type` names, else ISO-8859-1 for `text/*`, else UTF-8 for JSON, else
//! detection. Detection looks at a bounded sample, since its cost on a 50 MB download would be
//! felt by the whole run.
//!
//! Where we differ from requests:
//! - DIFFERENCE(bom): a byte order mark decides where `Content-Type` names no charset, and is not
//!   part of the text where it fits the charset; requests leaves it in, as `ï»¿` in the worst
//!   case.
//! - DIFFERENCE(charset-names): charsets are those of the WHATWG standard, as in browsers, and
//!   ISO-8859-1 and US-ASCII besides. Labels that only Python knows (`cp437`, `utf-7`, `utf-32`)
//!   are lossy UTF-8, as every unknown label.
//! - DIFFERENCE(invalid-bytes): what is invalid in a multi-byte charset becomes U+FFFD by the
//!   WHATWG decoders, which may count them differently.
//! - DIFFERENCE(json-unicode): JSON under no charset is UTF-8, UTF-16 or UTF-32 by its own bytes,
//!   under `text/*` and `application/json` too; requests reads the first as ISO-8859-1. `NaN` and
//!   `Infinity` are no JSON.
//! - DIFFERENCE(detection): without any label it is chardetng that guesses, as in Firefox.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// How much of a body is looked at to detect its charset.
const SAMPLE: usize = 64 * 1024;

/// The label that `Content-Type` names, or requests' default for `text/*` (ISO-8859-1) and JSON
/// (utf-8); `None` where detection has to decide.
pub fn encoding_of(content_type: Option<&[u8]>) -> Option<String> {
    let value = String::from_utf8_lossy(content_type?);
    charset(&value).or_else(|| default_label(&value).map(str::to_owned))
}

/// The text of a body. Never fails: an unknown label is lossy UTF-8.
pub fn decode_text(body: &[u8], content_type: Option<&[u8]>) -> String {
    let value = content_type.map(String::from_utf8_lossy).unwrap_or_default();
    if let Some(label) = charset(&value) {
        return with_label(body, &label);
    }
    if let Some((encoding, length)) = Encoding::for_bom(body) {
        let text = body.get(length..).unwrap_or_default();
        return encoding.decode_without_bom_handling(text).0.into_owned();
    }
    match default_label(&value) {
        Some(label) => with_label(body, label),
        None => detect(body).decode_without_bom_handling(body).0.into_owned(),
    }
}

/// The charset that the bytes themselves suggest: their byte order mark, else a guess.
///
/// requests' `apparent_encoding`; the guess may differ.
pub fn apparent_encoding(body: &[u8]) -> &'static str {
    Encoding::for_bom(body).map_or_else(|| detect(body), |(encoding, _)| encoding).name()
}

/// The text of a JSON body whose bytes are not plain UTF-8; `None` where they are.
///
/// A charset that `Content-Type` names is heeded, as in requests. Without one, the zeros of UTF-16
/// and UTF-32 are where ASCII's high bytes would be (RFC 4627 3), and JSON is UTF-8 otherwise
/// (RFC 8259 8.1).
pub(super) fn json_text(body: &[u8], content_type: Option<&[u8]>) -> Option<String> {
    let utf32 = |from: fn([u8; 4]) -> u32, body: &[u8]| {
        let (units, _) = body.as_chunks::<4>();
        let char = |unit: &[u8; 4]| char::from_u32(from(*unit)).unwrap_or('\u{fffd}');
        units.iter().map(char).collect::<String>()
    };
    let trim = |text: String| text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let value = content_type.map(String::from_utf8_lossy).unwrap_or_default();
    if let Some(label) = charset(&value) {
        // One bad byte in a string is no reason to lose the document; requests replaces it too.
        let plain = label.eq_ignore_ascii_case("utf-8")
            && !body.starts_with(b"\xef\xbb\xbf")
            && std::str::from_utf8(body).is_ok();
        return (!plain).then(|| with_label(body, &label));
    }
    match body {
        [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, 1..=255, ..] => {
            Some(trim(utf32(u32::from_be_bytes, body)))
        }
        [0xff, 0xfe, 0, 0, ..] | [1..=255, 0, 0, 0, ..] => {
            Some(trim(utf32(u32::from_le_bytes, body)))
        }
        [0xfe, 0xff, ..] | [0, 1..=255, ..] => {
            Some(UTF_16BE.decode_with_bom_removal(body).0.into())
        }
        [0xff, 0xfe, ..] | [1..=255, 0, ..] => {
            Some(UTF_16LE.decode_with_bom_removal(body).0.into())
        }
        [0xef, 0xbb, 0xbf, ..] => Some(lossy(body)),
        body if std::str::from_utf8(body).is_ok() => None,
        body => Some(decode_text(body, content_type)),
    }
}

/// requests' `get_encoding_from_headers`, the parameter alone. The last of several wins.
fn charset(content_type: &str) -> Option<String> {
    let strip = |text: &str| text.trim_matches(['"', '\'', ' ', '\t']).to_owned();
    content_type
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='))
        .filter(|(name, _)| strip(name.trim()).eq_ignore_ascii_case("charset"))
        .last()
        .map(|(_, value)| strip(value.trim()))
}

/// requests compares the media type with its case.
fn default_label(content_type: &str) -> Option<&'static str> {
    let media_type = content_type.split(';').next().unwrap_or_default();
    if media_type.contains("text") {
        Some("ISO-8859-1")
    } else if media_type.contains("application/json") {
        Some("utf-8")
    } else {
        None
    }
}

/// Whether a byte 0x0A is a line end in this charset, whatever stands before it.
pub(super) fn is_cut_at_line_ends(label: &str) -> bool {
    Encoding::for_label(label.as_bytes()).is_none_or(Encoding::is_ascii_compatible)
}

/// The text of bytes in the charset of this label.
pub(super) fn with_label(body: &[u8], label: &str) -> String {
    let label = label.to_ascii_lowercase();
    // Signs between letters are all the same to Python, and so are these names to its users.
    let name = label.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    match name.as_str() {
        // The standard makes windows-1252 of it; requests, and so its users' code, does not.
        "iso_8859_1" | "iso8859_1" | "iso_8859_1_1987" | "iso8859" | "8859" | "iso_ir_100"
        | "latin_1" | "latin1" | "latin" | "l1" | "cp819" | "ibm819" | "csisolatin1" => {
            return encoding_rs::mem::decode_latin1(body).into_owned();
        }
        "ascii" | "us_ascii" | "us" | "646" | "iso646_us" | "iso_646_irv_1991" | "iso_ir_6"
        | "ansi_x3_4_1968" | "ansi_x3_4_1986" | "cp367" | "ibm367" | "csascii" => {
            let char = |byte: &u8| if byte.is_ascii() { char::from(*byte) } else { '\u{fffd}' };
            return body.iter().map(char).collect();
        }
        _ => {}
    }
    // Python takes `utf_8` for `utf-8`.
    let found = Encoding::for_label(label.as_bytes())
        .or_else(|| Encoding::for_label(label.replace('_', "-").as_bytes()));
    match found {
        // "utf-16" leaves the order to the mark; "utf-16le" does not.
        Some(_) if label == "utf-16" && body.starts_with(&[0xfe, 0xff]) => {
            UTF_16BE.decode_with_bom_removal(body).0.into_owned()
        }
        Some(encoding) => encoding.decode_with_bom_removal(body).0.into_owned(),
        None => lossy(body),
    }
}

fn lossy(body: &[u8]) -> String {
    UTF_8.decode_with_bom_removal(body).0.into_owned()
}

fn detect(body: &[u8]) -> &'static Encoding {
    let sample = body.get(..SAMPLE).unwrap_or(body);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, sample.len() == body.len());
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(body: &[u8], content_type: &str) -> String {
        decode_text(body, Some(content_type.as_bytes()))
    }

    #[test]
    fn labels_are_found_in_every_spelling() {
        for (content_type, wanted) in [
            ("text/html; charset=\"UTF-8\"", Some("UTF-8")),
            ("text/html; charset=utf8; foo", Some("utf8")),
            ("text/html;Charset=ISO-8859-2", Some("ISO-8859-2")),
            ("text/html; charset=a; charset='b'", Some("b")),
            ("text/html", Some("ISO-8859-1")),
            ("text/html; charset", Some("ISO-8859-1")),
            ("application/json", Some("utf-8")),
            ("image/png", None),
            ("", None),
        ] {
            let found = encoding_of(Some(content_type.as_bytes()));
            assert_eq!(found.as_deref(), wanted, "{content_type}");
        }
        assert_eq!(encoding_of(None), None);
    }

    #[test]
    fn text_never_fails_and_follows_the_label() {
        let meta = "<meta charset=utf-8>é".as_bytes();
        assert_eq!(text(meta, "text/html"), "<meta charset=utf-8>Ã©");
        assert_eq!(text(meta, "text/html; charset=\"UTF-8\""), "<meta charset=utf-8>é");
        assert_eq!(text(b"\x80", "text/plain"), "\u{80}");
        assert_eq!(text(b"\x80", "text/plain; charset=ISO_8859-1:1987"), "\u{80}");
        assert_eq!(text(b"a\x80", "text/plain; charset=ANSI_X3.4-1968"), "a\u{fffd}");
        assert_eq!(text(b"\x80", "text/plain; charset=windows-1252"), "€");
        for label in ["none", "iso-8559-1", "", "utf-8"] {
            let content_type = format!("text/html; charset={label}");
            assert_eq!(text(b"a\xffb", &content_type), "a\u{fffd}b", "{label}");
        }
    }

    #[test]
    fn a_byte_order_mark_decides_where_nothing_else_does() {
        for content_type in ["text/html", "application/octet-stream", "text/html; charset=utf-8"] {
            assert_eq!(text(b"\xef\xbb\xbfh\xc3\xa9", content_type), "hé", "{content_type}");
        }
        assert_eq!(text(b"\xff\xfeh\0", "text/html"), "h");
        assert_eq!(text(b"\xfe\xff\0h", "text/html; charset=utf-16"), "h");
        assert_eq!(text(b"\xff\xfeh\0", "text/html; charset=UTF-16"), "h");
        assert_eq!(text(b"h\0", "text/html; charset=utf-16le"), "h");
    }

    #[test]
    fn detection_knows_utf8_and_looks_at_a_sample_only() {
        assert_eq!(decode_text("naïve café".as_bytes(), None), "naïve café");
        let mut long = vec![b'a'; SAMPLE];
        let in_sample = apparent_encoding(&long);
        long.extend_from_slice(&[0xc3, 0xa9].repeat(1000));
        assert_eq!(apparent_encoding(&long), in_sample);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_text(
            body in proptest::collection::vec(any::<u8>(), 0..100),
            content_type in ".{0,20}|text/html; charset=[a-z0-9_-]{0,12}",
        ) {
            let _ = text(&body, &content_type);
            let _ = encoding_of(Some(content_type.as_bytes()));
        }
    }
}
