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
