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

/// The file that `NETRC` names, or `~/.netrc`, or `~/_netrc`; one that cannot be used is one
/// warning, not silence.
pub(super) fn netrc() -> Option<Netrc> {
    let named = env::var_os("NETRC").filter(|path| !path.is_empty()).map(PathBuf::from);
    let path = match named {
        Some(path) => from_home(path),
        None => {
            let home = env::home_dir()?;
            [".netrc", "_netrc"].iter().map(|name| home.join(name)).find(|path| path.exists())?
        }
    };
    match read_netrc(&path) {
        Ok(netrc) => Some(netrc),
        Err(why) => {
            log::warn!(target: "longhaul::environment", "{} is not used: {why}", path.display());
            None
        }
    }
}

/// requests' `expanduser`, for the own home.
fn from_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

fn read_netrc(path: &Path) -> Result<Netrc, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let text = str::from_utf8(&bytes).map_err(|error| {
        let line = 1 + bytes.iter().take(error.valid_up_to()).filter(|b| **b == b'\n').count();
        format!("line {line} is not UTF-8; convert the file")
    })?;
    Netrc::parse(text).map_err(|error| error.message().to_owned())
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
