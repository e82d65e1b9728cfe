//! From what was typed to the request.

use crate::args::GetArgs;
use crate::usage::UsageError;
use crate::values::HeaderArg;
use http::Method;
use longhaul::Request;
use longhaul::message::Body;
use serde_json::value::RawValue;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

/// What `-d` is, unless a field says otherwise; as curl.
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// The request.
///
/// # Errors
/// A body that cannot be had, and flags that contradict each other.
pub(super) fn describe(args: &GetArgs) -> Result<Request, UsageError> {
    let body = body(args)?;
    let method = method(args, body.is_some())?;
    let mut request = Request::new(method, &args.url);
    if let Some(body) = body {
        request = request.body(body);
        if args.json.is_some() {
            request = request.header("Accept", JSON);
        }
        request.content_type = Some(if args.json.is_some() { JSON } else { FORM }.into());
    }
    for HeaderArg { name, value } in &args.headers {
        request = match value {
            Some(value) => request.header(name, value.as_str()),
            None => request.remove_header(name),
        };
    }
    Ok(request)
}

fn method(args: &GetArgs, has_body: bool) -> Result<Method, UsageError> {
    match (&args.method, args.head) {
        (Some(method), true) if *method != Method::HEAD => {
            let text = format!("contradicts -X {method}; leave one of them out");
            Err(UsageError::new("-I", text))
        }
        (_, true) if has_body => {
            Err(UsageError::new("-I", "a HEAD has no body; leave out -I or the body"))
        }
        (_, true) => Ok(Method::HEAD),
        (Some(method), false) => Ok(method.clone()),
        (None, false) if has_body => Ok(Method::POST),
        (None, false) => Ok(Method::GET),
    }
}

fn body(args: &GetArgs) -> Result<Option<Body>, UsageError> {
    match (&args.json, &args.data[..]) {
        (Some(_), [_, ..]) => {
            Err(UsageError::new("--json", "contradicts -d; leave one of them out"))
        }
        (Some(given), []) => {
            let bytes = content("--json", given)?;
            match serde_json::from_slice::<&RawValue>(&bytes) {
                Ok(_) => Ok(Some(bytes.into())),
                Err(error) => Err(UsageError::new(
                    "--json",
                    format!("this is no JSON: {error}; to send it all the same, use -d"),
                )),
            }
        }
        (None, []) => Ok(None),
        // A single file is read while it is sent, however long it is.
        (None, [one]) if one.starts_with('@') && one != "@-" => {
            let path = Path::new(one.trim_start_matches('@'));
            can_be_read(path).map_err(|error| unreadable("-d", path, &error))?;
            Ok(Some(Body::file(path)))
        }
        (None, pieces) => {
            let pieces: Result<Vec<_>, _> =
                pieces.iter().map(|piece| content("-d", piece)).collect();
            Ok(Some(pieces?.join(&b'&').into()))
        }
    }
}

/// A file that cannot be read is told before anything is sent.
fn can_be_read(path: &Path) -> io::Result<()> {
    match fs::metadata(path)? {
        found if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // Opening a pipe would take it from the one who reads it.
        found if found.is_file() => fs::File::open(path).map(drop),
        _ => Ok(()),
    }
}

/// The text itself, or what stands in the file that it names.
fn content(flag: &str, given: &str) -> Result<Vec<u8>, UsageError> {
    let Some(name) = given.strip_prefix('@') else { return Ok(given.into()) };
    let path = Path::new(name);
    let bytes = if name == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    bytes.map_err(|error| unreadable(flag, path, &error))
}

fn unreadable(flag: &str, path: &Path, error: &io::Error) -> UsageError {
    let text = format!("{} cannot be read: {error}; name a file behind the @", path.display());
    UsageError::new(flag, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn described(arguments: &[&str]) -> Result<Request, String> {
        let all = [&["longhaul", "get", "http://a.test/"], arguments].concat();
        let Command::Get(args) = Cli::try_parse_from(all).unwrap().command else { panic!() };
        describe(&args).map_err(|error| error.to_string())
    }

    fn bytes(request: &Request) -> &[u8] {
        match &request.body {
            Body::Bytes(bytes) => bytes,
            _ => b"",
        }
    }

    #[test]
    fn methods_and_bodies() {
        for (arguments, method, body, media) in [
            (&[][..], "GET", "", None),
            (&["-I"], "HEAD", "", None),
            (&["-I", "-X", "HEAD"], "HEAD", "", None),
            (&["-X", "purge"], "purge", "", None),
            (&["-d", "a=1"], "POST", "a=1", Some(FORM)),
            (&["-d", "a=1", "-d", "b=@2", "-X", "PUT"], "PUT", "a=1&b=@2", Some(FORM)),
            (&["-d", ""], "POST", "", Some(FORM)),
            (&["--json", " {\"a\": 1}"], "POST", " {\"a\": 1}", Some(JSON)),
        ] {
            let request = described(arguments).unwrap();
            let found = (request.method.as_str(), bytes(&request), request.content_type.as_deref());
            assert_eq!(found, (method, body.as_bytes(), media), "{arguments:?}");
        }
    }

    #[test]
    fn fields_replace_and_remove() {
        let request = described(&["--json", "1", "-H", "accept: text/x", "-H", "User-Agent:"]);
        let headers: Vec<_> = request
            .unwrap()
            .headers
            .into_iter()
            .map(|(name, value)| (name, value.map(|value| String::from_utf8(value).unwrap())))
            .collect();
        assert_eq!(
            headers,
            [("accept".into(), Some("text/x".into())), ("User-Agent".into(), None)]
        );
    }

    #[test]
    fn contradictions_and_missing_files() {
        for (arguments, parts) in [
            (&["-I", "-X", "GET"][..], &["-I: ", "-X GET"][..]),
            (&["-I", "-d", "a"], &["-I: ", "no body"]),
            (&["--json", "1", "-d", "a"], &["--json: ", "-d"]),
            (&["--json", "{a}"], &["--json: ", "no JSON", "use -d"]),
            (&["--json", "@/gone/x"], &["--json: /gone/x cannot be read", "behind the @"]),
            (&["-d", "@/gone/x"], &["-d: /gone/x cannot be read", "behind the @"]),
            (&["-d", "@/"], &["-d: / cannot be read: is a directory"]),
        ] {
            let line = described(arguments).unwrap_err();
            assert!(parts.iter().all(|part| line.contains(part)), "{line} lacks one of {parts:?}");
        }
    }
}
