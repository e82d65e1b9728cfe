//! Cookies over several answers, and what is sent at last.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue};
use longhaul::message::prepare_url;
use longhaul::session::{Cookie, CookieJar};
use serde_json::Value;
use url::{Host, Url};

use crate::verdict::{Vector, Verdict, text, wire};

const NOW: u64 = 1_750_000_000;

fn time(at: &Value) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW + at.as_u64().unwrap())
}

/// A `Set-Cookie` line, as far as the rules look at it.
struct Line {
    name: String,
    value: String,
    /// Whether there is an `=` in the pair.
    is_pair: bool,
    attributes: Vec<(String, String)>,
}

impl Line {
    fn parse(line: &str) -> Self {
        let mut pieces = line.split(';');
        let pair = pieces.next().unwrap();
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let attributes = pieces
            .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let is_pair = pair.contains('=');
        Self { name: name.trim().to_owned(), value: value.trim().to_owned(), is_pair, attributes }
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.attributes.iter().filter(move |(have, _)| have == name).map(|(_, value)| &**value)
    }

    fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    fn is_secure(&self) -> bool {
        self.last("secure").is_some()
    }

    /// Whether it takes a cookie away.
    fn is_over(&self) -> bool {
        match (self.last("max-age"), self.last("expires")) {
            (Some(age), _) => age.parse::<i64>().is_ok_and(|age| age <= 0),
            (None, Some(date)) => {
                httpdate::parse_http_date(date).is_ok_and(|end| end <= time(&0.into()))
            }
            (None, None) => false,
        }
    }

    fn breaks_its_prefix(&self, url: &Url) -> bool {
        let name = self.name.to_ascii_lowercase();
        let secure = self.is_secure() && url.scheme() == "https";
        let at_host =
            self.last("domain").is_none_or(str::is_empty) && self.last("path") == Some("/");
        (name.starts_with("__secure-") && !secure)
            || (name.starts_with("__host-") && !(secure && at_host))
    }
}

/// Dates that Python and RFC 6265bis read alike: `Sun, 15 Jun 2025 15:07:30 GMT`, with or without
/// dashes.
fn is_plain_date(date: &str) -> bool {
    let spaced = date.replace('-', " ");
    let pieces: Vec<&str> = spaced.split_whitespace().collect();
    matches!(pieces[..], [_, _, _, year, _, "GMT"] if year.len() == 4)
}

/// Where a line stands: who answered with it, what was said before, who is asked later.
struct Place<'a> {
    url: &'a Url,
    /// The lines before it in the same answer.
    beside: &'a [Line],
    /// The lines of the answers before.
    before: &'a [Line],
    later: &'a [Url],
}

