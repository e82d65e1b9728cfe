//! Cookies over several answers, and what is sent at last.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue};
use longhaul::message::prepare_url;
use longhaul::session::{Cookie, CookieJar};
use serde_json::Value;
use url::Url;

use crate::verdict::{Vector, Verdict, text};

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
    for (index, (step, url)) in steps.iter().zip(&urls).enumerate() {
        headers.push(jar.header(url, time(&step["at"])));
        let mut fields = HeaderMap::new();
        for line in step["set_cookie"].as_array().unwrap() {
            if let Some(rule) = cookie_rule(text(line), url, &urls[index + 1..]) {
                let pair = text(line).split(';').next().unwrap();
                let (name, value) = pair.split_once('=').unwrap_or(("", pair));
                aside.insert(name.trim().to_owned(), rule);
                if name.trim().is_empty() {
                    // It is sent as its value, and Python takes that for the name.
                    aside.insert(value.trim().to_owned(), rule);
                }
            }
            // One character is one byte.
            let bytes: Vec<u8> =
                text(line).chars().map(|char| u8::try_from(char).unwrap()).collect();
            fields.append("set-cookie", HeaderValue::from_bytes(&bytes).unwrap());
        }
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
