//! What tells one state of a resource from another: `ETag` and `Last-Modified` (RFC 9110, 8.8).
//!
//! Two questions are asked with them, and they need different answers. "Has it changed since?" is
//! served by any validator, and a wrong yes costs a transfer. "Is this the file of which I have the
//! first half?" must not be answered wrongly, since two halves of different files look like one: it
//! is asked with strong validators only.

use http::{HeaderMap, HeaderName, header};
use std::time::Duration;

/// How much later than `Last-Modified` a `Date` has to be: a file may change twice in a second, and
/// both states have the same date (RFC 9110, 8.8.2.2).
const STRONG_AFTER: Duration = Duration::from_secs(1);

/// The validators of a response, to be kept with what was made of it.
///
/// # Examples
/// ```
/// use longhaul::message::Validators;
///
/// // From a response, or from wherever the two texts were kept.
/// let kept = Validators::new(Some("\"a1\"".into()), None);
/// let request = longhaul::get("https://example.com/feed").if_changed(&kept);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    etag: Option<String>,
    last_modified: Option<String>,
    /// Whether `last_modified` names one state only.
    date_is_strong: bool,
}

impl Validators {
    /// Those that were kept as texts, as [`etag`](Self::etag) and
    /// [`last_modified`](Self::last_modified) gave them.
    pub fn new(etag: Option<String>, last_modified: Option<String>) -> Self {
        Self { etag, last_modified, date_is_strong: false }
    }

    /// Those of a response with these fields. What is empty or not ASCII counts as absent.
    pub fn of(headers: &HeaderMap) -> Self {
        let text = |name: HeaderName| {
            let value = headers.get(name)?.to_str().ok()?.trim();
            Some(value).filter(|value| !value.is_empty())
        };
        let date = |text: Option<&str>| text.and_then(|text| httpdate::parse_http_date(text).ok());
        let (etag, last_modified) = (text(header::ETAG), text(header::LAST_MODIFIED));
        let date_is_strong =
            date(last_modified).zip(date(text(header::DATE))).is_some_and(|(modified, date)| {
                date.duration_since(modified).is_ok_and(|age| age >= STRONG_AFTER)
            });
        Self {
            etag: etag.map(str::to_owned),
            last_modified: last_modified.map(str::to_owned),
            date_is_strong,
        }
    }

    /// The entity tag as it came, quotes and weakness included: `"a1"`, `W/"a1"`.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// The date as it came.
    pub fn last_modified(&self) -> Option<&str> {
        self.last_modified.as_deref()
    }

    /// Whether there is none of both, so that nothing can be asked.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// What proves that a part belongs to the file that it is to be joined with: a strong entity
    /// tag, or, without any tag, a date that was a second old at least (RFC 9110, 13.1.5).
    pub fn if_range(&self) -> Option<&str> {
        match &self.etag {
            Some(tag) => {
                Some(tag.as_str()).filter(|tag| tag.len() >= 2 && is_quoted(tag.as_bytes()))
            }
            None => self.last_modified.as_deref().filter(|_| self.date_is_strong),
        }
    }
}

fn is_quoted(tag: &[u8]) -> bool {
    let inside = tag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\""));
    inside.is_some_and(|inside| !inside.contains(&b'"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(fields: &[(HeaderName, &'static str)]) -> Validators {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Validators::of(&headers)
    }

    #[test]
    fn only_what_is_strong_joins_parts() {
        const MODIFIED: &str = "Sun, 15 Jun 2025 15:06:40 GMT";
        const LATER: &str = "Sun, 15 Jun 2025 15:06:41 GMT";
        let tag = |tag| of(&[(header::ETAG, tag)]);
        let date = |date| of(&[(header::LAST_MODIFIED, MODIFIED), (header::DATE, date)]);
        for (validators, wanted) in [
            (tag("\"a\""), Some("\"a\"")),
            (tag("\"\""), Some("\"\"")),
            (tag("W/\"a\""), None),
            (tag("w/\"a\""), None),
            (tag("a"), None),
            (tag("\""), None),
            (tag("\"a\", \"b\""), None),
            (date(LATER), Some(MODIFIED)),
            (date(MODIFIED), None),
            (date("Sun, 15 Jun 2025 15:06:39 GMT"), None),
            (date("yesterday"), None),
            (of(&[(header::LAST_MODIFIED, MODIFIED)]), None),
            // The date is for those who have no tag, and a weak one is a tag.
            (
                of(&[
                    (header::ETAG, "W/\"a\""),
                    (header::LAST_MODIFIED, MODIFIED),
                    (header::DATE, LATER),
                ]),
                None,
            ),
            (Validators::new(None, Some(MODIFIED.into())), None),
            (Validators::new(Some("\"a\"".into()), None), Some("\"a\"")),
        ] {
            assert_eq!(validators.if_range(), wanted, "{validators:?}");
        }
    }

    #[test]
    fn what_came_is_kept_as_it_came() {
        let validators = of(&[(header::ETAG, " W/\"a\" "), (header::LAST_MODIFIED, "odd")]);
        assert_eq!(validators.etag(), Some("W/\"a\""));
        assert_eq!(validators.last_modified(), Some("odd"));
        assert!(!validators.is_empty());
        assert!(of(&[(header::ETAG, "")]).is_empty());
    }
}
