//! Credentials of a `.netrc`.

use longhaul::message::{Auth, Netrc, prepare_url};

use crate::verdict::{Vector, Verdict, text};

pub(crate) fn netrc(vector: &Vector) -> Option<Verdict> {
    let (given, out) = (&vector.given, &vector.out);
    let parsed = Netrc::parse(text(&given["netrc"]));
    let url = prepare_url(text(&given["url"]), &[]);
    let auth = match (&parsed, &url) {
        (Ok(netrc), Ok(url)) => netrc.auth(url),
        _ => None,
    };
    let wanted = out["auth"]
        .as_array()
        .map(|pair| Auth::Basic(text(&pair[0]).to_owned(), text(&pair[1]).to_owned()));
    let same = parsed.is_err() == out["parse_error"].is_string() && auth == wanted;
    let shown = match &auth {
        Some(Auth::Basic(user, password)) => format!("{user:?} {password:?}"),
        other => format!("{other:?}"),
    };
    Verdict::new(same, None, || format!("{given} -> {parsed:?} {shown}, requests {out}"))
}
