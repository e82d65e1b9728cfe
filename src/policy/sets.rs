//! The two sets that decide whether an outcome may be retried: methods and statuses.

use crate::error::Error;
use http::Method;
use std::fmt;
use std::str::FromStr;

/// Which methods may be retried once the request may have arrived.
///
/// DIFFERENCE(empty-methods): an empty list means none; in urllib3 it means any, so that a list
/// that was filtered down to nothing resends every POST. Any is spelled [`Methods::Any`] here.
#[allow(clippy::exhaustive_enums, reason = "a set is all or a list")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Methods {
    /// Every method.
    Any,
    /// Those in the list; an empty list means none.
    Only(Vec<Method>),
}

impl Methods {
    /// urllib3's `DEFAULT_ALLOWED_METHODS`: the idempotent methods of RFC 9110.
    pub fn idempotent() -> Self {
        Self::Only(vec![
            Method::HEAD,
            Method::GET,
            Method::PUT,
            Method::DELETE,
            Method::OPTIONS,
            Method::TRACE,
        ])
    }

    /// Whether `method` is in the set; it is put into upper case first, as urllib3 does.
    pub fn contains(&self, method: &Method) -> bool {
        match self {
            Self::Any => true,
            Self::Only(list) => list.iter().any(|listed| {
                let (listed, method) = (listed.as_str().bytes(), method.as_str().bytes());
                listed.eq(method.map(|byte| byte.to_ascii_uppercase()))
            }),
        }
    }

    /// Whether no method is in the set.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Only(list) if list.is_empty())
    }
}

impl<const N: usize> From<[Method; N]> for Methods {
    fn from(list: [Method; N]) -> Self {
        Self::Only(list.into())
    }
}

impl From<Vec<Method>> for Methods {
    fn from(list: Vec<Method>) -> Self {
        Self::Only(list)
    }
}

impl FromStr for Methods {
    type Err = Error;

    /// `any`, `none`, or names with commas between them, in any case.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("any") {
            return Ok(Self::Any);
        }
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self::Only(Vec::new()));
        }
        let mut list = Vec::new();
        for name in text.split(',').map(str::trim) {
            let method = Method::from_bytes(name.to_ascii_uppercase().as_bytes());
            list.push(method.map_err(|_| {
                Error::config(format!(
                    "`{name}` in `{text}` is not a method: give names such as GET,HEAD, or `any`, or `none`"
                ))
            })?);
        }
        Ok(Self::Only(list))
    }
}

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Only(list) => write_list(f, list.iter().map(Method::as_str)),
        }
    }
}

/// A set of status codes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statuses(Vec<u16>);

impl Statuses {
    /// The empty set.
    pub const NONE: Self = Self(Vec::new());

    /// Whether `status` is in the set.
    pub fn contains(&self, status: u16) -> bool {
        self.0.binary_search(&status).is_ok()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The codes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<u16> for Statuses {
    fn from_iter<I: IntoIterator<Item = u16>>(codes: I) -> Self {
        let mut codes: Vec<u16> = codes.into_iter().collect();
        codes.sort_unstable();
        codes.dedup();
        Self(codes)
    }
}

impl<const N: usize> From<[u16; N]> for Statuses {
    fn from(codes: [u16; N]) -> Self {
        codes.into_iter().collect()
    }
}

impl From<Vec<u16>> for Statuses {
    fn from(codes: Vec<u16>) -> Self {
        codes.into_iter().collect()
    }
}

impl From<&[u16]> for Statuses {
    fn from(codes: &[u16]) -> Self {
        codes.iter().copied().collect()
    }
}

impl FromStr for Statuses {
    type Err = Error;

    /// Codes and ranges with commas between them (`408,429,500-504`), or `none`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self::NONE);
        }
        let code = |part: &str| {
            let code = part.trim().parse::<u16>().ok();
            code.filter(|code| (100..=599).contains(code)).ok_or_else(|| {
                Error::config(format!(
                    "`{part}` in `{text}` is not a status: give codes from 100 to 599 such as 429,500-504, or `none`"
                ))
            })
        };
        let mut codes = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                Some((low, high)) => codes.extend(code(low)?..=code(high)?),
                None => codes.push(code(part)?),
            }
        }
        Ok(codes.into())
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.iter())
    }
}

fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = T>,
) -> fmt::Result {
    let mut empty = true;
    for item in items {
        if !empty {
            f.write_str(",")?;
        }
        empty = false;
        write!(f, "{item}")?;
    }
    if empty { f.write_str("none") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_compared_in_upper_case_as_urllib3_does() {
        let methods = Methods::from([Method::GET, Method::HEAD]);
        let lower = Method::from_bytes(b"get").unwrap();
        assert!(methods.contains(&Method::GET) && methods.contains(&lower));
        assert!(!methods.contains(&Method::POST));
        assert!(!Methods::from([lower]).contains(&Method::GET));
    }

    #[test]
    fn an_empty_set_of_methods_holds_none_and_any_holds_all() {
        assert!(!Methods::Only(Vec::new()).contains(&Method::GET));
        assert!(Methods::Any.contains(&Method::PATCH));
    }

    #[test]
    fn lists_as_people_write_them() {
        for (text, shown) in [
            ("408, 429,500-502", "408,429,500,501,502"),
            ("503,503,500", "500,503"),
            ("none", "none"),
        ] {
            assert_eq!(text.parse::<Statuses>().unwrap().to_string(), shown);
        }
        for wrong in ["", "42", "600", "5xx", "500-", "500,,503"] {
            assert!(wrong.parse::<Statuses>().is_err(), "{wrong}");
        }
        for (text, shown) in [("get, HEAD", "GET,HEAD"), ("any", "any"), ("none", "none")] {
            assert_eq!(text.parse::<Methods>().unwrap().to_string(), shown);
        }
        for wrong in ["", "GET,", "GE T"] {
            assert!(wrong.parse::<Methods>().is_err(), "{wrong}");
        }
    }
}
