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
    fn is_over(&self, now: SystemTime) -> bool {
        match (self.last("max-age"), self.last("expires")) {
            (Some(age), _) => age.parse::<i64>().is_ok_and(|age| age <= 0),
            (None, Some(date)) => {
                httpdate::parse_http_date(&date.replace('-', " ")).is_ok_and(|end| end <= now)
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
    now: SystemTime,
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
        _ if line.is_over(place.now) && place.beside.iter().any(named) => Some("cookie-sequence"),
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

/// A vector as it was played here.
struct Played {
    /// The Cookie fields of all requests.
    sent: Vec<String>,
    jar: Vec<Stored>,
    /// Names whose cookies differ by a rule; everything else has to be the same.
    aside: BTreeMap<String, &'static str>,
}

/// Domain, whether for that host alone, path, name, value, secure, end.
type Stored = (String, bool, String, String, String, bool, Option<u64>);

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// `None` where the answer is not the jar's.
fn play(given: &Value) -> Option<Played> {
    let request = &given["request"];
    if request["cookie_header"].is_string() {
        // Whether a field of the user's takes the place of the jar's is for the flight.
        return None;
    }
    let steps = given["steps"].as_array().unwrap();
    let asked = steps.iter().map(|step| &step["url"]).chain([&request["url"]]);
    let urls: Vec<Url> = asked.map(|url| prepare_url(text(url), &[]).unwrap()).collect();
    let mut jar = CookieJar::new();
    let mut sent = Vec::new();
    let mut aside = BTreeMap::new();
    let mut before: Vec<Line> = Vec::new();
    for (index, (step, url)) in steps.iter().zip(&urls).enumerate() {
        let now = time(&step["at"]);
        sent.push(latin1(&jar.header(url, now).unwrap_or_default()));
        let mut fields = HeaderMap::new();
        let mut beside = Vec::new();
        for text in step["set_cookie"].as_array().unwrap().iter().map(text) {
            let line = Line::parse(text);
            let later = &urls[index + 1..];
            let place = Place { url, now, beside: &beside, before: &before, later };
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
        jar.store(url, &fields, now);
    }
    let now = time(&request["at"]);
    sent.push(latin1(&jar.header(urls.last().unwrap(), now).unwrap_or_default()));
    let jar = jar.iter().filter(|cookie| cookie.expires().is_none_or(|end| end > now));
    Some(Played { sent, jar: jar.map(stored).collect(), aside })
}

fn stored(cookie: &Cookie) -> Stored {
    let seconds = |end: SystemTime| end.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    (
        cookie.domain().to_owned(),
        cookie.is_host_only(),
        cookie.path().to_owned(),
        latin1(cookie.name()),
        latin1(cookie.value()),
        cookie.is_secure(),
        cookie.expires().map(|end| clipped(seconds(end))),
    )
}

fn stored_there(row: &Value) -> Stored {
    // A dot in front says "and below"; a host without a dot gets `.local` there.
    let domain = text(&row[0]);
    let bare = domain.strip_prefix('.').unwrap_or(domain);
    (
        bare.strip_suffix(".local").unwrap_or(bare).to_owned(),
        !domain.starts_with('.'),
        text(&row[1]).to_owned(),
        text(&row[2]).to_owned(),
        text(&row[3]).to_owned(),
        row[4].as_bool().unwrap(),
        row[5].as_u64().map(clipped),
    )
}

/// The same, the same but for cookies that fall under a rule, or neither.
fn compare<T: PartialEq + std::fmt::Debug>(
    vector: &Vector,
    aside: &BTreeMap<String, &'static str>,
    ours: impl Fn(&dyn Fn(&str) -> bool) -> T,
    theirs: impl Fn(&dyn Fn(&str) -> bool) -> T,
) -> Verdict {
    // http.cookiejar takes userinfo for a part of the host.
    let steps = vector.given["steps"].as_array().unwrap();
    let has_userinfo = steps.iter().any(|step| text(&step["url"]).contains('@'));
    if ours(&|_| true) == theirs(&|_| true) {
        return Verdict::Passed;
    }
    if has_userinfo {
        return Verdict::Aside("cookie-domain");
    }
    let kept = |name: &str| !aside.contains_key(name);
    if ours(&kept) != theirs(&kept) {
        let (ours, theirs) = (ours(&kept), theirs(&kept));
        let story = format!("{ours:?}, not {theirs:?}: {}\n  {aside:?}", vector.given);
        return Verdict::Failed(story);
    }
    // Named by a cookie that differs by itself, else by one that stands at another place.
    let differs = |name: &str| ours(&|have| have == name) != theirs(&|have| have == name);
    let rule = aside.iter().find(|(name, _)| differs(name)).or(aside.iter().next());
    rule.map_or_else(|| Verdict::Failed(vector.given.to_string()), |(_, rule)| Verdict::Aside(rule))
}

/// What goes onto the wire.
pub(crate) fn sent(vector: &Vector) -> Option<Verdict> {
    let played = play(&vector.given)?;
    let pairs = |field: &str, kept: &dyn Fn(&str) -> bool| -> Vec<String> {
        // Cookies of the call are the flight's.
        let own = |pair: &&str| !(pair.is_empty() || pair.ends_with("=call"));
        let kept = |pair: &&str| kept(pair.split('=').next().unwrap_or_default());
        field.split("; ").filter(own).filter(kept).map(str::to_owned).collect()
    };
    let theirs = vector.out["sent"].as_array().unwrap().iter().chain([&vector.out["cookie"]]);
    let theirs: Vec<&str> = theirs.map(text).collect();
    let all = |fields: &[&str], kept: &dyn Fn(&str) -> bool| -> Vec<Vec<String>> {
        fields.iter().map(|field| pairs(field, kept)).collect()
    };
    let ours: Vec<&str> = played.sent.iter().map(String::as_str).collect();
    let verdict =
        compare(vector, &played.aside, |kept| all(&ours, kept), |kept| all(&theirs, kept));
    let sorted = |fields: &[&str]| {
        let mut fields = all(fields, &|name| !played.aside.contains_key(name));
        fields.iter_mut().for_each(|pairs| pairs.sort());
        fields
    };
    match verdict {
        Verdict::Failed(_) if sorted(&ours) == sorted(&theirs) => {
            Some(Verdict::Aside("cookie-order"))
        }
        verdict => Some(verdict),
    }
}

/// What is kept for later.
pub(crate) fn jar(vector: &Vector) -> Option<Verdict> {
    let played = play(&vector.given)?;
    let now = NOW + vector.given["request"]["at"].as_u64().unwrap();
    let sorted = |rows: &mut dyn Iterator<Item = Stored>, kept: &dyn Fn(&str) -> bool| {
        let alive = |row: &Stored| row.6.is_none_or(|end| end > now);
        let mut rows: Vec<_> = rows.filter(|row| kept(&row.3) && alive(row)).collect();
        rows.sort();
        rows
    };
    let there = vector.out["jar"].as_array().unwrap();
    Some(compare(
        vector,
        &played.aside,
        |kept| sorted(&mut played.jar.iter().cloned(), kept),
        |kept| sorted(&mut there.iter().map(stored_there), kept),
    ))
}
