//! The endpoint that tells a client what arrived of its request.

use super::received::Received;
use super::script::Reply;

/// Answers with the request as it arrived: a JSON object with the address of the client as
/// `origin`, `method`, `target`, and `headers` as a list of pairs in the order of the wire.
///
/// For [`OriginBuilder::handler`](super::OriginBuilder::handler): what stands between a client and
/// this endpoint shows in its answer.
///
/// ```
/// use longhaul::lab::{Origin, reflect};
///
/// let endpoint = Origin::builder().handler(reflect).start()?;
/// # Ok::<(), longhaul::Error>(())
/// ```
pub fn reflect(request: &Received) -> Reply {
    let answer = serde_json::json!({
        "origin": request.peer.ip(),
        "method": request.method,
        "target": request.target,
        "headers": request.headers,
    });
    Reply::ok(answer.to_string()).header("Content-Type", "application/json")
}
