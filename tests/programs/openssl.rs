//! Certificates, keys and a server as `openssl` makes them.

use super::job::Job;
use super::support::openssl::{OpenSsl, Server};
use serde_json::Value;

/// Files of `openssl` in the folder of a job: `self.crt` of a server that nobody vouches for, and
/// the authority `ca.crt` of clients.
fn ground() -> Option<(Job, OpenSsl)> {
    let job = Job::new([""; 0]);
    let openssl = OpenSsl::within(job.path("").as_path())?;
    for (name, subject) in
        [("self", "/CN=localhost -addext subjectAltName=DNS:localhost"), ("ca", "/CN=authority")]
    {
        openssl.run(&format!(
            "req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.crt -days 2 -subj \
             {subject}"
        ));
    }
    Some((job, openssl))
}

/// The record of one request.
fn ask(job: &Job, server: &Server, flags: &[&str]) -> Value {
    job.write("urls.txt", server.url());
    let _ = std::fs::remove_file(job.path("results.jsonl"));
    job.run(&[flags, &["--total", "0"]].concat());
    job.records().remove(0)
}

#[track_caller]
fn assert_refused(record: &Value, kind: &str, text: &str) {
    let error = &record["error"];
    assert_eq!((&error["kind"], &error["phase"]), (&kind.into(), &"tls".into()), "{record}");
    assert_eq!((&error["fault"], &error["requests_name"]), (&"target".into(), &"SSLError".into()));
    assert!(error["message"].as_str().unwrap().contains(text), "{record}");
}

const TRUST: [&str; 2] = ["--cacert", "self.crt"];

/// It is marked as that of an authority, and requests believes it all the same.
#[test]
fn the_certificate_of_openssl_req_is_believed_where_it_is_named() {
    let Some((job, openssl)) = ground() else { return };
    let server = openssl.serve("-cert self.crt -key self.key");
    assert_eq!(ask(&job, &server, &TRUST)["status"], 200);
    assert_refused(&ask(&job, &server, &[]), "certificate", "is self-signed");
    assert_refused(&ask(&job, &server, &["--cacert", "ca.crt"]), "certificate", "is self-signed");
}

#[test]
fn keys_of_every_form_are_read() {
    let Some((job, openssl)) = ground() else { return };
    for (make, key) in [
        ("genrsa -traditional -out KEY 2048", "pkcs1.key"),
        ("genpkey -algorithm rsa -out KEY", "pkcs8.key"),
        // A block of parameters stands before this key.
        ("ecparam -name prime256v1 -genkey -out KEY", "sec1.key"),
        ("ecparam -name secp384r1 -genkey -noout -out KEY", "p384.key"),
        ("genpkey -algorithm ed25519 -out KEY", "ed25519.key"),
    ] {
        openssl.run(&make.replace("KEY", key));
        // Of version 1, as `openssl x509` made them for decades.
        openssl.run(&format!("req -new -key {key} -subj /CN=client -out {key}.csr"));
        openssl.run(&format!(
            "x509 -req -in {key}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out {key}.crt -days 2"
        ));
        let server = openssl
            .serve("-cert self.crt -key self.key -CAfile ca.crt -Verify 1 -verify_return_error");
        let cert = format!("{key}.crt");
        let record = ask(&job, &server, &[&TRUST[..], &["--cert", &cert, "--key", key]].concat());
        assert_eq!(record["status"], 200, "{record}");
    }
}

#[test]
fn keys_that_cannot_be_used_are_refused_with_a_remedy() {
    let Some((job, openssl)) = ground() else { return };
    openssl.run("pkey -in self.key -aes256 -passout pass:secret -out encrypted8.key");
    openssl.run("rsa -in self.key -aes256 -traditional -passout pass:secret -out encrypted1.key");
    openssl.run("ecparam -name secp521r1 -genkey -noout -out p521.key");
    openssl.run("pkcs12 -export -inkey self.key -in self.crt -passout pass:secret -out self.p12");
    openssl.run("x509 -in self.crt -outform DER -out self.der");
    job.write("urls.txt", "https://localhost:1/");
    for (cert, key, text) in [
        ("self.crt", "encrypted8.key", "encrypted8.key is encrypted"),
        ("self.crt", "encrypted1.key", "encrypted1.key is encrypted"),
        ("self.crt", "p521.key", "p521.key is of a kind that cannot be used; RSA from 2048"),
        ("self.crt", "ca.key", "ca.key does not fit the certificate in self.crt"),
        ("self.p12", "self.key", "self.p12 is not in PEM form but in DER or PKCS #12"),
        ("self.der", "self.key", "self.der is not in PEM form but in DER or PKCS #12"),
    ] {
        let ended = job.run(&["--cert", cert, "--key", key]);
        ended.assert_code(2);
        let line = ended.stderr.lines().next().unwrap();
        assert!(line.starts_with("longhaul: error: --cert: ") && line.contains(text), "{line}");
    }
}

#[test]
fn a_server_that_demands_a_certificate_and_one_that_is_too_old() {
    let Some((job, openssl)) = ground() else { return };
    let demanding = "-cert self.crt -key self.key -CAfile ca.crt -Verify 1 -verify_return_error";
    let server = openssl.serve(demanding);
    let strange = [&TRUST[..], &["--cert", "self.crt", "--key", "self.key"]].concat();
    for version in ["1.2", "1.3"] {
        let bounds = ["--tls-min", version, "--tls-max", version];
        let record = ask(&job, &server, &[&TRUST[..], &bounds].concat());
        assert_refused(&record, "certificate", "the server demands a client certificate and none");
        let record = ask(&job, &server, &[&strange[..], &bounds].concat());
        assert_refused(&record, "certificate", "issued by nobody known there");
    }
    let server = openssl.serve("-cert self.crt -key self.key -tls1_1 -cipher ALL@SECLEVEL=0");
    assert_refused(&ask(&job, &server, &TRUST), "ssl", "it speaks neither 1.2 nor 1.3");
}
