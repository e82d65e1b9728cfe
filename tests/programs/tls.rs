//! nginx with a certificate of a private authority.

use std::collections::HashSet;

use super::job::Job;
use super::support::nginx::Nginx;

#[test]
fn an_unknown_authority_is_named_and_not_tried_again() {
    let Some(nginx) = Nginx::start() else { return };
    let job = Job::new((0..20).map(|page| nginx.tls_url(&format!("/small/{page}"))));
    let ended = job.run(&["-w", "4"]);
    ended.assert_code(1);
    let records = job.records();
    assert_eq!(records.len(), 20);
    for record in &records {
        let error = &record["error"];
        assert_eq!(error["kind"], "certificate", "{record}");
        assert_eq!(error["requests_name"], "SSLError");
        assert_eq!((&error["phase"], &error["fault"]), (&"tls".into(), &"target".into()));
        assert_eq!(record["class"], "permanent");
        assert_eq!(record["attempts"].as_array().unwrap().len(), 1);
    }
    let message = records[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("certificate") && message.contains("CA file"), "{message}");
    // Not one request was sent to a server that may be somebody else.
    assert!(!nginx.access_log().contains("/small/"), "{}", nginx.access_log());
    println!("certificate: {message}");
}

#[test]
fn with_the_authority_connections_are_kept() {
    let Some(nginx) = Nginx::start() else { return };
    let job = Job::new((0..300).map(|page| nginx.tls_url(&format!("/small/{page}"))));
    job.write("ca.pem", nginx.ca().pem());
    job.run(&["-w", "4", "--cacert", "ca.pem"]).assert_code(0);
    let records = job.all_ok_once();
    let reused = |record: &&serde_json::Value| record["attempts"][0]["reused"] == true;
    let reused = records.iter().filter(reused).count();
    assert!(reused >= 296, "{reused}");
    let log = nginx.program().wait_for_log("access.log", |log| log.lines().count() >= 300);
    let connections: HashSet<&str> = log
        .lines()
        .filter_map(|line| line.split(' ').find(|word| word.starts_with("conn=")))
        .collect();
    assert_eq!(log.lines().count(), 300);
    assert!(connections.len() <= 4, "{connections:?}");
    println!("tls: 300 requests on {} connections", connections.len());
}

#[test]
fn insecure_is_said_and_meant() {
    let Some(nginx) = Nginx::start() else { return };
    let job = Job::new([nginx.tls_url("/small/1")]);
    job.run(&["--insecure"]).assert_code(0);
    assert_eq!(job.all_ok_once().len(), 1);
}

/// Certificate and key of a client, in one file and in two.
fn client(job: &Job, nginx: &Nginx) {
    let issued = nginx.ca().issue(["client"]).unwrap();
    issued.write_pem(job.path("client.crt"), job.path("client.key")).unwrap();
    job.write("both.pem", issued.certificate_pem().to_owned() + issued.key_pem());
    job.write("ca.pem", nginx.ca().pem());
}

#[test]
fn a_client_certificate_is_accepted() {
    let Some(nginx) = Nginx::start() else { return };
    for flags in [&["--cert", "client.crt", "--key", "client.key"][..], &["--cert", "both.pem"]] {
        for versions in [&["--tls-max", "1.2"][..], &["--tls-min", "1.3"]] {
            let job = Job::new((0..40).map(|page| nginx.mutual_url(&format!("/small/{page}"))));
            client(&job, &nginx);
            let flags = [flags, versions, &["-w", "4", "--cacert", "ca.pem"]].concat();
            job.run(&flags).assert_code(0);
            assert_eq!(job.all_ok_once().len(), 40);
        }
    }
    let job = Job::new([nginx.mutual_url("/who")]);
    client(&job, &nginx);
    job.run(&["--cacert", "ca.pem", "--cert", "both.pem", "--bodies", "kept"]).assert_code(0);
    let record = &job.records()[0];
    let body = job.read(&format!("kept/{}", record["body_file"].as_str().unwrap()));
    assert_eq!(body, "CN=longhaul lab server\n", "the subject that the lab gives");
}

/// nginx does not break off; it says so in a 400.
#[test]
fn a_client_certificate_that_is_missing_or_refused() {
    let Some(nginx) = Nginx::start() else { return };
    let stranger = longhaul::lab::Ca::new().unwrap().issue(["client"]).unwrap();
    for (flags, note) in [
        (&[][..], "the server demands a client certificate; give one with `cert`"),
        (
            &["--cert", "stranger.crt", "--key", "stranger.key"],
            "the server does not accept the client certificate",
        ),
    ] {
        let job = Job::new([nginx.mutual_url("/small/1")]);
        client(&job, &nginx);
        stranger.write_pem(job.path("stranger.crt"), job.path("stranger.key")).unwrap();
        job.run(&[flags, &["--cacert", "ca.pem"]].concat()).assert_code(1);
        let record = &job.records()[0];
        assert_eq!(record["status"], 400, "{record}");
        let said = record["attempts"][0]["note"].as_str().unwrap_or_default();
        assert!(said.starts_with(note), "{record}");
    }
}

#[test]
fn a_version_that_nginx_does_not_speak() {
    let Some(nginx) = Nginx::start() else { return };
    let job = Job::new([nginx.old_tls_url("/small/1")]);
    job.write("ca.pem", nginx.ca().pem());
    job.run(&["--cacert", "ca.pem", "--tls-min", "1.3", "--total", "0"]).assert_code(1);
    let error = &job.records()[0]["error"];
    assert_eq!((&error["kind"], &error["phase"]), (&"ssl".into(), &"tls".into()), "{error}");
    assert!(error["message"].as_str().unwrap().contains("lower `tls_min_version`"), "{error}");
    let job = Job::new([nginx.old_tls_url("/small/1")]);
    job.write("ca.pem", nginx.ca().pem());
    job.run(&["--cacert", "ca.pem"]).assert_code(0);
}

#[test]
fn the_wrong_port_is_named() {
    let Some(nginx) = Nginx::start() else { return };
    let job = Job::new([format!("https://{}/small/1", nginx.plain())]);
    job.run(&["--total", "0"]).assert_code(1);
    let error = &job.records()[0]["error"];
    assert_eq!((&error["kind"], &error["requests_name"]), (&"ssl".into(), &"SSLError".into()));
    assert!(error["message"].as_str().unwrap().contains("does not speak TLS on this port"));

    let job = Job::new([format!("http://{}/small/1", nginx.tls())]);
    job.run(&["--total", "0"]).assert_code(1);
    let record = &job.records()[0];
    assert_eq!(record["status"], 400);
    let note = record["attempts"][0]["note"].as_str().unwrap_or_default();
    assert!(note.contains("meant for https; write https://"), "{record}");
}
