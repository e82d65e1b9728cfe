//! The flags about single connections: certificates, TLS versions, the own address.

use crate::values;
use clap::Args;
use longhaul::message::TlsVersion;
use std::net::IpAddr;
use std::path::PathBuf;

/// Whom to believe, who one is, and from where to dial.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConnectionArgs {
    /// Check certificates against this PEM file, or the PEM files of this folder, instead of the
    /// built-in roots. Default: Mozilla's roots, or the bundle that the environment names.
    #[arg(long, value_name = "PATH", help_heading = "Connections")]
    pub(crate) cacert: Option<PathBuf>,

    /// Check certificates against the roots of this system instead: its administrator's decide.
    /// Default: off.
    #[arg(long, help_heading = "Connections")]
    pub(crate) native_roots: bool,

    /// Do not check certificates at all. Default: check.
    #[arg(long, help_heading = "Connections")]
    pub(crate) insecure: bool,

    /// A client certificate in PEM form for targets that ask for one; its file may hold the key too.
    /// Default: none.
    #[arg(long, value_name = "FILE", help_heading = "Connections")]
    pub(crate) cert: Option<PathBuf>,

    /// The private key of --cert, not encrypted. Default: in the file of --cert.
    #[arg(long, value_name = "FILE", help_heading = "Connections")]
    pub(crate) key: Option<PathBuf>,

    /// The lowest TLS version that is spoken, 1.2 or 1.3. Default: 1.2.
    #[arg(long, value_name = "VERSION", help_heading = "Connections")]
    pub(crate) tls_min: Option<TlsVersion>,

    /// The highest TLS version that is spoken, 1.2 or 1.3. Default: 1.3.
    #[arg(long, value_name = "VERSION", help_heading = "Connections")]
    pub(crate) tls_max: Option<TlsVersion>,

    /// The own address to dial from, where this machine has several. Default: as the system
    /// chooses.
    #[arg(long, value_name = "ADDRESS", value_parser = values::address, help_heading = "Connections")]
    pub(crate) source_address: Option<IpAddr>,
}
