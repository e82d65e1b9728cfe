//! What requests does, line by line: `tests/vectors/README.md` says where the vectors come from.
//!
//! A vector that comes out otherwise is set aside only by a rule on its content that names one of
//! the differences documented in the modules; how many each rule sets aside is asserted too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

use base64::Engine as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use longhaul::message::{
    Auth, Headers, Netrc, Prepared, RedirectRules, Request, ResponseBody, ResponseParts, Settings,
    decode_text, encoding_of, follow, prepare, prepare_url,
};
use longhaul::session::{Cookie, CookieJar};
use longhaul::{Error, ErrorKind, Response};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};
use url::Url;

/// What came of one vector.
enum Outcome {
    Same,
    /// Set aside by the rule of this difference.
    Difference(&'static str),
    Other(String),
}

fn check(wanted: bool, rule: Option<&'static str>, seen: impl FnOnce() -> String) -> Outcome {
    match rule {
        _ if wanted => Outcome::Same,
        Some(rule) => Outcome::Difference(rule),
        None => Outcome::Other(seen()),
    }
}

fn run(
    file: &str,
    aside: &[(&'static str, usize)],
    judge: impl Fn(&Value, &Value, &str) -> Outcome,
) {
    let path = format!("{}/tests/vectors/{file}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut same = 0;
    let mut differences = BTreeMap::<&str, usize>::new();
    let mut failures = Vec::new();
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        match judge(&vector["in"], &vector["out"], line) {
            Outcome::Same => same += 1,
            Outcome::Difference(name) => *differences.entry(name).or_default() += 1,
            Outcome::Other(seen) => failures.push(format!("{}: {seen}", vector["id"])),
        }
    }
    println!("{file}: {same} passed, set aside: {differences:?}");
    assert!(failures.is_empty(), "{file}: {}\n{}", failures.len(), failures.join("\n"));
    assert_eq!(differences, aside.iter().copied().collect(), "{file}");
}

fn str(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

// url_prepare

/// Python's `str` of a parameter value, once per element of a list; `None` vanishes.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Bool(true) => vec!["True".to_owned()],
        Value::Bool(false) => vec!["False".to_owned()],
        other => vec![other.to_string()],
    }
}

/// Pairs in the order of the text, which [`Value`] loses for objects.
#[derive(Default)]
struct Params(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Params;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("parameters")
            }
            fn visit_unit<E>(self) -> Result<Params, E> {
                Ok(Params::default())
            }
            fn visit_str<E>(self, _raw: &str) -> Result<Params, E> {
                Ok(Params::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Params(pairs))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Params, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = list.next_element()? {
                    pairs.push(pair);
                }
                Ok(Params(pairs))
            }
        }
        deserializer.deserialize_any(Pairs)
    }
}

fn params(line: &str) -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Line {
        r#in: In,
    }
    #[derive(Deserialize)]
    struct In {
        params: Params,
    }
    let line: Line = serde_json::from_str(line).unwrap();
    let pairs = line.r#in.params.0.into_iter();
    pairs
        .flat_map(|(name, value)| texts(&value).into_iter().map(move |text| (name.clone(), text)))
        .collect()
}

