//! Lists of proxies, as providers hand them out and people edit them.

use crate::error::Error;
use crate::proxy::ProxyUrl;

/// One proxy a line; the first line that is none is an error.
pub(super) fn parse(text: &str) -> Result<Vec<ProxyUrl>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let proxies = text
        .lines()
        .zip(1u64..)
        .map(|(line, number)| (without_comment(line), number))
        .filter(|(line, _)| !line.is_empty())
        .map(|(line, number)| ProxyUrl::parse_at(line, format_args!("line {number}")))
        .collect::<Result<Vec<_>, _>>()?;
    if proxies.is_empty() {
        return Err(Error::config("the list of proxies is empty; write one host:port a line"));
    }
    Ok(proxies)
}

/// The line up to a `#` that begins it or follows whitespace; one inside a password follows none.
fn without_comment(line: &str) -> &str {
    let begins_comment = |(at, _): &(usize, &str)| {
        line.get(..*at)
            .is_some_and(|before| before.is_empty() || before.ends_with(char::is_whitespace))
    };
    let end = line.match_indices('#').find(begins_comment).map_or(line.len(), |(at, _)| at);
    line.get(..end).unwrap_or(line).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn shown(text: &str) -> Vec<String> {
        parse(text).unwrap().iter().map(ProxyUrl::redacted).collect()
    }

    #[test]
    fn comments_blank_lines_bom_and_line_ends() {
        let text = "\u{feff}# proxies\r\n\r\n10.0.0.1:80\r\n  socks5h://u:p@h # Berlin\r\n\t# x\n\
                    10.0.0.2:80:u:p#ss\n10.0.0.3:80\t#y";
        assert_eq!(
            shown(text),
            [
                "http://10.0.0.1:80",
                "socks5h://***@h:1080",
                "http://***@10.0.0.2:80",
                "http://10.0.0.3:80"
            ]
        );
        let proxies = parse(text).unwrap();
        assert_eq!(proxies[2].credentials(), Some((&b"u"[..], &b"p#ss"[..])));
    }

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        let error = parse("10.0.0.1:80\n\n10.0.0.2:80:user\n").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidProxyUrl);
        assert_eq!(
            error.to_string(),
            "line 3: the proxy `10.0.0.2:***` cannot be used: the password is missing; write \
             host:port:user: for an empty one"
        );
    }

    #[test]
    fn a_list_without_proxies_is_a_mistake() {
        for text in ["", "\n\n", "# nothing\n", "\u{feff}"] {
            assert_eq!(parse(text).unwrap_err().kind(), ErrorKind::Config, "{text:?}");
        }
    }
}
