//! nginx as origin, on a plain port and on three TLS ports.

use std::net::SocketAddr;

use longhaul::lab::Ca;

use super::process::{Ground, Program};
use super::require;

/// A running nginx.
///
/// - `/page/N`, `/small/N`, `/large/N` for any N: an HTML page of 30 KiB, 1 KiB, 1 MiB;
/// - `/throttled`: 503 with `Retry-After: 2`; `/limited`: 429 with `Retry-After: 1`;
/// - `/forbidden`, `/gone`, `/broken`: 403, 410, 500; anything else: 404;
/// - `/moved`: 302 to `/small/1`;
/// - `/untagged/N`: the page of 1 MiB without an `ETag`;
/// - `/slow/N`: the page of 30 KiB at 64 KiB/s, 8 KiB at a time;
/// - `/echo`: the request's `User-Agent`, scheme and protocol as text.
///
/// Pages are compressed for clients that accept gzip.
pub(crate) struct Nginx {
    program: Program,
    ca: Ca,
}

pub(crate) const PAGE: usize = 30 * 1024;
pub(crate) const SMALL: usize = 1024;
pub(crate) const LARGE: usize = 1024 * 1024;

impl Nginx {
    pub(crate) fn start() -> Option<Self> {
        let nginx = require("nginx")?;
        let ca = Ca::new().unwrap();
        let program = Program::start(&nginx, 4, |ground| {
            let configuration = configuration(ground, &ca);
            let output = ground.place("error.log");
            // The first error log is opened before the configuration is read.
            vec!["-e".into(), output, "-p".into(), ground.place(""), "-c".into(), configuration]
        });
        Some(Self { program, ca })
    }

    pub(crate) fn plain(&self) -> SocketAddr {
        self.program.address(0)
    }

    pub(crate) fn tls(&self) -> SocketAddr {
        self.program.address(1)
    }

    /// `https://localhost:PORT` and a path, on a port that demands a certificate of
    /// [`ca`](Self::ca) from clients; `/who` answers with the subject of the one that was shown.
    pub(crate) fn mutual_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.program.address(2).port())
    }

    /// `https://localhost:PORT` and a path, on a port that speaks TLS 1.2 alone.
    pub(crate) fn old_tls_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.program.address(3).port())
    }

    /// `http://127.0.0.1:PORT` and a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.plain())
    }

    /// `https://localhost:PORT` and a path.
    pub(crate) fn tls_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.tls().port())
    }

    /// The authority of the TLS port, for `--cacert`.
    pub(crate) fn ca(&self) -> &Ca {
        &self.ca
    }

    /// The lines `PORT "REQUEST LINE" STATUS BYTES conn=N req=N "USER AGENT"`.
    pub(crate) fn access_log(&self) -> String {
        self.program.log("access.log")
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

fn page(length: usize) -> Vec<u8> {
    let mut page = b"<!doctype html><title>A page</title>\n".to_vec();
    let mut number: u32 = 1;
    while page.len() < length {
        // Text that compresses as pages do, about four to one.
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        page.extend_from_slice(format!("<p class=\"item\">Item {number:x}</p>\n").as_bytes());
    }
    page.truncate(length);
    page
}

fn configuration(ground: &Ground, ca: &Ca) -> String {
    for (name, length) in [("page", PAGE), ("small", SMALL), ("large", LARGE)] {
        ground.write(&format!("www/{name}.html"), page(length));
    }
    let (certificate, key) = (ground.place("cert.pem"), ground.place("key.pem"));
    ca.issue(["localhost", "127.0.0.1", "shop.test"])
        .unwrap()
        .write_pem(&certificate, &key)
        .unwrap();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("    {name}_temp_path {};\n", ground.place(name)))
        .collect();
    let [plain, tls, mutual, old] = ground.ports[..] else { panic!("four ports") };
    let authority = ground.write("ca.pem", ca.pem());
    let [root, pid, error, access] =
        ["www", "nginx.pid", "error.log", "access.log"].map(|name| ground.place(name));
    ground.write(
        "nginx.conf",
        format!(
            r#"
daemon off;
user root;
worker_processes 1;
pid {pid};
error_log {error} warn;
events {{ worker_connections 4096; }}
http {{
    log_format lab '$server_port "$request" $status $body_bytes_sent '
                   'conn=$connection req=$connection_requests "$http_user_agent"';
    access_log {access} lab;
{temporary}
    types {{ text/html html; text/plain txt; }}
    default_type text/html;
    charset utf-8;
    gzip on;
    gzip_proxied any;
    gzip_types text/plain;
    keepalive_requests 1000000;
    keepalive_timeout 60s;
    lingering_close on;
    server {{
        listen 127.0.0.1:{plain} backlog=1024;
        listen 127.0.0.1:{tls} ssl backlog=1024;
        server_name localhost;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        root {root};
        location /page/ {{ try_files /page.html =404; }}
        location /small/ {{ try_files /small.html =404; }}
        location /large/ {{ try_files /large.html =404; }}
        location /untagged/ {{ etag off; try_files /large.html =404; }}
        location /slow/ {{ gzip off; limit_rate 64k; sendfile_max_chunk 8k; try_files /page.html =404; }}
        location = /throttled {{ add_header Retry-After 2 always; return 503 "later\n"; }}
        location = /limited {{ add_header Retry-After 1 always; return 429 "slower\n"; }}
        location = /forbidden {{ return 403 "no\n"; }}
        location = /gone {{ return 410 "gone\n"; }}
        location = /broken {{ return 500 "broken\n"; }}
        location = /moved {{ return 302 /small/1; }}
        location = /echo {{
            default_type text/plain;
            return 200 "$http_user_agent|$scheme|$server_protocol\n";
        }}
        location / {{ return 404 "nothing\n"; }}
    }}
    server {{
        listen 127.0.0.1:{mutual} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_client_certificate {authority};
        ssl_verify_client on;
        root {root};
        location /small/ {{ try_files /small.html =404; }}
        location = /who {{ default_type text/plain; return 200 "$ssl_client_s_dn\n"; }}
    }}
    server {{
        listen 127.0.0.1:{old} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2;
        root {root};
        location /small/ {{ try_files /small.html =404; }}
    }}
}}
"#
        ),
    )
}