/// Raw parameters are not part of the interface; a user writes them into the URL.
fn with_raw_params(url: &str, raw: &str) -> String {
    if raw.is_empty() {
        return url.to_owned();
    }
    let (head, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let separator = match head.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    format!("{head}{separator}{raw}{fragment}")
}

fn without_userinfo(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    format!("{scheme}://{}{tail}", authority.rsplit('@').next().unwrap_or_default())
}

fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

fn is_http(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn url_rule(given: &str, wanted: Option<&str>, ours: &Result<Url, Error>) -> Option<&'static str> {
    let host = host_of(given);
    match (wanted, ours) {
        (_, _) if given.trim_end() != given => Some("trailing-whitespace"),
        (Some(wanted), Ok(ours)) if Url::parse(wanted).ok().as_ref() == Some(ours) => {
            // The path as requests sends it still holds a dot segment.
            Some(if wanted.contains("/../") { "dot-segments" } else { "canonical-url" })
        }
        (Some(_), Err(_)) if host.ends_with(":0") => Some("port-zero"),
        (Some(_), Err(_))
            if host.contains('%') || host.split('.').any(|label| label.len() > 63) =>
        {
            Some("host-characters")
        }
        (None, Ok(_)) if !host.is_ascii() => Some("idna"),
        _ => None,
    }
}

#[test]
fn url_prepare() {
    let aside = [
        ("canonical-url", 14),
        ("dot-segments", 1),
        ("host-characters", 4),
        ("idna", 4),
        ("port-zero", 5),
        ("raw-params", 2),
        ("trailing-whitespace", 1),
    ];
    run("url_prepare", &aside, |given, out, line| {
        let url = with_raw_params(str(&given["url"]), str(&given["params"]));
        let ours = prepare_url(&url, &params(line));
        let wanted = out["url"].as_str().map(without_userinfo);
        let same = match (&wanted, &ours) {
            (Some(wanted), Ok(ours)) => ours.as_str() == wanted,
            // requests lets other schemes through and finds no adapter for them in `send`.
            (Some(wanted), Err(error)) => {
                !is_http(wanted) && error.kind() == ErrorKind::InvalidScheme
            }
            (None, Err(error)) => error.requests_name() == str(&out["error"]),
            (None, Ok(_)) => false,
        };
        let rule = match url_rule(&url, wanted.as_deref(), &ours) {
            // There a bad escape makes requests escape the whole URL again, and `#` is data.
            None if str(&given["params"]).contains(['%', '#']) => Some("raw-params"),
            rule => rule,
        };
        check(same, rule, || format!("{url:?} -> {ours:?}, requests {out}"))
    });
}

// redirect_rewrite

fn value(headers: &Headers, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value).into_owned())
}

fn redirect(given: &Value) -> Result<(Prepared, Option<Prepared>), Error> {
    let method = Method::from_bytes(str(&given["method"]).as_bytes()).unwrap();
    let mut request = Request::new(method, str(&given["url"]));
    for (name, value) in given["headers"].as_object().unwrap() {
        request = request.header(name, str(value));
    }
    if let Some(body) = given["body"].as_str() {
        request = request.body(body);
    }
    let mut settings = Settings::default();
    settings.headers = Headers::new();
    let first = prepare(&settings, &request)?;
    let mut headers = HeaderMap::new();
    if let Some(location) = given["location"].as_str() {
        let bytes: Vec<u8> = location.chars().map(|char| u8::try_from(char).unwrap()).collect();
        headers.insert("Location", HeaderValue::from_bytes(&bytes).unwrap());
    }
    let status = u16::try_from(given["status"].as_u64().unwrap()).unwrap();
    let next = follow(&first, status, &headers, RedirectRules::default())?;
    Ok((first, next))
}

/// Where `next` is not what requests makes of it.
fn unlike(given: &Value, out: &Value, first: &Prepared, next: &Prepared) -> Option<String> {
    let connect = &out["next_connect"];
    let target = match next.url.query() {
        Some(query) => format!("{}?{query}", next.url.path()),
        None => next.url.path().to_owned(),
    };
    let host = next.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = next.url.port_or_known_default().map(u64::from);
    let fragment = str(&out["next_url"]).split_once('#').map(|(_, fragment)| fragment);
    let mut unlike = [
        ("method", next.method.as_str() == str(&out["next_method"])),
        ("scheme", next.url.scheme() == str(&connect["scheme"])),
        ("host", host == str(&connect["host"])),
        ("port", port == connect["port"].as_u64()),
        ("target", target == str(&out["next_target"])),
        ("fragment", next.url.fragment() == fragment),
        // An empty body is none for us, and none is what requests sends.
        (
            "body",
            given["body"] == ""
                || out["body_dropped"].as_bool().is_none_or(|gone| gone == next.body.is_empty()),
        ),
    ]
    .into_iter()
    .find(|(_, same)| !same)
    .map(|(name, _)| name.to_owned());
    for (name, wanted) in out["headers"].as_object().into_iter().flatten() {
        let before = value(&first.headers, name);
        let after = value(&next.headers, name);
        // requests lets userinfo beat the field; either way it is there before.
        let both_auth = name == "Authorization" && given["url"].as_str().unwrap().contains('@');
        let same = match name.as_str() {
            // Framing belongs to the transport, cookies of the jar to the flight.
            "Content-Length" => true,
            "Cookie" => after.is_none(),
            _ if both_auth => after.is_some() == wanted["after"].is_string(),
            _ => {
                before.as_deref() == wanted["before"].as_str()
                    && after.as_deref() == wanted["after"].as_str()
            }
        };
        if !same {
            unlike = unlike.or_else(|| Some(name.clone()));
        }
    }
    unlike
}

