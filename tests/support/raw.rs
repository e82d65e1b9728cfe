//! A client of the barest kind: bytes out, bytes in.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use longhaul::lab::Ca;

/// A generous ceiling for whatever must happen "at once".
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    // `write!` makes several small writes, which would wait for one another.
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

/// One request on a fresh connection, and everything that comes until the end.
pub(crate) fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_ref()).unwrap();
    to_end(&mut stream)
}

pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    exchange(address, format!("GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n"))
}

pub(crate) fn to_end(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Everything that comes, and how it ended.
pub(crate) fn to_failure(stream: &mut impl Read) -> (String, Option<io::ErrorKind>) {
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes).err().map(|error| error.kind());
    (bytes.iter().map(|byte| char::from(*byte)).collect(), end)
}

/// Exactly as many bytes as `wanted` has, compared with it.
pub(crate) fn expect(stream: &mut impl Read, wanted: &str) {
    let mut bytes = vec![0; wanted.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), wanted);
}

pub(crate) fn client_config(ca: &Ca) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots
        .add(rustls::pki_types::CertificateDer::from_pem_slice(ca.pem().as_bytes()).unwrap())
        .unwrap();
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    Arc::new(config)
}

pub(crate) fn tls<S: Read + Write>(
    config: &Arc<ClientConfig>,
    name: &str,
    stream: S,
) -> StreamOwned<ClientConnection, S> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), stream)
}
