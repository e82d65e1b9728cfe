//! One coding, taken off.

use super::source::Source;
use crate::error::{Error, ErrorKind, Fault, Phase};
use flate2::bufread::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::{self, BufRead, Read};

/// A coding that this build decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    #[cfg(feature = "brotli")]
    Brotli,
    #[cfg(feature = "zstd")]
    Zstd,
}

impl Coding {
    /// RFC 9110 8.4.1: names compare without case, and `x-gzip` is gzip.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        let known: &[(&[u8], Self)] = &[
            (b"gzip", Self::Gzip),
            (b"x-gzip", Self::Gzip),
            (b"deflate", Self::Deflate),
            #[cfg(feature = "brotli")]
            (b"br", Self::Brotli),
            #[cfg(feature = "zstd")]
            (b"zstd", Self::Zstd),
        ];
        known.iter().find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, coding)| *coding)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            #[cfg(feature = "brotli")]
            Self::Brotli => "br",
            #[cfg(feature = "zstd")]
            Self::Zstd => "zstd",
        }
    }
}

/// How much is read and thrown away after the coded stream, so that the connection can be kept.
const TRAILING: usize = 64 * 1024;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
#[cfg(feature = "zstd")]
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// RFC 9659: the largest window of `Content-Encoding: zstd` is 8 MiB.
#[cfg(feature = "zstd")]
const ZSTD_WINDOW_LOG: u32 = 23;

/// A reader that takes one coding off.
pub(super) struct Layer {
    coding: Coding,
    state: State,
}

enum State {
    /// No byte was looked at yet, or the next member begins.
    Begin(Source),
    Gzip(GzDecoder<Source>),
    Inflate(Source, Box<Decompress>),
    #[cfg(feature = "brotli")]
    Brotli(Box<brotli_decompressor::Decompressor<Source>>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::read::Decoder<'static, Source>),
    Trailing(Source),
    End,
}

impl Layer {
    pub(super) fn new(inner: Box<dyn Read + Send>, coding: Coding) -> Self {
        Self { coding, state: State::Begin(Source::new(inner)) }
    }

    /// Picks the decoder by the first bytes; a body without any has nothing to decode.
    fn begin(&self, mut source: Source) -> io::Result<State> {
        let first = source.peek(2)?;
        if first.is_empty() {
            return Ok(State::End);
        }
        Ok(match self.coding {
            Coding::Gzip => State::Gzip(GzDecoder::new(source)),
            Coding::Deflate => {
                let zlib = is_zlib(first);
                State::Inflate(source, Box::new(Decompress::new(zlib)))
            }
            #[cfg(feature = "brotli")]
            Coding::Brotli => {
                State::Brotli(Box::new(brotli_decompressor::Decompressor::new(source, 4096)))
            }
            #[cfg(feature = "zstd")]
            Coding::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                State::Zstd(decoder.single_frame())
            }
        })
    }

    fn step(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = match &mut self.state {
                State::Gzip(decoder) => decoder.read(buf)?,
                State::Inflate(source, inflate) => read_inflate(source, inflate, buf)?,
                #[cfg(feature = "brotli")]
                State::Brotli(decoder) => decoder.read(buf)?,
                #[cfg(feature = "zstd")]
                State::Zstd(decoder) => decoder.read(buf)?,
                State::Begin(_) | State::Trailing(_) => 0,
                State::End => return Ok(0),
            };
            if count > 0 {
                return Ok(count);
            }
            self.state = match std::mem::replace(&mut self.state, State::End) {
                State::Begin(source) => self.begin(source)?,
                State::Gzip(decoder) => another(decoder.into_inner(), GZIP_MAGIC)?,
                State::Inflate(source, _) => State::Trailing(source),
                #[cfg(feature = "brotli")]
                State::Brotli(decoder) => State::Trailing(decoder.into_inner()),
                #[cfg(feature = "zstd")]
                State::Zstd(decoder) => another(decoder.finish(), ZSTD_MAGIC)?,
                State::Trailing(mut source) => {
                    skip(&mut source)?;
                    State::End
                }
                State::End => State::End,
            };
        }
    }
}

impl Read for Layer {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        self.step(buf).map_err(|error| {
            // What came from below is an error of ours already; the rest is the decoder's.
            if error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).is_some() {
                return error;
            }
            let text = format!("the body is not valid {}: {error}", self.coding.name());
            Error::new(ErrorKind::ContentDecoding, Phase::Body, Fault::Target, text).into_io()
        })
    }
}

/// The next member where one begins; whatever else follows the last one is padding.
fn another(mut source: Source, magic: &[u8]) -> io::Result<State> {
    let next = source.peek(magic.len())? == magic;
    Ok(if next { State::Begin(source) } else { State::Trailing(source) })
}

/// Reads on to the end of the body, within bounds, so that its framing is complete.
fn skip(source: &mut Source) -> io::Result<()> {
    let mut skipped = 0;
    while skipped < TRAILING {
        let count = source.fill_buf()?.len();
        if count == 0 {
            break;
        }
        source.consume(count);
        skipped += count;
    }
    Ok(())
}

/// RFC 1950 2.2: method 8, a window of at most 32 KiB, and a check that makes it divisible by 31.
/// Servers send raw deflate under the same name.
fn is_zlib(first: &[u8]) -> bool {
    let [method, flags] = first else { return false };
    method & 0x0f == 8
        && method >> 4 <= 7
        && (u16::from(*method) << 8 | u16::from(*flags)).is_multiple_of(31)
}

/// As flate2's reader, but a stream that ends early is an error and not an end.
fn read_inflate(
    source: &mut Source,
    inflate: &mut Decompress,
    buf: &mut [u8],
) -> io::Result<usize> {
    loop {
        let input = source.fill_buf()?;
        let at_end = input.is_empty();
        let before = (inflate.total_in(), inflate.total_out());
        let flush = if at_end { FlushDecompress::Finish } else { FlushDecompress::None };
        let status = inflate.decompress(input, buf, flush)?;
        let as_count = |count: u64| usize::try_from(count).map_err(io::Error::other);
        let consumed = as_count(inflate.total_in() - before.0)?;
        let written = as_count(inflate.total_out() - before.1)?;
        source.consume(consumed);
        if written > 0 || status == Status::StreamEnd {
            return Ok(written);
        }
        if at_end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if consumed == 0 {
            // Neither input taken nor output made: it would go on like this for ever.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no progress"));
        }
    }
}