#[test]
fn redirect_rewrite() {
    let aside = [
        ("dot-segments", 2),
        ("explicit-host", 3),
        ("location-bytes", 2),
        ("location-error", 9),
        ("location-host", 5),
    ];
    run("redirect_rewrite", &aside, |given, out, _| {
        let ours = redirect(given);
        let kind = ours.as_ref().err().map(Error::kind);
        let seen = || format!("{given} -> {ours:?}, requests {out}");
        let location = str(&given["location"]);
        if let Some(error) = out["error"].as_str() {
            let rule = match &ours {
                Ok((_, Some(_))) if error == "UnicodeDecodeError" => Some("location-bytes"),
                Err(_) if out["is_requests_exception"] == false => Some("location-error"),
                // requests fails on 304 in a place of its own; it is no redirect.
                Ok((_, None)) if given["status"] == 304 => Some("location-error"),
                _ => None,
            };
            return check(false, rule, seen);
        }
        match (&ours, out["next_connect"]["error"].as_str()) {
            (Ok((_, next)), _) if out["followed"] == false => check(next.is_none(), None, seen),
            (_, Some("InvalidSchema")) => check(kind == Some(ErrorKind::InvalidScheme), None, seen),
            (_, Some("LocationValueError")) => {
                check(kind == Some(ErrorKind::InvalidUrl), None, seen)
            }
            (Ok((first, Some(next))), None) => {
                let unlike = unlike(given, out, first, next);
                let rule = match unlike.as_deref() {
                    Some("host") if !location.is_ascii() => Some("location-host"),
                    Some("target") if location.contains("/../") => Some("dot-segments"),
                    Some("Host") => Some("explicit-host"),
                    _ => None,
                };
                check(unlike.is_none(), rule, || format!("{unlike:?}: {}", seen()))
            }
            (Err(_), None) if host_of(location).contains(' ') => {
                check(kind != Some(ErrorKind::InvalidUrl), Some("location-host"), seen)
            }
            _ => check(false, None, seen),
        }
    });
}

// encoding

fn response(content_type: Option<&str>, body: Vec<u8>) -> Response {
    let mut headers = HeaderMap::new();
    if let Some(value) = content_type {
        let name = HeaderName::from_static("content-type");
        headers.insert(name, HeaderValue::from_str(value).unwrap());
    }
    Response::from_parts(ResponseParts {
        method: Method::GET,
        url: Url::parse("http://h/").unwrap(),
        status: 200,
        reason: String::new(),
        headers,
        body: ResponseBody::Bytes(body.into()),
        wire_bytes: 0,
        history: Vec::new(),
        attempts: Vec::new(),
        elapsed: std::time::Duration::ZERO,
        timings: longhaul::message::Timings::default(),
        connection: longhaul::message::ConnectionFacts::default(),
        proxy: None,
    })
}

/// Charsets that Python knows and browsers do not, and the other way round.
const ONLY_PYTHON: &[&str] =
    &["idna", "punycode", "utf-7", "unicode_escape", "raw_unicode_escape", "undefined", "utf-32"];
const ONLY_WEB: &[&str] = &["x-sjis", "x-user-defined", "iso-8859-8-i", "windows-31j"];

#[test]
fn encoding() {
    let aside = [("bom", 8), ("charset-names", 19), ("detection", 2), ("json-unicode", 5)];
    run("encoding", &aside, |given, out, _| {
        let content_type = given["content_type"].as_str();
        let body = base64::engine::general_purpose::STANDARD.decode(str(&given["body_b64"]));
        let body = body.unwrap();
        let label = encoding_of(content_type.map(str::as_bytes));
        let text = decode_text(&body, content_type.map(str::as_bytes));
        let json = response(content_type, body.clone()).json::<Value>().ok();
        let same_label = label.as_deref() == out["encoding"].as_str();
        let same_text = out["text_is_detected"] == true
            || out["text"].as_str() == Some(text.as_str())
            || out["text"].is_null();
        let wanted_json = out.get("json").filter(|json| json.get("error").is_none());
        let same_json = json.as_ref() == wanted_json;
        let charset = content_type.is_some_and(|value| value.contains("charset"));
        let has_mark = [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"];
        let has_mark = has_mark.iter().any(|mark| body.starts_with(mark));
        let rule = match label.as_deref() {
            _ if !same_label => None,
            Some(label) if ONLY_PYTHON.contains(&label) || ONLY_WEB.contains(&label) => {
                Some("charset-names")
            }
            _ if has_mark => Some("bom"),
            _ if body == b"NaN" => Some("json-unicode"),
            _ if !charset && !same_json && body.contains(&0) => Some("json-unicode"),
            None if std::str::from_utf8(&body).is_err() => Some("detection"),
            _ => None,
        };
        check(same_label && same_text && same_json, rule, || {
            format!("{content_type:?} {body:?}: {label:?} {text:?} {json:?}, requests {out}")
        })
    });
}

// netrc

#[test]
fn netrc() {
    run("netrc", &[], |given, out, _| {
        let parsed = Netrc::parse(str(&given["netrc"]));
        let url = prepare_url(str(&given["url"]), &[]);
        let auth = match (&parsed, &url) {
            (Ok(netrc), Ok(url)) => netrc.auth(url),
            _ => None,
        };
        let wanted = out["auth"]
            .as_array()
            .map(|pair| Auth::Basic(str(&pair[0]).to_owned(), str(&pair[1]).to_owned()));
        let same = parsed.is_err() == out["parse_error"].is_string() && auth == wanted;
        let shown = match &auth {
            Some(Auth::Basic(user, password)) => format!("{user:?} {password:?}"),
            other => format!("{other:?}"),
        };
        check(same, None, || format!("{given} -> {parsed:?} {shown}, requests {out}"))
    });
}

// cookies

const NOW: u64 = 1_750_000_000;

fn time(at: &Value) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW + at.as_u64().unwrap())
}

