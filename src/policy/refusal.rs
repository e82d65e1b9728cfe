//! Refusals: what counts as one, and how a refused URL is asked for again.
//!
//! A 403 is about the shape of a request or about who sends it. The same request a moment later
//! meets the same answer and makes the next one worse, so it is no matter of the retry policy: the
//! URL goes into a *slow lane*, to be sent later, slower and through another identity, a bounded
//! number of times, and its host is left alone for a while.
//!
//! Many sites refuse without saying so: a 200 with a puzzle, a redirect to a login. Only the user
//! knows what such a page looks like; [`BlockPage`] is how he says it.

use crate::error::{Error, ErrorKind, Fault, Phase};
use http::{HeaderMap, HeaderName};
use memchr::memmem;
use std::time::Duration;

/// How far into a body a block page is looked for.
const SEARCHED: usize = 256 * 1024;

/// How a refused URL is asked for again: how often, after which pause, and how far apart.
///
/// # Defaults
/// Once more, 20 s after the refusal at the earliest, the refused URLs of a host 5 s apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowLane {
    times: u32,
    pause: Duration,
    spacing: Duration,
}

impl Default for SlowLane {
    fn default() -> Self {
        Self { times: 1, pause: Duration::from_secs(20), spacing: Duration::from_secs(5) }
    }
}

impl SlowLane {
    /// The furthest turn that a URL waits for. One whose turn would come later ends as refused at
    /// once, so that a host that refuses everything does not fill the run with URLs that wait.
    pub const FURTHEST: Duration = Duration::from_secs(600);

    /// How often a URL goes through the lane at most. Default: 1.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// How long a refused URL waits at least, and how long its host is left alone at most: so long
    /// when all of its last 20 answers were refusals, and a twentieth of it for a single one among
    /// good ones. Default: 20 s.
    #[must_use]
    pub fn pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// How far the refused URLs of one host are apart. Default: 5 s.
    #[must_use]
    pub fn spacing(self, spacing: Duration) -> Self {
        Self { spacing, ..self }
    }

    pub(crate) fn most_times(self) -> u32 {
        self.times
    }

    pub(crate) fn shortest_wait(self) -> Duration {
        self.pause
    }

    pub(crate) fn between_two(self) -> Duration {
        self.spacing
    }

    /// Whether it can work.
    pub(crate) fn validate(self) -> Result<(), Error> {
        let Self { times, pause, spacing } = self;
        if times == 0 {
            return Err(Error::config(
                "a slow lane that a URL goes through 0 times is none; give 1 or more, or switch it off",
            ));
        }
        for (what, time) in [("pause", pause), ("spacing", spacing)] {
            if time > Self::FURTHEST {
                return Err(Error::config(format!(
                    "the {what} of the slow lane is {} s, and nothing waits there for longer than {} s; give less",
                    time.as_secs_f64(),
                    Self::FURTHEST.as_secs()
                )));
            }
        }
        Ok(())
    }
}

/// What a refusal looks like that does not come as a 403: any of these statuses, fields or texts.
///
/// # Examples
/// ```
/// use longhaul::policy::BlockPage;
/// use http::HeaderMap;
///
/// let page = BlockPage::new().status(429).header("Server: shield")?.body("are you a robot");
/// let found = page.find(200, &HeaderMap::new(), b"<h1>Wait, are you a robot?</h1>");
/// assert_eq!(found.as_deref(), Some("body: are you a robot"));
/// # Ok::<(), longhaul::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockPage {
    statuses: Vec<u16>,
    headers: Vec<(HeaderName, String)>,
    bodies: Vec<String>,
}

