//! `--print-config`.

use super::*;

#[test]
fn the_printout_is_a_file_that_says_the_same() {
    let file = "workers = 24\nheader = ['A: \"1\"', 'B: 2']\nforcelist = [429]\nbackoff-factor = 0.5\n\
                verbose = 2\nno-netrc = true\nsync = false\nblock-body = \"a\\tb\\nc'd\\\"\\u007f\"";
    let text = printed("run -o out.jsonl --jitter full", &[("LONGHAUL_RATE", "300/min")], file);
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.rsplit_once("  # ").map_or(line, |(value, _)| value).to_owned())
            .collect()
    };
    let again = printed("run", &[], &text);
    assert_eq!(values(&again), values(&text));
    assert!(values(&again).iter().any(|line| line.starts_with("rate = \"300/min\"")), "{again}");
    let debug = |args: RunArgs| format!("{args:?}");
    let before = run("run -o out.jsonl --jitter full", &[("LONGHAUL_RATE", "300/min")], file);
    assert_eq!(debug(run("run", &[], &text)), debug(before));
}

#[test]
fn no_secret_is_shown_and_what_is_hidden_is_no_value() {
    let file = "user = 'anna:hunter2'\nproxy = ['http://u:hunter2@h:1', 'h:2:u:hunter2', 'c:3']\n\
                header = ['Authorization: Basic hunter2', 'X-Api-Key: hunter2', 'Cookie: a=hunter2']\n\
                proxy-header = 'X-Session: hunter2'\nexit-check = 'http://u:hunter2@e/'";
    let text = printed("run --bearer hunter2", &[], file);
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(line_of(&text, "bearer"), "# bearer = \"***\" # flag; not all of it may be shown");
    assert!(line_of(&text, "proxy").contains("\"http://***@h:1\""), "{text}");
    // Given back as a file, the stars are nobody's password.
    assert!(run("run", &[], &text).credentials.bearer.is_none());
    for (body, line) in [
        ("json = '{\"password\":\"hunter2\"}'", "# json = \"***\""),
        ("data = 'password=hunter2'", "# data = [\"***\"]"),
        ("data = '@form.txt'", "data = [\"@form.txt\"]"),
    ] {
        let text = printed("get http://a/", &[], &format!("[get]\n{body}"));
        assert!(!text.contains("hunter2"), "{text}");
        let key = line.trim_start_matches("# ").split(' ').next().unwrap();
        assert!(line_of(&text, key).starts_with(line), "{text}");
    }
    let found = settled("run", &[("LONGHAUL_USER", "anna:hunter2")], file);
    let Ok(Settled::Command(_, sources)) = found else { panic!() };
    assert!(!format!("{sources:?}").contains("hunter2"), "{sources:?}");
    for wrong in ["user = ['hunter2']", "header = 'hunter2'"] {
        let line = mistake("run http://a/", &[], wrong);
        assert!(line.starts_with("longhaul.toml:1:") && !line.contains("hunter2"), "{line}");
    }
}