/// The difference under which a line that `url` answers with falls, by the line itself and by the
/// hosts that are asked later.
fn cookie_rule(line: &str, url: &Url, later: &[Url]) -> Option<&'static str> {
    let host = url.host_str().unwrap();
    let attributes: Vec<(String, &str)> = line
        .split(';')
        .skip(1)
        .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
        .collect();
    let all = |name: &str| attributes.iter().filter(|(have, _)| have == name).collect::<Vec<_>>();
    let last = |name: &str| all(name).last().map(|(_, value)| *value);
    let name = line.split('=').next().unwrap().trim().to_ascii_lowercase();
    let is_date = |value: &str| value.ends_with(" GMT") && value.split_whitespace().count() == 6;
    match (last("domain"), last("path"), last("max-age"), last("expires")) {
        _ if name.is_empty() || !line.split(';').next().unwrap().contains('=') => Some("nameless"),
        _ if ["domain", "path"].iter().any(|name| all(name).len() > 1) => Some("cookie-attributes"),
        _ if last("port").is_some() => Some("cookie-attributes"),
        (_, _, Some(age), _) if age.parse::<i64>().is_err() => Some("cookie-attributes"),
        (_, _, None, Some(date)) if !is_date(date) || date.contains("Jan 70") => {
            Some("cookie-dates")
        }
        _ if name.starts_with("__secure-") || name.starts_with("__host-") => Some("secure-origin"),
        _ if last("secure").is_some() && url.scheme() != "https" => Some("secure-origin"),
        (Some("co.uk" | ".co.uk"), ..) => Some("public-suffix"),
        (Some(""), ..) => Some("cookie-domain"),
        (Some(domain), ..) if !host.contains('.') || domain.ends_with(['.', '1']) => {
            Some("cookie-domain")
        }
        (_, Some(path), ..) if !path.is_empty() && !path.starts_with('/') => Some("cookie-path"),
        (None, ..) if later.iter().any(|url| is_below(url.host_str().unwrap(), host)) => {
            Some("host-only")
        }
        _ => None,
    }
}

/// No cookie lives longer than 400 days; apart from this the end is the same.
fn clipped(end: u64) -> u64 {
    end.min(NOW + 400 * 86_400)
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|head| head.ends_with('.'))
}

