//! What `trust_env` reads besides the proxies: CA bundles and `.netrc`, as requests does.

use crate::message::{Netrc, Verify};
use std::env;
use std::path::{Path, PathBuf};

/// The CA bundle that the environment names; the first of these that is set and not empty.
///
/// The first two are requests'; the third is OpenSSL's, which a system's own roots come by.
pub(super) fn ca_bundle() -> Option<Verify> {
    ca_bundle_from(|name| env::var_os(name).map(PathBuf::from))
}

fn ca_bundle_from(var: impl Fn(&str) -> Option<PathBuf>) -> Option<Verify> {
    ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"]
        .iter()
        .find_map(|name| var(name).filter(|path| !path.as_os_str().is_empty()))
        .map(Verify::Bundle)
}

/// The file that `NETRC` names, or `~/.netrc`, or `~/_netrc`; a file that cannot be parsed is one
/// warning, not silence.
pub(super) fn netrc() -> Option<Netrc> {
    let named = env::var_os("NETRC").filter(|path| !path.is_empty()).map(PathBuf::from);
    let path = match named {
        Some(path) => path,
        None => {
            let home = env::home_dir()?;
            [".netrc", "_netrc"].iter().map(|name| home.join(name)).find(|path| path.exists())?
        }
    };
    read_netrc(&path)
}

fn read_netrc(path: &Path) -> Option<Netrc> {
    let text = std::fs::read_to_string(path).ok()?;
    match Netrc::parse(&text) {
        Ok(netrc) => Some(netrc),
        Err(error) => {
            log::warn!("{} is not used: {}", path.display(), error.message());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::TlsSettings;
    use crate::session::{Session, SessionBuilder};

    #[test]
    fn a_request_that_asks_for_the_default_gets_the_bundle_of_the_environment() {
        let mut recipe = Session::builder();
        let on = |recipe: &SessionBuilder| recipe.under_environment(TlsSettings::default()).verify;
        assert_eq!(on(&recipe), Verify::On);
        recipe.bundle = Some(Verify::Bundle("ca.pem".into()));
        assert_eq!(on(&recipe), Verify::Bundle("ca.pem".into()));
        let off = TlsSettings { verify: Verify::Off, ..TlsSettings::default() };
        assert_eq!(recipe.under_environment(off).verify, Verify::Off);
    }

    #[test]
    fn bundles_by_precedence_and_empty_means_unset() {
        let table = [
            (vec![], None),
            (vec![("SSL_CERT_FILE", "/s")], Some("/s")),
            (vec![("SSL_CERT_FILE", "/s"), ("CURL_CA_BUNDLE", "/c")], Some("/c")),
            (vec![("CURL_CA_BUNDLE", "/c"), ("REQUESTS_CA_BUNDLE", "/r")], Some("/r")),
            (vec![("CURL_CA_BUNDLE", "/c"), ("REQUESTS_CA_BUNDLE", "")], Some("/c")),
        ];
        for (vars, wanted) in table {
            let found = ca_bundle_from(|name| {
                vars.iter().find(|(have, _)| *have == name).map(|(_, path)| PathBuf::from(path))
            });
            assert_eq!(found, wanted.map(|path| Verify::Bundle(PathBuf::from(path))), "{vars:?}");
        }
    }
}
