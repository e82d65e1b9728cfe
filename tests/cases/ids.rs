//! Every case has its test.
//!
//! A test says by its name which case it is about (`c20_…`), wherever it stands: here against the
//! hostile servers, or beside a pure module. This table says which cases there are.

use std::collections::BTreeSet;
use std::path::Path;

/// The cases of each section, by number, with what they are about.
const SECTIONS: &[(&str, &[(u32, &str)])] = &[
    (
        "A: retry, Retry-After, backoff",
        &[
            (1, "Retry-After with a fraction"),
            (2, "Retry-After that is no wait at all"),
            (3, "Retry-After that has passed"),
            (4, "Retry-After beyond all sense, and beyond the deadline"),
            (7, "a date in Retry-After under a clock that is wrong"),
            (8, "Retry-After as a reason of its own"),
            (9, "both series of the backoff"),
            (10, "backoff of huge counts and factors"),
            (11, "jitter within its bounds, and not alike for any two"),
            (12, "a herd that wakes together"),
            (13, "a POST that may have arrived"),
            (14, "bodies that can be read once"),
            (15, "what counts as a retry, and what stands in the history"),
            (16, "the last response of retries that are used up"),
        ],
    ),
    (
        "B: connections that are used again, timeouts, deadlines",
        &[
            (20, "a kept connection that dies under the request"),
            (21, "bytes on an idle connection"),
            (23, "an idle connection that a router has forgotten"),
            (24, "no timeout was set"),
            (25, "drips, under a read timeout and a deadline"),
            (26, "a CONNECT reply that drips"),
            (28, "addresses that lead nowhere"),
            (29, "lookups that hang"),
            (30, "names that do not exist, and names that cannot be asked for"),
            (31, "one deadline over redirects and retries"),
            (32, "an upload to a slow reader"),
            (34, "an answer before the end of the upload"),
            (36, "clocks that jump"),
        ],
    ),
    (
        "C: framing and heads",
        &[
            (40, "a body that a reset ends"),
            (42, "a body shorter than its length"),
            (44, "chunk extensions and padded sizes"),
            (45, "chunk sizes that are none"),
            (48, "folded lines"),
            (49, "one malformed line among the fields"),
            (50, "status lines of every kind"),
            (51, "many fields, long heads, endless ones"),
            (52, "interim responses"),
            (54, "bytes beyond ASCII, and repeated fields"),
            (55, "trailers"),
        ],
    ),
    (
        "D: content coding, ceilings, text",
        &[
            (60, "a coding where there is no body"),
            (61, "bytes behind the coded stream"),
            (64, "names of codings, and lists of them"),
            (65, "both kinds of deflate"),
            (66, "bombs, ceilings and chains"),
            (68, "from bytes to text"),
            (69, "detection in large bodies"),
        ],
    ),
    (
        "E: redirects",
        &[
            (70, "characters that must not stand in a Location"),
            (71, "a Location beyond ASCII"),
            (72, "relative references"),
            (73, "a redirect that names no place"),
            (74, "method and body by status"),
            (76, "credentials from hop to hop"),
            (77, "another scheme"),
            (78, "a place that is none"),
            (79, "the body of a redirect"),
            (81, "fragment, userinfo, case"),
            (83, "the proxy of each hop"),
        ],
    ),
    (
        "F: cookies",
        &[
            (85, "values of every kind, byte for byte"),
            (87, "domains, addresses, ports, case"),
            (88, "a Cookie field beside the jar"),
            (90, "the jar of a long run"),
            (91, "cookies and rotation"),
        ],
    ),
    (
        "G: which proxy",
        &[
            (100, "a setting that is broken"),
            (101, "credentials with special characters"),
            (103, "which variable wins"),
            (105, "an environment that is not trusted"),
            (106, "domains of NO_PROXY"),
            (107, "ports, blocks, IPv6 and junk of NO_PROXY"),
            (108, "keys of the map, and what none covers"),
        ],
    ),
    (
        "H: HTTP proxies",
        &[
            (110, "http in absolute form"),
            (111, "a CONNECT that is refused"),
            (113, "odd replies to CONNECT"),
            (115, "proxies that stall, leave, flood or speak no HTTP"),
            (117, "what a CONNECT gives away"),
            (118, "kept tunnels and gateways that rotate"),
            (119, "connections after failures of a proxy"),
        ],
    ),
    (
        "I: SOCKS",
        &[
            (120, "a handshake that stalls or drips"),
            (123, "who looks the name up"),
            (124, "who failed"),
        ],
    ),
    (
        "J: URLs, credentials, fields of a request",
        &[
            (130, "URLs as people write them"),
            (131, "names beyond ASCII"),
            (133, "userinfo in a URL"),
            (135, ".netrc"),
            (137, "case, order and repetition of fields"),
        ],
    ),
    (
        "K: pools of proxies and runs",
        &[
            (140, "all proxies dead"),
            (142, "who is to blame for the failures of a target"),
            (143, "parallel requests of each proxy"),
            (145, "connections of many threads, and of many hosts"),
            (146, "what many hosts cost each request"),
            (148, "memory over hours"),
            (149, "an input without an end"),
            (150, "signals, and readers who leave"),
            (151, "a torn last line"),
            (152, "what a resumption loses or repeats"),
            (154, "one line for each item"),
            (155, "what stops a run, and what does not"),
            (157, "a host that cools down beside others"),
        ],
    ),
];

/// The number in front of the name of a test: `c20_…`.
fn case(line: &str) -> Option<u32> {
    let digits = line.trim_start().strip_prefix("fn c")?.split_once('_')?.0;
    digits.parse().ok()
}

/// The cases that the names of the tests below this folder speak of.
fn tested(folder: &Path, found: &mut BTreeSet<u32>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tested(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            let tests = lines.windows(2).filter(|pair| pair[0].trim() == "#[test]");
            found.extend(tests.filter_map(|pair| case(pair[1])));
        }
    }
}

#[test]
fn every_case_has_a_test_and_every_test_a_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    tested(&root.join("tests"), &mut found);
    tested(&root.join("src"), &mut found);
    let table: Vec<u32> =
        SECTIONS.iter().flat_map(|(_, cases)| cases.iter().map(|(number, _)| *number)).collect();
    assert!(table.is_sorted_by(|one, next| one < next), "the table is in order, each case once");
    for (section, cases) in SECTIONS {
        for (number, about) in *cases {
            assert!(found.contains(number), "{section}: no test c{number:02}_… ({about})");
        }
    }
    for number in &found {
        assert!(table.contains(number), "c{number}_… is about a case that the table does not know");
    }
}