/// The difference under which a line falls.
fn cookie_rule(line: &Line, place: &Place<'_>) -> Option<&'static str> {
    let url = place.url;
    let host = url.host_str().unwrap();
    let named = |other: &Line| other.name == line.name;
    let is_below = |url: &Url| {
        let below = url.host_str().unwrap().strip_suffix(host);
        below.is_some_and(|head| head.ends_with('.'))
    };
    let mut seen = place.before.iter().chain(place.beside);
    let domain = line.last("domain");
    match (domain, line.last("path"), line.last("max-age"), line.last("expires")) {
        _ if line.name.is_empty() || !line.is_pair => Some("nameless"),
        _ if ["domain", "path"].iter().any(|name| line.all(name).count() > 1) => {
            Some("cookie-attributes")
        }
        _ if line.last("port").is_some() || line.last("version").is_some() => {
            Some("cookie-attributes")
        }
        (_, _, Some(age), _) if age.parse::<i64>().is_err() => Some("cookie-attributes"),
        (_, _, None, Some(date)) if !is_plain_date(date) => Some("cookie-dates"),
        _ if line.breaks_its_prefix(url) => Some("secure-origin"),
        _ if line.is_secure() && url.scheme() != "https" => Some("secure-origin"),
        _ if url.scheme() != "https" && seen.any(|other| named(other) && other.is_secure()) => {
            Some("secure-origin")
        }
        _ if line.is_over() && place.beside.iter().any(named) => Some("cookie-sequence"),
        (Some(""), ..) => Some("cookie-domain"),
        (Some(domain), ..) if is_public_suffix(domain) => Some("public-suffix"),
        (Some(domain), ..)
            if !host.contains('.')
                || domain.ends_with('.')
                || !matches!(url.host(), Some(Host::Domain(_))) =>
        {
            Some("cookie-domain")
        }
        (_, Some(path), ..) if !path.is_empty() && !path.starts_with('/') => Some("cookie-path"),
        (None, ..) if place.later.iter().any(is_below) => Some("host-only"),
        _ => None,
    }
}

fn is_public_suffix(domain: &str) -> bool {
    let domain = domain.trim_start_matches('.');
    domain.contains('.') && psl::suffix_str(domain) == Some(domain)
}

/// No cookie lives longer than 400 days; apart from this the end is the same.
fn clipped(end: u64) -> u64 {
    end.min(NOW + 400 * 86_400)
}

pub(crate) fn cookies(vector: &Vector) -> Option<Verdict> {
    let (given, out) = (&vector.given, &vector.out);
    let request = &given["request"];
    if request["cookie_header"].is_string() {
        // Whether a field of the user's takes the place of the jar's is for the flight.
        return None;
    }
    let steps = given["steps"].as_array().unwrap();
    let mut urls: Vec<Url> =
        steps.iter().map(|step| prepare_url(text(&step["url"]), &[]).unwrap()).collect();
    urls.push(prepare_url(text(&request["url"]), &[]).unwrap());
    let mut jar = CookieJar::new();
    let mut headers = Vec::new();
    // Names whose cookies differ by a rule; everything else has to be the same.
    let mut aside = BTreeMap::new();
    let mut before: Vec<Line> = Vec::new();
    for (index, (step, url)) in steps.iter().zip(&urls).enumerate() {
        headers.push(jar.header(url, time(&step["at"])));
        let mut fields = HeaderMap::new();
        let mut beside = Vec::new();
        for text in step["set_cookie"].as_array().unwrap().iter().map(text) {
            let line = Line::parse(text);
            let later = &urls[index + 1..];
            let place = Place { url, beside: &beside, before: &before, later };
            if let Some(rule) = cookie_rule(&line, &place) {
                aside.insert(line.name.clone(), rule);
                if line.name.is_empty() {
                    // It is sent as its value, and Python takes that for the name.
                    aside.insert(line.value.clone(), rule);
                }
            }
            beside.push(line);
            fields.append("set-cookie", HeaderValue::from_bytes(&wire(text)).unwrap());
        }
        before.append(&mut beside);
        if text(&step["url"]).contains('@') {
            // http.cookiejar takes userinfo for a part of the host.
            return Some(Verdict::Aside("cookie-domain"));
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
        let wanted: Vec<_> = wanted.map(|header| pairs(text(header))).collect();
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
        let latin1 = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
        let mut stored: Vec<_> = jar
            .iter()
            .map(|cookie| {
                let domain = cookie.domain().to_owned();
                let place = (domain, cookie.is_host_only(), cookie.path().to_owned());
                let pair = (latin1(cookie.name()), latin1(cookie.value()));
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
                let domain = text(&row[0]);
                let bare = domain.strip_prefix('.').unwrap_or(domain);
                let bare = bare.strip_suffix(".local").unwrap_or(bare).to_owned();
                let place = (bare, !domain.starts_with('.'), text(&row[1]).to_owned());
                let pair = (text(&row[2]).to_owned(), text(&row[3]).to_owned());
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
        (None, _) => Some(Verdict::Passed),
        // Everything but the cookies under a rule is the same.
        (Some(_), None) => Some(Verdict::Aside(aside.values().next().unwrap())),
        (Some(_), Some(seen)) => Some(Verdict::Failed(seen)),
    }
}
