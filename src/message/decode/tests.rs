use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;
use proptest::prelude::*;
use std::io::Write;

const PAGE: &[u8] = b"hello deflate, hello gzip, hello again";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn head(coding: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_str(coding).unwrap());
    headers
}

/// Hands out one byte at a time, as a slow server does.
struct Drip(io::Cursor<Vec<u8>>);

impl Read for Drip {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf.get_mut(..1).unwrap_or_default())
    }
}

fn run(body: &[u8], coding: &str, limits: DecodeLimits) -> Result<Vec<u8>, Error> {
    let whole = io::Cursor::new(body.to_vec());
    let drip = Drip(io::Cursor::new(body.to_vec()));
    let mut results = [Box::new(whole) as Box<dyn Read + Send>, Box::new(drip)].map(|body| {
        let mut out = Vec::new();
        let mut decoded = decode(body, &head(coding), limits);
        match decoded.read_to_end(&mut out) {
            Ok(_) => Ok(out),
            Err(error) => {
                // A failed body stays failed.
                assert!(decoded.read(&mut [0; 8]).is_err());
                Err(Error::from_io(error, Phase::Prepare, Fault::Local))
            }
        }
    });
    if let [Ok(whole), Ok(drip)] = &results {
        assert_eq!(whole, drip);
    }
    let [first, second] = &mut results;
    assert_eq!(first.is_ok(), second.is_ok());
    std::mem::replace(first, Ok(Vec::new()))
}

fn ok(body: &[u8], coding: &str) -> Vec<u8> {
    run(body, coding, DecodeLimits::default()).unwrap()
}

fn kind(body: &[u8], coding: &str, limits: DecodeLimits) -> ErrorKind {
    let error = run(body, coding, limits).unwrap_err();
    assert_eq!((error.phase(), error.fault()), (Phase::Body, Fault::Target));
    error.kind()
}

