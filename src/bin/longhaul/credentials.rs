//! The credentials of a run, settled before it begins.
//!
//! What stands on a command line can be read by every user of the machine, so each secret may come
//! from a file or a variable instead. No message repeats any of them, the name of a user included:
//! it is where a token ends up that was pasted into the wrong flag.

use crate::args::CredentialArgs;
use crate::usage::UsageError;
use crate::values::{HeaderArg, Secret};
use crate::world::World;
use http::Method;
use longhaul::Request;
use longhaul::message::{Auth, Netrc, Settings, prepare};
use longhaul::session::SessionBuilder;
use std::path::Path;

/// Where the password is that a command line leaves out.
const PASSWORD: &str = "LONGHAUL_PASSWORD";

/// What the sessions of a run are given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    auth: Option<Auth>,
    netrc: Option<Netrc>,
}

impl Credentials {
    /// Reads, checks, and refuses.
    ///
    /// # Errors
    /// Two of a kind, a file that cannot be used, a password that stands nowhere, a token that
    /// cannot be sent.
    pub(crate) fn resolve(
        args: &CredentialArgs,
        headers: &[HeaderArg],
        world: &dyn World,
    ) -> Result<Self, UsageError> {
        let CredentialArgs { user, user_file, digest, bearer, bearer_file, netrc_file, no_netrc } =
            args;
        let given: Vec<&str> = [
            ("--user", user.is_some()),
            ("--user-file", user_file.is_some()),
            ("--bearer", bearer.is_some()),
            ("--bearer-file", bearer_file.is_some()),
        ]
        .iter()
        .filter_map(|(flag, given)| given.then_some(*flag))
        .collect();
        if let [first, second, ..] = given[..] {
            let text = format!("contradicts {first}; leave one of them out");
            return Err(UsageError::new(second, text));
        }
        let own = headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case("authorization") && header.value.is_some()
        });
        if let (Some(flag), true) = (given.first(), own) {
            let text = format!("the field Authorization contradicts {flag}; leave one of them out");
            return Err(UsageError::new("-H", text));
        }

        let pair = match (user, user_file) {
            (Some(user), _) => Some(typed(user, world)?),
            (None, Some(path)) => Some(of_file(path, world)?),
            (None, None) => None,
        };
        let token = match (bearer, bearer_file) {
            (Some(Secret(token)), _) => Some(("--bearer", token.clone())),
            (None, Some(path)) => {
                Some(("--bearer-file", one_line("--bearer-file", path, "the token", world)?))
            }
            (None, None) => None,
        };
        let auth = match (pair, token) {
            (Some((user, password)), _) if *digest => Some(Auth::Digest(user, password)),
            (_, _) if *digest => {
                return Err(UsageError::new(
                    "--digest",
                    "there is no user to answer with; add --user USER or --user-file FILE",
                ));
            }
            (Some((user, password)), _) => Some(Auth::Basic(user, password)),
            (None, Some((flag, token))) => Some(sendable(flag, Auth::Bearer(token))?),
            (None, None) => None,
        };

        let netrc = match (netrc_file, no_netrc) {
            (Some(_), true) => {
                return Err(UsageError::new(
                    "--no-netrc",
                    "contradicts --netrc-file; leave one of them out",
                ));
            }
            (Some(path), false) => {
                let text = read("--netrc-file", path, "a file in the form of .netrc", world)?;
                let place = format!("--netrc-file {}", path.display());
                Some(Netrc::parse(&text).map_err(|error| UsageError::at(&place, &error))?)
            }
            (None, true) => Some(Netrc::default()),
            (None, false) => None,
        };
        Ok(Self { auth, netrc })
    }

    /// Gives them to the sessions of this recipe.
    pub(crate) fn apply(&self, mut recipe: SessionBuilder) -> SessionBuilder {
        if let Some(auth) = &self.auth {
            recipe = recipe.auth(auth.clone());
        }
        if let Some(netrc) = &self.netrc {
            recipe = recipe.netrc(netrc.clone());
        }
        recipe
    }

    /// What every target is told, by its kind alone.
    pub(crate) fn describe(&self) -> Option<&'static str> {
        match self.auth.as_ref()? {
            Auth::Basic(..) => Some("Basic credentials, to every target"),
            Auth::Bearer(_) => Some("a bearer token, to every target"),
            Auth::Digest(..) => Some("Digest credentials, to every target that asks for them"),
            _ => None,
        }
    }
}

/// Of `--user`, with the password from where it may be left.
fn typed(Secret(text): &Secret, world: &dyn World) -> Result<(String, String), UsageError> {
    if let Some((user, password)) = text.split_once(':') {
        return Ok((user.to_owned(), password.to_owned()));
    }
    match world.var(PASSWORD) {
        Some(password) => Ok((text.clone(), password)),
        None => Err(UsageError::new(
            "--user",
            format!(
                "there is no password; set {PASSWORD}, or use --user-file, or give it as \
                 USER:PASSWORD"
            ),
        )),
    }
}

fn of_file(path: &Path, world: &dyn World) -> Result<(String, String), UsageError> {
    let line = one_line("--user-file", path, "USER:PASSWORD", world)?;
    match line.split_once(':') {
        Some((user, password)) => Ok((user.to_owned(), password.to_owned())),
        None => {
            let text = format!("{} has no colon; write USER:PASSWORD into it", path.display());
            Err(UsageError::new("--user-file", text))
        }
    }
}

/// The one line of a file, without its end.
fn one_line(
    flag: &str,
    path: &Path,
    wanted: &str,
    world: &dyn World,
) -> Result<String, UsageError> {
    let text = read(flag, path, &format!("a file that holds {wanted}"), world)?;
    let line = text.trim_end_matches(['\r', '\n']);
    let wrong = match line {
        "" => "is empty",
        line if line.contains(['\r', '\n']) => "has more than one line",
        line => return Ok(line.to_owned()),
    };
    let text = format!("{} {wrong}; write {wanted} into it, and nothing else", path.display());
    Err(UsageError::new(flag, text))
}

fn read(flag: &str, path: &Path, wanted: &str, world: &dyn World) -> Result<String, UsageError> {
    world.read(path).map_err(|error| {
        let text = format!("{} cannot be read: {error}; name {wanted}", path.display());
        UsageError::new(flag, text)
    })
}

/// Refuses now what would fail for each URL.
fn sendable(flag: &str, auth: Auth) -> Result<Auth, UsageError> {
    let request = Request::new(Method::GET, "http://target.invalid/").auth(auth.clone());
    match prepare(&Settings::default(), &request) {
        Ok(_) => Ok(auth),
        Err(error) => Err(UsageError::at(flag, &error)),
    }
}
