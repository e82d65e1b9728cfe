//! The files that the documents mention and do not make.
//!
//! A line reads what its user would have: a list of URLs, proxies, a login. A document that mentions
//! another file adds it here. What a line of the same document has made before (`good.txt`,
//! `results.jsonl`) is left alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::blocks::{Line, root};
use crate::world::World;

/// A list of a size that is done in a moment; some of it over TLS.
fn urls() -> String {
    let url = |number| {
        let scheme = if number % 4 == 0 { "https" } else { "http" };
        format!("{scheme}://{}/{number}\n", HOSTS[number % HOSTS.len()])
    };
    (0..40).map(url).collect()
}

/// The hosts of the list, beside those that the documents name.
pub(crate) const HOSTS: [&str; 3] = ["example.com", "shop.test", "www.example.org"];

/// The proxies, as the panel of a provider shows them.
const PROXIES: &str = "10.0.0.1:8000:anna:secret\n10.0.0.2:8000:anna:secret\n";

/// A cookie of a browser, for a year that is far away.
const COOKIES: &str = "# Netscape HTTP Cookie File\n\
                       example.com\tFALSE\t/\tFALSE\t4102444800\tsession\t4f2a\n";

/// Folders that a home has; the folder of the lines is one, too.
const HOME: [&str; 4] = [
    ".config/fish/completions",
    ".local/share/bash-completion/completions",
    ".local/share/man/man1",
    ".zfunc",
];

/// A page that is followed from its beginning to its end: here nothing is taken away between two lines.
const WALK: &str = "docs/quickstart.md:";

/// Makes a folder ready for this line: puts into it what is not there yet.
pub(crate) fn fill(folder: &Path, line: &Line, world: &World) {
    let Line { place, text: line, .. } = line;
    if !place.starts_with(WALK) {
        make_room(folder, line);
    }
    let put = |name: &str, content: &str| {
        let path = folder.join(name);
        if !path.exists() {
            fs::write(path, content).unwrap();
        }
    };
    for place in HOME {
        fs::create_dir_all(folder.join(place)).unwrap();
    }
    put("urls.txt", &urls());
    put("proxies.txt", PROXIES);
    put("good.txt", PROXIES);
    put("cookies.txt", COOKIES);
    put("login.txt", "me:a password\n");
    put("token.txt", "4f2a\n");
    put("hosts.netrc", "machine example.com login me password secret\n");
    put("item.json", "{\"name\": \"x\"}\n");
    put("ca.pem", &world.ca().pem());
    if !folder.join("client.pem").exists() {
        let issued = world.ca().issue(["client"]).unwrap();
        let both = issued.certificate_pem().to_owned() + issued.key_pem();
        put("client.pem", &both);
        put("client.key", issued.key_pem());
    }
    // A package of one's own, with a clone beside it.
    if line.starts_with("cargo add ") {
        put("Cargo.toml", "[package]\nname = \"own\"\nedition = \"2024\"\n");
        fs::create_dir_all(folder.join("src")).unwrap();
        put("src/lib.rs", "");
        // With the versions that are on this machine.
        fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        let _ = symlink(root(), folder.join("../longhaul"));
    }
    // What earlier runs have left, for lines that begin with it.
    let made = made_by(line);
    let is_results = |word: &&str| word.ends_with(".jsonl") && Some(*word) != made;
    for name in line.split_whitespace().filter(is_results) {
        if !folder.join(name).exists() {
            let ended = world.run(folder, &format!("longhaul run -i urls.txt -o {name} -q"));
            assert_eq!(ended.code, 0, "{}", ended.output);
        }
    }
}

/// Takes away what a line would refuse to write over: the results of a run that is not resumed. Its
/// user would have named another file.
fn make_room(folder: &Path, line: &str) {
    if let Some(path) = made_by(line).map(|name| folder.join(name))
        && path.is_file()
    {
        fs::remove_file(path).unwrap();
    }
}

/// The file that a line makes anew.
fn made_by(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = words.windows(2).find(|pair| matches!(pair[0], "-o" | "--output"))?;
    (!words.contains(&"--resume")).then_some(output[1])
}
