//! How single connections are made: their flags, resolved.

use crate::args::ConnectionArgs;
use crate::usage::UsageError;
use crate::world::{Kind, World};
use longhaul::Session;
use longhaul::message::{Cert, TlsSettings, Verify};
use longhaul::session::SessionBuilder;
use std::io;
use std::net::IpAddr;
use std::path::Path;

/// Certificates, versions and the own address.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// Whom to believe, and who one is.
    pub(crate) tls: TlsSettings,
    /// Where to dial from.
    pub(crate) source_address: Option<IpAddr>,
}

impl Connection {
    /// Fills in, checks, and refuses.
    ///
    /// # Errors
    /// The first mistake, with place and remedy.
    pub(crate) fn resolve(args: &ConnectionArgs, world: &dyn World) -> Result<Self, UsageError> {
        // No `..`: a new flag has to be decided on here before anything compiles.
        let ConnectionArgs {
            cacert,
            native_roots,
            insecure,
            cert,
            key,
            tls_min,
            tls_max,
            source_address,
        } = args;
        let mut tls = TlsSettings::default();
        tls.verify = verify(cacert.as_deref(), *native_roots, *insecure, world)?;
        tls.cert = client_cert(cert.as_deref(), key.as_deref(), world)?;
        (tls.min_version, tls.max_version) = (*tls_min, *tls_max);
        if let (Some(min), Some(max)) = (tls_min, tls_max)
            && min > max
        {
            let text = format!("{min} is above the {max} of --tls-max; leave one of them out");
            return Err(UsageError::new("--tls-min", text));
        }
        Ok(Self { tls, source_address: *source_address })
    }

    /// Tries what only the library can judge, before anything depends on it: whether key and
    /// certificate fit, and whether this machine has the address.
    ///
    /// # Errors
    /// A certificate, key or address that is of no use.
    pub(crate) fn try_out(&self) -> Result<(), UsageError> {
        let plain = || Session::builder().trust_env(false);
        for (place, asked, recipe) in [
            ("--cert", self.tls.cert.is_some(), plain().tls(self.tls.clone())),
            (
                "--source-address",
                self.source_address.is_some(),
                Self { tls: TlsSettings::default(), ..self.clone() }.apply(plain()),
            ),
        ] {
            if asked {
                recipe.build().map_err(|error| UsageError::at(place, &error))?;
            }
        }
        Ok(())
    }

    /// The recipe with these settings.
    pub(crate) fn apply(&self, recipe: SessionBuilder) -> SessionBuilder {
        let recipe = recipe.tls(self.tls.clone());
        match self.source_address {
            Some(address) => recipe.source_address(address),
            None => recipe,
        }
    }
}

fn verify(
    bundle: Option<&Path>,
    native_roots: bool,
    insecure: bool,
    world: &dyn World,
) -> Result<Verify, UsageError> {
    let pointless = |flag: &str, other: &str| {
        Err(UsageError::new(flag, format!("makes {other} pointless; leave one of them out")))
    };
    match (bundle, native_roots, insecure) {
        (Some(_), _, true) => pointless("--insecure", "--cacert"),
        (_, true, true) => pointless("--insecure", "--native-roots"),
        (Some(_), true, _) => pointless("--native-roots", "--cacert"),
        (None, false, true) => Ok(Verify::Off),
        (None, true, false) => Ok(Verify::Native),
        (None, false, false) => Ok(Verify::On),
        (Some(path), false, false) => {
            // What is in a folder is for the library to find out.
            if !matches!(world.kind(path), Ok(Kind::Folder)) {
                let wanted = "a PEM file or a folder of certificates";
                let text = read("--cacert", path, wanted, world)?;
                if !text.contains("-----BEGIN CERTIFICATE-----") {
                    return Err(UsageError::new(
                        "--cacert",
                        format!("{} holds no PEM certificate; name one that does", path.display()),
                    ));
                }
            }
            Ok(Verify::Bundle(path.to_path_buf()))
        }
    }
}

fn client_cert(
    cert: Option<&Path>,
    key: Option<&Path>,
    world: &dyn World,
) -> Result<Option<Cert>, UsageError> {
    let Some(file) = cert else {
        return match key {
            Some(_) => Err(UsageError::new(
                "--key",
                "there is no certificate that it belongs to; name it with --cert",
            )),
            None => Ok(None),
        };
    };
    for (place, path) in [("--cert", cert), ("--key", key)] {
        if let Some(path) = path
            && let Err(error) = world.kind(path)
        {
            return Err(unreadable(place, path, &error, "a PEM file"));
        }
    }
    Ok(Some(match key {
        Some(key) => Cert::with_key(file, key),
        None => Cert::new(file),
    }))
}

fn read(place: &str, path: &Path, wanted: &str, world: &dyn World) -> Result<String, UsageError> {
    world.read(path).map_err(|error| unreadable(place, path, &error, wanted))
}

fn unreadable(place: &str, path: &Path, error: &io::Error, wanted: &str) -> UsageError {
    let text = format!("{} cannot be read: {error}; name {wanted}", path.display());
    UsageError::new(place, text)
}