#[test]
fn names_in_every_form() {
    for coding in ["gzip", "GZIP", "x-gzip", "X-GZip", "gzip, identity", "identity,gzip,", " gzip"]
    {
        assert_eq!(ok(&gzip(PAGE), coding), PAGE, "{coding}");
    }
    assert_eq!(ok(&gzip(&gzip(PAGE)), "gzip, gzip"), PAGE);
    assert_eq!(ok(&gzip(&raw(PAGE)), "deflate, gzip"), PAGE);
    assert_eq!(ok(PAGE, "identity"), PAGE);
    let mut lines = head("deflate");
    lines.append(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let mut out = Vec::new();
    let body = Box::new(io::Cursor::new(gzip(&zlib(PAGE))));
    decode(body, &lines, DecodeLimits::default()).read_to_end(&mut out).unwrap();
    assert_eq!(out, PAGE);
}

#[test]
fn an_unknown_coding_leaves_the_bytes_as_they_came() {
    for coding in ["exi", "gzip, exi", "exi, gzip", "gzip;q=1"] {
        assert_eq!(ok(&gzip(PAGE), coding), gzip(PAGE), "{coding}");
    }
    let body = || Box::new(io::empty());
    assert!(decode(body(), &head("exi"), DecodeLimits::default()).is_undecoded());
    assert!(!decode(body(), &head("gzip"), DecodeLimits::default()).is_undecoded());
}

#[test]
fn what_is_not_to_be_decoded_comes_as_it_came_under_the_same_ceilings() {
    let coded = gzip(b"text");
    let raw = |limits| {
        let body = Box::new(io::Cursor::new(coded.clone()));
        let mut reader = undecoded(body, &head("gzip"), limits);
        let mut bytes = Vec::new();
        let read = reader.read_to_end(&mut bytes);
        (read.map(|_| bytes), reader.is_undecoded(), reader.wire_bytes())
    };
    let (bytes, undecoded, wire) = raw(DecodeLimits::default());
    assert_eq!((bytes.unwrap(), undecoded, wire), (coded.clone(), true, coded.len() as u64));
    assert!(raw(DecodeLimits { wire: Some(9), decoded: None }).0.is_err());
    assert!(raw(DecodeLimits { wire: None, decoded: Some(9) }).0.is_err());
}

#[test]
fn a_body_without_a_byte_has_nothing_to_decode() {
    for coding in ["gzip", "deflate", "br", "zstd", "gzip, gzip"] {
        assert_eq!(ok(b"", coding), b"", "{coding}");
    }
}

#[test]
fn members_follow_members_and_padding_is_ignored() {
    let with = |tail: &[u8]| [&gzip(PAGE)[..], tail].concat();
    for tail in [&b"garbage!"[..], &[0; 16], b"\x1f", &[0; 100_000]] {
        assert_eq!(ok(&with(tail), "gzip"), PAGE, "{} bytes", tail.len());
    }
    assert_eq!(ok(&with(&gzip(b" and more")), "gzip"), [PAGE, b" and more"].concat());
    assert_eq!(ok(&[&zlib(PAGE)[..], b"\r\n"].concat(), "deflate"), PAGE);
}

#[test]
fn both_kinds_of_deflate() {
    for bytes in [&b""[..], b"x", PAGE, &[7; 100_000]] {
        assert_eq!(ok(&zlib(bytes), "deflate"), bytes);
        assert_eq!(ok(&raw(bytes), "Deflate"), bytes);
    }
    assert_eq!(
        ok(b"x\x9c\xcbH\xcd\xc9\xc9WHIM\xcbI,I\x05\x00#\x0c\x05\n", "deflate"),
        b"hello deflate"
    );
    assert_eq!(ok(b"\xcbH\xcd\xc9\xc9WHIM\xcbI,I\x05\x00", "deflate"), b"hello deflate");
}

#[test]
fn what_is_cut_or_corrupt_is_an_error() {
    let none = DecodeLimits::default();
    for coded in [gzip(PAGE), zlib(PAGE), raw(PAGE)] {
        let coding = if coded.starts_with(b"\x1f\x8b") { "gzip" } else { "deflate" };
        for cut in 1..coded.len() {
            assert_eq!(kind(&coded[..cut], coding, none), ErrorKind::ContentDecoding, "{cut}");
        }
    }
    assert_eq!(kind(PAGE, "gzip", none), ErrorKind::ContentDecoding);
    let mut wrong_sum = gzip(PAGE);
    let at = wrong_sum.len() - 6;
    wrong_sum[at] ^= 1;
    assert_eq!(kind(&wrong_sum, "gzip", none), ErrorKind::ContentDecoding);
}

#[test]
fn ceilings_are_errors_with_both_numbers() {
    let bomb = gzip(&vec![0; 32 << 20]);
    let limits = DecodeLimits { decoded: Some(1_000_000), wire: None };
    let error = run(&bomb, "gzip", limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("1000000 decoded bytes"), "{error}");
    assert!(error.received_bytes().unwrap() < bomb.len() as u64);

    for (decoded, wire, fits) in [
        (Some(PAGE.len() as u64), None, true),
        (Some(PAGE.len() as u64 - 1), None, false),
        (Some(0), None, false),
        (None, Some(PAGE.len() as u64), true),
        (None, Some(PAGE.len() as u64 - 1), false),
        (None, Some(0), false),
    ] {
        let result = run(PAGE, "identity", DecodeLimits { decoded, wire });
        match result {
            Ok(out) => assert!(fits && out == PAGE, "{decoded:?} {wire:?}"),
            Err(error) => {
                assert!(!fits && error.kind() == ErrorKind::TooLarge, "{decoded:?} {wire:?}");
            }
        }
    }
    assert_eq!(
        run(b"", "identity", DecodeLimits { decoded: Some(0), wire: Some(0) }).unwrap(),
        b""
    );
}

#[test]
fn a_declared_length_beyond_the_ceiling_stops_at_the_first_byte() {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("5000"));
    let limits = DecodeLimits { wire: Some(100), decoded: None };
    let mut body = decode(Box::new(Drip(io::Cursor::new(vec![0; 5000]))), &headers, limits);
    let error = body.read(&mut [0; 64]).unwrap_err();
    let error = Error::from_io(error, Phase::Prepare, Fault::Local);
    assert_eq!((error.kind(), error.received_bytes()), (ErrorKind::TooLarge, Some(1)));
    assert!(error.message().contains("5000") && error.message().contains("100"), "{error}");
    // The answer to HEAD declares a length and has no body.
    let mut none = decode(Box::new(io::empty()), &headers, limits);
    assert_eq!(none.read(&mut [0; 64]).unwrap(), 0);
}