impl BlockPage {
    /// No page yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A status that is a refusal, 403 aside. It is neither retried nor, where it is a redirect,
    /// followed.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.statuses.push(status);
        self
    }

    /// A field whose value holds this text, as `Name: text`; upper and lower case are the same.
    /// As with a status, such a response is neither retried nor followed.
    ///
    /// # Errors
    /// `InvalidHeader` for what is no field name, and `Config` for an empty text.
    pub fn header(mut self, field: &str) -> Result<Self, Error> {
        let (name, text) = field.split_once(':').unwrap_or((field, ""));
        let shown = name.trim().escape_debug().to_string();
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| {
            let message = format!("'{shown}' is not a field name; give 'Name: text'");
            Error::new(ErrorKind::InvalidHeader, Phase::Prepare, Fault::Local, message)
        })?;
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return Err(Error::config(format!(
                "a block page by the field '{shown}' has no text; give 'Name: text'"
            )));
        }
        self.headers.push((name, text));
        Ok(self)
    }

    /// A text that stands, byte for byte, in the first 256 KiB of the decoded body.
    ///
    /// Looked at where the response would be handed out, after retries and redirects, and not in
    /// stream mode. An empty text is never found.
    #[must_use]
    pub fn body(mut self, text: impl Into<String>) -> Self {
        self.bodies.push(text.into());
        self
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        let Self { statuses, headers, bodies } = self;
        statuses.is_empty() && headers.is_empty() && bodies.is_empty()
    }

    /// What of it this response has, in words for a record; `None` where it is no such page.
    pub fn find(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Option<String> {
        self.find_in_head(status, headers).or_else(|| self.find_in_body(body))
    }

    pub(crate) fn find_in_head(&self, status: u16, headers: &HeaderMap) -> Option<String> {
        if self.statuses.contains(&status) {
            return Some(format!("status: {status}"));
        }
        let holds = |value: &http::HeaderValue, text: &str| {
            memmem::find(&value.as_bytes().to_ascii_lowercase(), text.as_bytes()).is_some()
        };
        let mut fields = self.headers.iter();
        let (name, text) = fields
            .find(|(name, text)| headers.get_all(name).iter().any(|value| holds(value, text)))?;
        Some(format!("header: {name}: {text}"))
    }

    pub(crate) fn find_in_body(&self, body: &[u8]) -> Option<String> {
        let start = body.get(..SEARCHED).unwrap_or(body);
        let mut texts = self.bodies.iter().filter(|text| !text.is_empty());
        let text = texts.find(|text| memmem::find(start, text.as_bytes()).is_some())?;
        Some(format!("body: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::secs;

    #[test]
    fn pages_by_status_field_and_body() {
        let page = BlockPage::new().status(429).status(302).body("").body("captcha");
        let page = page.header("X-Shield:  Blocked ").unwrap();
        let mut headers = HeaderMap::new();
        headers.append("x-shield", "passed".parse().unwrap());
        headers.append("x-shield", "was BLOCKED by rule 7".parse().unwrap());
        let (none, far) = (HeaderMap::new(), [vec![b' '; SEARCHED], b"captcha".to_vec()].concat());
        for (status, headers, body, found) in [
            (429, &none, &b""[..], Some("status: 429")),
            (302, &none, b"", Some("status: 302")),
            (200, &headers, b"", Some("header: x-shield: blocked")),
            (200, &none, b"a captcha!", Some("body: captcha")),
            (200, &none, b"a Captcha!", None),
            (200, &none, &far, None),
            (200, &none, &far[1..], None),
            (200, &none, &far[7..], Some("body: captcha")),
            (503, &none, b"", None),
        ] {
            assert_eq!(page.find(status, headers, body).as_deref(), found, "{status}");
        }
        assert!(!page.is_empty() && BlockPage::new().is_empty());
        assert_eq!(BlockPage::new().find(429, &headers, b"captcha"), None);
    }

    #[test]
    fn what_cannot_be_looked_for_is_told() {
        for (field, words) in [
            ("no colon", "'no colon' is not a field name"),
            ("Via:", "has no text"),
            ("Via", "has no text"),
        ] {
            let error = BlockPage::new().header(field).unwrap_err();
            assert!(error.message().contains(words), "{error}");
            assert!(error.message().ends_with("give 'Name: text'"), "{error}");
        }
        assert!(SlowLane::default().validate().is_ok());
        assert!(SlowLane::default().times(0).validate().is_err());
        assert!(SlowLane::default().pause(secs(601.0)).validate().is_err());
        assert!(SlowLane::default().spacing(Duration::MAX).validate().is_err());
    }
}
