//! `Link` fields (RFC 8288), as requests parses them.
//!
//! Pages of an API are walked by `rel="next"`. Servers write the field loosely, so the parser
//! takes what it can and stops within a link, never with an error, where it cannot.

/// One link of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The target as it was written; relative ones are relative to the response's URL.
    pub url: String,
    /// The parameters in order, without their quotes.
    pub params: Vec<(String, String)>,
}

impl Link {
    /// The value of a parameter; its name compares without case.
    pub fn param(&self, name: &str) -> Option<&str> {
        let found = self.params.iter().find(|(have, _)| have.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether `rel` is among its relations (a list with blanks between them).
    pub fn has_rel(&self, rel: &str) -> bool {
        let rels = self.param("rel").unwrap_or_default();
        rels.split_whitespace().any(|have| have.eq_ignore_ascii_case(rel))
    }
}

/// requests' `parse_header_links`.
pub(super) fn parse_links(value: &str) -> Vec<Link> {
    let strip = |text: &str| text.trim_matches([' ', '\'', '"']).to_owned();
    let value = value.trim_matches([' ', '\'', '"']);
    let mut links = Vec::new();
    for link in split_links(value) {
        let (url, params) = link.split_once(';').unwrap_or((link, ""));
        let mut parsed = Link {
            url: url.trim_matches(['<', '>', ' ', '\'', '"']).to_owned(),
            params: Vec::new(),
        };
        for param in params.split(';') {
            match param.split_once('=') {
                // As in requests, the rest of a link is given up at what is no parameter.
                Some((name, value)) if !value.contains('=') => {
                    parsed.params.push((strip(name), strip(value)));
                }
                _ => break,
            }
        }
        links.push(parsed);
    }
    links
}

/// At every comma that is followed by blanks and `<`.
fn split_links(value: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut begin = 0;
    for (at, _) in value.match_indices(',') {
        let tail = value.get(at + 1..).unwrap_or_default();
        let target = tail.trim_start_matches(' ');
        if target.starts_with('<') {
            links.extend(value.get(begin..at));
            begin = value.len() - target.len();
        }
    }
    links.extend(value.get(begin..).filter(|rest| !rest.is_empty()));
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn links_of_the_wild() {
        let links = |value| {
            let link = |link: Link| (link.url.clone(), link.params);
            parse_links(value).into_iter().map(link).collect::<Vec<_>>()
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            links("<http:/x>; rel=front; type=\"image/jpeg\", <y,z>;rel='back'"),
            [
                ("http:/x".to_owned(), vec![pair("rel", "front"), pair("type", "image/jpeg")]),
                ("y,z".to_owned(), vec![pair("rel", "back")]),
            ]
        );
        assert_eq!(links("<a>"), [("a".to_owned(), vec![])]);
        assert_eq!(links("<a>; broken; rel=x"), [("a".to_owned(), vec![])]);
        assert_eq!(links(""), []);
    }

    #[test]
    fn relations_are_a_list() {
        let link = parse_links("<?page=2>; REL=\"prefetch Next\"").remove(0);
        assert!(link.has_rel("next") && link.has_rel("prefetch") && !link.has_rel("prev"));
    }

    proptest! {
        #[test]
        fn any_text_parses(value in "[<>;,=\"' a-z]{0,40}|.{0,40}") {
            let _ = parse_links(&value);
        }
    }
}
