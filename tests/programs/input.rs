//! Nonsense in, one line out: what is wrong, where, and what to do; nothing sent, nothing lost.

use std::fs;

use super::job::Job;
use super::support::nginx::Nginx;

#[test]
fn nothing_is_sent_and_nothing_is_lost() {
    let Some(nginx) = Nginx::start() else { return };
    let job = Job::new((0..5).map(|page| nginx.url(&format!("/small/{page}"))));
    job.run(&[]).assert_code(0);
    assert_eq!(job.all_ok_once().len(), 5);
    let results = job.read("results.jsonl");
    nginx.program().clear_log("access.log");

    let good: Vec<String> = (10..20).map(|page| nginx.url(&format!("/small/{page}"))).collect();
    let mut lines = good.clone();
    lines[6] = "htp://127.0.0.1/typo".to_owned();
    job.write("bad-url.txt", lines.join("\n"));
    job.write("bad-proxy.txt", "127.0.0.1:3128\n# home\nhttp://me:s3cret@127.0.0.1:port\n");
    job.write("good.txt", good.join("\n"));
    fs::create_dir(job.path("folder")).unwrap();

    let to = ["-o", "results.jsonl", "--resume", "--no-env"];
    for (arguments, parts) in [
        // Whoever runs this, also root: no file, a folder, and a file that fails when it is read.
        (&["-i", "gone.txt"][..], &["-i", "gone.txt", "cannot be read"][..]),
        (&["-i", "folder"], &["-i", "folder", "name a file"]),
        #[cfg(target_os = "linux")]
        (&["-i", "/proc/self/mem"], &["/proc/self/mem:1 cannot be read", "name another input"]),
        (&["-i", "bad-url.txt"], &["bad-url.txt:7", "htp", "http://", "correct or remove"]),
        (
            &["-i", "good.txt", "--proxies", "bad-proxy.txt"],
            &["--proxies", "bad-proxy.txt", "line 3", "port"],
        ),
        (&["-i", "good.txt", "--connect-timeout", "0"], &["--connect-timeout", "0", "none"]),
        (&["-i", "good.txt", "--connect-timeout", "-3"], &["--connect-timeout", "-3"]),
        (&["-i", "good.txt", "--read-timeout", "nan"], &["--read-timeout", "nan"]),
        (&["-i", "good.txt", "--cacert", "good.txt"], &["--cacert", "good.txt", "PEM"]),
        (&["-i", "good.txt", "--bodies", "good.txt"], &["--bodies", "good.txt"]),
    ] {
        let ended = job.end(job.command(&[&["run"], &to[..], arguments].concat()));
        assert_one_line(&ended.stderr, ended.code, arguments, parts);
        assert_eq!(job.read("results.jsonl"), results, "{arguments:?}");
        assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
    }
    // And without --resume, the results of before are not written over.
    let over = ["run", "-i", "good.txt", "-o", "results.jsonl", "--no-env"];
    let ended = job.end(job.command(&over));
    assert_one_line(&ended.stderr, ended.code, &over, &["results.jsonl", "--resume"]);
    assert_eq!(job.read("results.jsonl"), results);
    assert_eq!(nginx.access_log(), "", "something was sent");
}

fn assert_one_line(stderr: &str, code: i32, arguments: &[&str], parts: &[&str]) {
    assert_eq!(code, 2, "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("longhaul: error: "), "{arguments:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{stderr} lacks {part}");
    }
    println!("{}", stderr.trim_end());
}

#[test]
#[cfg(target_os = "linux")]
fn results_that_cannot_be_written() {
    let Some(nginx) = Nginx::start() else { return };
    let job = Job::new((0..5).map(|page| nginx.url(&format!("/small/{page}"))));
    // Not even root can make files there.
    for (output, parts) in [
        ("/proc/results.jsonl", ["/proc/results.jsonl", "name a file in a folder"]),
        ("/dev/null/results.jsonl", ["-o: /dev/null/results.jsonl", "name another file"]),
        ("gone/results.jsonl", ["-o: gone is no folder", "name another file"]),
    ] {
        let arguments = ["run", "-i", "urls.txt", "-o", output, "--no-env"];
        let ended = job.end(job.command(&arguments));
        assert_one_line(&ended.stderr, ended.code, &arguments, &parts);
    }
    assert_eq!(nginx.access_log(), "");
    // A disk that fills up shows only when there is something to write: that is a stopped run.
    let ended = job.end(job.command(&["run", "-i", "urls.txt", "-o", "/dev/full", "--no-env"]));
    ended.assert_code(3);
    let cause = ended.stderr.lines().find(|line| line.starts_with("stopped: ")).unwrap();
    assert!(cause.contains("/dev/full") && cause.contains("No space left"), "{cause}");
    println!("{cause}");
}
