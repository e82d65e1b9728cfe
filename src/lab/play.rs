//! Plays a script on a connection.

use std::io;
use std::sync::Arc;

use super::channel::{Channel, Framing};
use super::received::Received;
use super::script::{Script, Step};
use super::server::Shared;

/// What a script needs from the server that plays it.
pub(super) trait Cast {
    /// Reads, counts and logs the next request; `None` at the end of the connection.
    fn next(&mut self, channel: &mut Channel) -> io::Result<Option<Received>>;

    /// Opens the way to the target and passes bytes until both sides have ended.
    fn tunnel(&mut self, channel: &mut Channel) -> io::Result<()>;
}

/// Nobody to go on with: a request or a target ends the connection.
pub(super) struct NoCast;

impl Cast for NoCast {
    fn next(&mut self, _channel: &mut Channel) -> io::Result<Option<Received>> {
        Ok(None)
    }

    fn tunnel(&mut self, _channel: &mut Channel) -> io::Result<()> {
        Ok(())
    }
}

/// Plays to the end; the channel comes back where the script left it open.
///
/// `unread` is the framing of a request body that the handler was not shown; what a script did
/// not sip of it is read at the end, so that the next request is found.
pub(super) fn play(
    script: &Script,
    mut channel: Channel,
    shared: &Arc<Shared>,
    mut current: Option<Received>,
    mut unread: Option<Framing>,
    cast: &mut impl Cast,
) -> io::Result<Option<Channel>> {
    for step in script.steps() {
        match step {
            Step::Send(bytes) => channel.send(bytes)?,
            Step::Reply(reply) => {
                let head = current.as_ref().is_some_and(|request| request.method == "HEAD");
                channel.send(&reply.render(head))?;
            }
            Step::Drip { bytes, every } => {
                for byte in bytes.iter() {
                    channel.send(&[*byte])?;
                    if !shared.rest(*every) {
                        return Ok(None);
                    }
                }
            }
            Step::Repeat { bytes, times, every } => {
                for _ in 0..*times {
                    channel.send(bytes)?;
                    if !every.is_zero() && !shared.rest(*every) {
                        return Ok(None);
                    }
                }
            }
            Step::Pause(duration) => {
                if !shared.rest(*duration) {
                    return Ok(None);
                }
            }
            Step::Sip { bytes, every } => {
                // The chunks of the framing do not matter here, only that reading is slow.
                let mut missing = match unread.take() {
                    Some(Framing::Length(length)) => length,
                    Some(_) => u64::MAX,
                    None => 0,
                };
                while missing > 0 {
                    let count = channel.ahead().len().min(*bytes);
                    if count == 0 && channel.fill()? == 0 {
                        return Ok(None);
                    }
                    let count = (count as u64).min(missing);
                    channel.take(usize::try_from(count).unwrap_or(usize::MAX));
                    missing -= count;
                    if count > 0 && !shared.rest(*every) {
                        return Ok(None);
                    }
                }
            }
            Step::Recv => {
                if channel.ahead().is_empty() && channel.fill()? == 0 {
                    return Ok(None);
                }
                channel.take(usize::MAX / 2);
            }
            Step::Next => match cast.next(&mut channel)? {
                Some(request) => current = Some(request),
                None => return Ok(None),
            },
            Step::Fin => return channel.finish().map(|()| None),
            Step::Close => return Ok(None),
            Step::Rst => return channel.reset().map(|()| None),
            Step::Hold => return channel.swallow(usize::MAX).map(|()| None),
            Step::Tunnel => return cast.tunnel(&mut channel).map(|()| None),
        }
    }
    if let Some(framing) = unread {
        channel.body(framing, |_| Ok(()))?;
    }
    Ok(Some(channel))
}
