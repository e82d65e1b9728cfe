//! Request bodies: those that can be sent again, and those that cannot.

use bytes::Bytes;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

/// The body of a request.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// In memory; sent again byte for byte.
    Bytes(Bytes),
    /// Can be opened as often as needed: a file, say. The length is sent where it is known.
    Replayable(Arc<dyn Fn() -> io::Result<(Box<dyn Read + Send>, Option<u64>)> + Send + Sync>),
    /// Can be read once. A second attempt is `BodyNotReplayable`, never an empty resend. Cloning
    /// shares the one reader.
    OneShot(Arc<std::sync::Mutex<Option<Box<dyn Read + Send>>>>, Option<u64>),
}

impl Body {
    /// Whether a second attempt can send the same bytes.
    pub fn is_replayable(&self) -> bool {
        !matches!(self, Self::OneShot(..))
    }
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Replayable(_) => f.write_str("Replayable"),
            Self::OneShot(_, length) => write!(f, "OneShot({length:?})"),
        }
    }
}
