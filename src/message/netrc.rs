//! The `.netrc`, as Python's `netrc` module reads it for requests.

use super::Auth;
use crate::error::{Error, ErrorKind};
use std::collections::HashMap;
use std::fmt;
use url::Url;

/// A parsed `.netrc`.
///
/// The syntax is that of Python's `netrc` module, which requests uses: `machine`, `default`,
/// `login` or `user`, `account`, `password`, `macdef`, comments, quotes and backslashes.
#[derive(Clone, Default)]
pub struct Netrc {
    hosts: HashMap<String, Entry>,
}

#[derive(Clone, Default)]
struct Entry {
    login: String,
    account: String,
    password: String,
}

impl Netrc {
    /// Parses the text of the file, as Python's `netrc` module does.
    ///
    /// # Errors
    /// `Config`, with the line and what is wrong with it. The words of the file are not shown,
    /// since a misplaced one may be a password.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut lexer = Lexer::new(text);
        let mut netrc = Self::default();
        let mut pushed: Option<String> = None;
        loop {
            let line = lexer.line;
            let word = match pushed.take() {
                Some(word) => word,
                None => lexer.token(),
            };
            let host = match word.as_str() {
                "" => return Ok(netrc),
                "machine" => lexer.token(),
                "default" => "default".to_owned(),
                "macdef" => {
                    lexer.token();
                    lexer.skip_macro()?;
                    continue;
                }
                comment if comment.starts_with('#') => {
                    // A `#` glued to a word is that word alone: what follows it is read on.
                    if lexer.line == line && comment.len() == 1 {
                        lexer.skip_line();
                    }
                    continue;
                }
                _ => return Err(lexer.error("has a word where machine or default should stand")),
            };
            if host.is_empty() {
                return Err(lexer.error("names no host after machine"));
            }
            let mut entry = Entry::default();
            loop {
                let line = lexer.line;
                let word = lexer.token();
                match word.as_str() {
                    "" | "machine" | "default" | "macdef" => {
                        pushed = Some(word);
                        break;
                    }
                    "login" | "user" => entry.login = lexer.token(),
                    "account" => entry.account = lexer.token(),
                    "password" => entry.password = lexer.token(),
                    comment if comment.starts_with('#') => {
                        if lexer.line == line {
                            lexer.skip_line();
                        }
                    }
                    _ => {
                        let text = "has a word where login, account or password should stand";
                        return Err(lexer.error(text));
                    }
                }
            }
            // URLs carry A-labels; the file may not.
            let host = match url::Host::parse(&host) {
                Ok(ascii) if !host.is_ascii() => ascii.to_string(),
                _ => host,
            };
            netrc.hosts.insert(host, entry);
        }
    }

    /// User and password for the exact host of `url`, or those of `default`.
    ///
    /// The port plays no part. An entry with neither is no credentials; one without `login` uses
    /// its `account`, as requests does.
    pub fn auth(&self, url: &Url) -> Option<Auth> {
        let host = url.host_str()?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let entry = self.hosts.get(host).or_else(|| self.hosts.get("default"))?;
        let user = if entry.login.is_empty() { &entry.account } else { &entry.login };
        if user.is_empty() && entry.password.is_empty() {
            return None;
        }
        Some(Auth::Basic(user.clone(), entry.password.clone()))
    }
}

impl fmt::Debug for Netrc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Netrc({} hosts)", self.hosts.len())
    }
}

struct Lexer<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Self { chars: text.chars().peekable(), line: 1 }
    }

    /// The next character, with every line end as `\n`.
    fn next(&mut self) -> Option<char> {
        let mut char = self.chars.next()?;
        if char == '\r' {
            self.chars.next_if_eq(&'\n');
            char = '\n';
        }
        if char == '\n' {
            self.line += 1;
        }
        Some(char)
    }

    /// The next word; empty at the end of the text.
    fn token(&mut self) -> String {
        let is_space = |char| matches!(char, '\n' | '\t' | '\r' | ' ');
        let mut token = String::new();
        let mut first = self.next();
        while first.is_some_and(is_space) {
            first = self.next();
        }
        let Some(first) = first else { return token };
        let quoted = first == '"';
        let mut next = if quoted { self.next() } else { Some(first) };
        while let Some(char) = next {
            match char {
                '"' if quoted => break,
                '\\' => token.extend(self.next()),
                char if !quoted && is_space(char) => break,
                char => token.push(char),
            }
            next = self.next();
        }
        token
    }

    fn skip_line(&mut self) {
        while let Some(char) = self.next() {
            if char == '\n' {
                break;
            }
        }
    }

    /// A macro ends at the first empty line.
    fn skip_macro(&mut self) -> Result<(), Error> {
        loop {
            match self.next() {
                None => return Err(self.error("ends within a macdef; close it by an empty line")),
                Some('\n') => return Ok(()),
                Some(_) => self.skip_line(),
            }
        }
    }

    fn error(&self, text: &str) -> Error {
        Error::local(ErrorKind::Config, format!(".netrc line {} {text}", self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn auth(text: &str, url: &str) -> Option<Auth> {
        Netrc::parse(text).unwrap().auth(&Url::parse(url).unwrap())
    }

    fn basic(user: &str, password: &str) -> Option<Auth> {
        Some(Auth::Basic(user.to_owned(), password.to_owned()))
    }

    #[test]
    fn the_host_is_compared_exactly_and_the_port_is_ignored() {
        let text = "machine good.test login a password b\n";
        assert_eq!(auth(text, "http://good.test:8080/"), basic("a", "b"));
        assert_eq!(auth(text, "http://sub.good.test/"), None);
        // The user name of a URL is not its host (CVE-2024-47081).
        assert_eq!(auth(text, "http://good.test:@evil.test/"), None);
        assert_eq!(
            auth("machine bücher.test login a password b", "http://BÜCHER.test"),
            basic("a", "b")
        );
        assert_eq!(auth("machine ::1 login a password b", "http://[::1]/"), basic("a", "b"));
    }

    #[test]
    fn default_is_for_the_rest_and_empty_entries_give_nothing() {
        let text = "machine a.test\ndefault login any password pw";
        assert_eq!(auth(text, "http://a.test/"), None);
        assert_eq!(auth(text, "http://b.test/"), basic("any", "pw"));
        assert_eq!(
            auth("machine a.test account acc password p", "http://a.test"),
            basic("acc", "p")
        );
        assert_eq!(auth("machine a.test login l", "http://a.test"), basic("l", ""));
    }

    #[test]
    fn errors_name_the_line_and_no_word() {
        for (text, line) in [
            ("\nhunter2", 2),
            ("machine a.test login x\nhunter2 y", 2),
            ("machine", 1),
            ("macdef m\nhunter2", 2),
        ] {
            let error = Netrc::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{text:?}");
            assert!(error.message().contains(&format!("line {line} ")), "{text:?}: {error}");
            assert!(!error.message().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn credentials_are_not_shown() {
        let netrc = Netrc::parse("machine a.test login usr password hunter2").unwrap();
        let text = format!("{netrc:?} {:?}", netrc.auth(&Url::parse("http://a.test").unwrap()));
        assert!(!text.contains("hunter2") && !text.contains("usr"), "{text}");
    }

    proptest! {
        #[test]
        fn any_text_parses_or_fails_without_a_panic(text in "[machinedfultlogpswr #\"\\\\\r\n\t]{0,80}|.{0,80}") {
            let _ = Netrc::parse(&text);
        }
    }
}