#[test]
fn cookies() {
    // Set aside is one cookie by its name; all others of the vector are compared even then.
    let aside = [
        ("cookie-attributes", 11),
        ("cookie-dates", 13),
        ("cookie-domain", 9),
        ("cookie-path", 5),
        ("host-only", 2),
        ("nameless", 2),
        ("public-suffix", 2),
        ("secure-origin", 37),
    ];
    run("cookies", &aside, |given, out, _| {
        let request = &given["request"];
        if request["cookie_header"].is_string() {
            // Whether a field of the user's takes the place of the jar's is for the flight.
            return Outcome::Same;
        }
        let steps = given["steps"].as_array().unwrap();
        let mut urls: Vec<Url> =
            steps.iter().map(|step| prepare_url(str(&step["url"]), &[]).unwrap()).collect();
        urls.push(prepare_url(str(&request["url"]), &[]).unwrap());
        let mut jar = CookieJar::new();
        let mut headers = Vec::new();
        // Names whose cookies differ by a rule; everything else has to be the same.
        let mut aside = BTreeMap::new();
        for (index, (step, url)) in steps.iter().zip(&urls).enumerate() {
            headers.push(jar.header(url, time(&step["at"])));
            let mut fields = HeaderMap::new();
            for line in step["set_cookie"].as_array().unwrap() {
                if let Some(rule) = cookie_rule(str(line), url, &urls[index + 1..]) {
                    let pair = str(line).split(';').next().unwrap();
                    let (name, value) = pair.split_once('=').unwrap_or(("", pair));
                    aside.insert(name.trim().to_owned(), rule);
                    if name.trim().is_empty() {
                        // It is sent as its value, and Python takes that for the name.
                        aside.insert(value.trim().to_owned(), rule);
                    }
                }
                // One character is one byte.
                let bytes: Vec<u8> =
                    str(line).chars().map(|char| u8::try_from(char).unwrap()).collect();
                fields.append("set-cookie", HeaderValue::from_bytes(&bytes).unwrap());
            }
            if str(&step["url"]).contains('@') {
                // http.cookiejar takes userinfo for a part of the host.
                return Outcome::Difference("cookie-domain");
            }
            jar.store(url, &fields, time(&step["at"]));
        }
        let now = time(&request["at"]);
        headers.push(jar.header(urls.last().unwrap(), now));

        let compare = |set_aside: bool| {
            let kept = |pair: &str| {
                let name = pair.split('=').next().unwrap_or_default();
                let ruled = set_aside && aside.contains_key(name);
                !(ruled || pair.is_empty() || pair.ends_with("=call"))
            };
            let pairs = |header: &str| -> Vec<String> {
                header.split("; ").filter(|pair| kept(pair)).map(str::to_owned).collect()
            };
            let wanted = out["sent"].as_array().unwrap().iter().chain([&out["cookie"]]);
            let wanted: Vec<_> = wanted.map(|header| pairs(str(header))).collect();
            let ours: Vec<_> = headers
                .iter()
                .map(|header| {
                    let bytes = header.as_deref().unwrap_or_default();
                    pairs(&bytes.iter().copied().map(char::from).collect::<String>())
                })
                .collect();

            let seconds = |cookie: &Cookie| {
                let end = cookie.expires()?;
                Some(clipped(end.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()))
            };
            let alive = |end: Option<u64>| {
                end.is_none_or(|end| SystemTime::UNIX_EPOCH + Duration::from_secs(end) > now)
            };
            let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
            let mut stored: Vec<_> = jar
                .iter()
                .map(|cookie| {
                    let domain = cookie.domain().to_owned();
                    let place = (domain, cookie.is_host_only(), cookie.path().to_owned());
                    let pair = (text(cookie.name()), text(cookie.value()));
                    (place, pair, cookie.is_secure(), seconds(cookie))
                })
                .filter(|(_, (name, _), _, end)| {
                    !(set_aside && aside.contains_key(name)) && alive(*end)
                })
                .collect();
            let mut wanted_jar: Vec<_> = out["jar"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| {
                    // A dot in front says "and below"; a host without a dot gets `.local` there.
                    let domain = str(&row[0]);
                    let bare = domain.strip_prefix('.').unwrap_or(domain);
                    let bare = bare.strip_suffix(".local").unwrap_or(bare).to_owned();
                    let place = (bare, !domain.starts_with('.'), str(&row[1]).to_owned());
                    let pair = (str(&row[2]).to_owned(), str(&row[3]).to_owned());
                    (place, pair, row[4].as_bool().unwrap(), row[5].as_u64().map(clipped))
                })
                .filter(|(_, (name, _), _, end)| {
                    !(set_aside && aside.contains_key(name)) && alive(*end)
                })
                .collect();
            stored.sort();
            wanted_jar.sort();
            if ours == wanted && stored == wanted_jar {
                return None;
            }
            Some(format!(
                "{given}\n  sent {ours:?}, requests {wanted:?}\n  jar {stored:?}, requests \
             {wanted_jar:?}\n  aside {aside:?}"
            ))
        };
        match (compare(false), compare(true)) {
            (None, _) => Outcome::Same,
            // Everything but the cookies under a rule is the same.
            (Some(_), None) => Outcome::Difference(aside.values().next().unwrap()),
            (Some(_), Some(seen)) => Outcome::Other(seen),
        }
    });
}