#[test]
fn chains_are_bounded() {
    let five = (0..5).fold(PAGE.to_vec(), |body, _| gzip(&body));
    assert_eq!(ok(&five, "gzip, gzip, gzip, gzip, gzip"), PAGE);
    let many = ["gzip"; 200].join(", ");
    assert_eq!(kind(&five, &many, DecodeLimits::default()), ErrorKind::ContentDecoding);
}

#[test]
fn wire_bytes_are_counted_and_errors_from_below_pass_through() {
    let coded = gzip(PAGE);
    let mut decoded =
        decode(Box::new(io::Cursor::new(coded.clone())), &head("gzip"), DecodeLimits::default());
    let wire = decoded.wire();
    assert_eq!(wire.get(), 0);
    io::copy(&mut decoded, &mut io::sink()).unwrap();
    assert_eq!((wire.get(), decoded.wire_bytes()), (coded.len() as u64, coded.len() as u64));

    struct Silent;
    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(Error::new(ErrorKind::ReadTimeout, Phase::Body, Fault::Proxy, "silence").into_io())
        }
    }
    let body = Box::new(io::Cursor::new(coded[..20].to_vec()).chain(Silent));
    let error =
        io::copy(&mut decode(body, &head("gzip"), DecodeLimits::default()), &mut io::sink())
            .unwrap_err();
    let error = Error::from_io(error, Phase::Prepare, Fault::Local);
    assert_eq!((error.kind(), error.fault()), (ErrorKind::ReadTimeout, Fault::Proxy));
}

#[cfg(feature = "brotli")]
#[test]
fn brotli() {
    let coded = b"\x8f\x02\x80\x68\x65\x6c\x6c\x6f\x0a\x03";
    assert_eq!(ok(coded, "br"), b"hello\n");
    assert_eq!(ok(&[&coded[..], b"tail"].concat(), "BR"), b"hello\n");
    for cut in 1..coded.len() {
        let none = DecodeLimits::default();
        assert_eq!(kind(&coded[..cut], "br", none), ErrorKind::ContentDecoding, "{cut}");
    }
}

#[cfg(feature = "zstd")]
#[test]
fn zstandard() {
    let coded = zstd::encode_all(PAGE, 3).unwrap();
    assert_eq!(ok(&coded, "zstd"), PAGE);
    assert_eq!(ok(&[&coded[..], &coded[..]].concat(), "zstd"), [PAGE, PAGE].concat());
    assert_eq!(ok(&[&coded[..], b"tail"].concat(), "zstd"), PAGE);
    for cut in 1..coded.len() {
        let none = DecodeLimits::default();
        assert_eq!(kind(&coded[..cut], "zstd", none), ErrorKind::ContentDecoding, "{cut}");
    }
}

proptest! {
    #[test]
    fn any_bytes_decode_or_fail_without_a_panic(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        coding in "(gzip|deflate|br|zstd)(, (gzip|deflate|br|zstd)){0,2}",
        prefix in proptest::sample::select(vec![&b""[..], b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x78\x9c", b"\x28\xb5\x2f\xfd"]),
    ) {
        let limits = DecodeLimits { decoded: Some(1 << 20), wire: None };
        let _ = run(&[prefix, &body].concat(), &coding, limits);
    }

    #[test]
    fn what_was_coded_comes_back(body in proptest::collection::vec(any::<u8>(), 0..5000)) {
        prop_assert_eq!(ok(&gzip(&body), "gzip"), body.clone());
        prop_assert_eq!(ok(&zlib(&body), "deflate"), body.clone());
        prop_assert_eq!(ok(&raw(&body), "deflate"), body);
    }
}
