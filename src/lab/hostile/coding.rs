//! Bodies under a content coding, well and badly made.

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::{Compression, Crc};

use super::super::script::{Reply, Script};

/// How much the bomb unpacks to.
const BOMB: u64 = 64 << 20;

/// The behaviours that are about content codings.
pub(super) fn script(name: &str) -> Option<Script> {
    let under = |coding: &str, body: Vec<u8>| {
        Script::from(Reply::ok(body).header("Content-Encoding", coding))
    };
    let text: &[u8] = b"hello gzip";
    Some(match name {
        "gz" => under("gzip", gzip(text)),
        "gz-trail-garbage" => under("gzip", [&gzip(text)[..], b"garbage!"].concat()),
        "gz-trail-zero" => under("gzip", [&gzip(text)[..], &[0; 16]].concat()),
        "gz-empty-body" => under("gzip", Vec::new()),
        "gz-204" => Reply::new(204).header("Content-Encoding", "gzip").into(),
        "gz-304" => Reply::new(304).header("Content-Encoding", "gzip").into(),
        "gz-upper" => under("GZIP", gzip(text)),
        "gz-x" => under("x-gzip", gzip(text)),
        "gz-list" => under("gzip, identity", gzip(text)),
        "gz-twice" => under("gzip, gzip", gzip(&gzip(text))),
        "gz-members" => under("gzip", [gzip(b"hello "), gzip(b"gzip")].concat()),
        "gz-cut" => {
            let whole = gzip(text);
            under("gzip", whole.get(..whole.len() / 2).unwrap_or_default().to_vec())
        }
        "gz-bomb" => Reply::new(200).header("Content-Encoding", "gzip").shared_body(bomb()).into(),
        "deflate-zlib" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            under("deflate", written(encoder.write_all(b"hello deflate"), encoder.finish()))
        }
        "deflate-raw" => {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            under("deflate", written(encoder.write_all(b"hello deflate"), encoder.finish()))
        }
        "ce-many" => under(&["gzip"; 200].join(", "), gzip(text)),
        "ce-unknown" => under("rot13", b"uryyb".to_vec()),
        _ => return None,
    })
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    written(encoder.write_all(bytes), encoder.finish())
}

/// One gzip member that unpacks to zeros without end, or nearly.
///
/// The same megabyte is compressed once and repeated: a flushed block ends on a byte boundary and
/// needs nothing of what was before it.
fn bomb() -> Arc<[u8]> {
    static MADE: OnceLock<Arc<[u8]>> = OnceLock::new();
    Arc::clone(MADE.get_or_init(|| {
        const PIECE: u64 = 1 << 20;
        let zeros = vec![0; 1 << 20];
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        let flushed = encoder.write_all(&zeros).and_then(|()| encoder.flush());
        let piece = written(flushed, Ok(encoder.get_ref().clone()));
        let mut one = Crc::new();
        one.update(&zeros);
        let mut all = Crc::new();
        let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff];
        for _ in 0..BOMB / PIECE {
            out.extend_from_slice(&piece);
            all.combine(&one);
        }
        // An empty final block, then the checksum and the length.
        out.extend_from_slice(&[3, 0]);
        out.extend_from_slice(&all.sum().to_le_bytes());
        out.extend_from_slice(&all.amount().to_le_bytes());
        out.into()
    }))
}

/// Compression into memory has no way to fail; were it otherwise, the body would be empty.
fn written(put: io::Result<()>, end: io::Result<Vec<u8>>) -> Vec<u8> {
    put.and(end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn the_bomb_is_one_valid_member() {
        let bomb = bomb();
        assert!(bomb.len() < 100_000, "{}", bomb.len());
        let mut decoder = GzDecoder::new(&*bomb);
        let mut buffer = vec![0; 1 << 20];
        let mut total = 0;
        loop {
            match decoder.read(&mut buffer).unwrap() {
                0 => break,
                count => total += count as u64,
            }
        }
        assert_eq!(total, BOMB);
    }
}
