//! Loopback servers that say any bytes at any pace, on plain and TLS ports.
//!
//! A policy for a long run is only as good as the failures it was tried on, and the failures that
//! matter (a reset after half a body, a proxy that drips its reply, a `Retry-After` in a language
//! of its own) are the ones that no well-behaved server can be asked for. So the servers here do
//! not implement HTTP first and misbehave as an afterthought: what goes out is a [`Script`], a
//! list of [`Step`]s that are bytes, pauses and ends of connections, and a well-formed [`Reply`]
//! is merely the most common step.
//!
//! Three servers share that idea and one body of code:
//!
//! - [`Origin`] reads requests and plays what its handler answers;
//! - [`HttpProxy`] forwards absolute-form requests and opens CONNECT tunnels, or plays a script;
//! - [`SocksProxy`] does the same for SOCKS 4, 4a and 5.
//!
//! Each can act on a connection before it has read anything (`on_accept`), whatever it speaks after
//! that. All of them count and log what they saw, so that a test can assert the wire and not a guess
//! about it. They bind to the loopback address, look no name up (names are mapped by hand), use
//! one small thread per connection, and stop when they are dropped: a blocked accept, read, pause
//! or tunnel wakes at once. A panic in a handler comes out of [`Origin::join`], or of the drop.
//!
//! [`hostile`] holds the failures seen in the field by name, and [`Ca`] a certificate authority
//! that lives as long as the test.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! use longhaul::lab::{Origin, Reply};
//!
//! let origin = Origin::builder().handler(|request| Reply::ok(request.path.clone())).start()?;
//! let mut stream = std::net::TcpStream::connect(origin.address())?;
//! stream.write_all(b"GET /hello HTTP/1.0\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.ends_with("\r\n\r\n/hello"));
//! assert_eq!(origin.counts().requests, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod channel;
mod dial;
pub mod hostile;
mod http_proxy;
mod origin;
mod play;
mod ports;
mod received;
mod reflect;
mod relay;
mod script;
mod server;
mod socks_proxy;
mod socks_wire;
mod tls;

pub use http_proxy::{HttpProxy, HttpProxyBuilder, ProxyCounts};
pub use origin::{Origin, OriginBuilder};
pub use ports::{ClosedPort, SilentPort};
pub use received::Received;
pub use reflect::reflect;
pub use script::{Reply, Script, Step};
pub use server::Counts;
pub use socks_proxy::{SocksCounts, SocksProxy, SocksProxyBuilder};
pub use socks_wire::{AddressKind, SocksRequest};
pub use tls::{Ca, Issued};
