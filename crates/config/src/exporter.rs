//! The exporter of metrics, `rocworker-exporter`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::units::unit;
use super::{Error, Managed, Source, path};

/// The port that the source of this product has for AMD's GPUs.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9401);

/// The first port that a user without rights may open (net.ipv4.ip_unprivileged_port_start).
const FIRST_PORT: u16 = 1024;

/// Folders that the unit hides from the exporter (`ProtectHome=`, `PrivateTmp=`), or that the kernel makes anew.
const HIDDEN: [&str; 9] =
    ["/home", "/root", "/run/user", "/var/home", "/var/roothome", "/tmp", "/var/tmp", "/dev", "/proc"];

/// The program that gives Prometheus the readings of GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exporter {
    /// The unit that runs the exporter.
    pub unit: Managed,
    pub listen: SocketAddr,
    /// Prometheus' web configuration: TLS and basic authentication.
    pub web_config: Option<PathBuf>,
    /// Whether the exporter reads the kernel's file `pcie_bw`, which takes a second for each GPU.
    pub pcie_bw: bool,
    pub existing: ExistingUnit,
}

/// What becomes of a unit rocm-exporter.service that rocworker did not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExistingUnit {
    #[default]
    Leave,
    /// rocworker's unit takes its place, and undo restores it.
    Replace,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExporterDocument {
    pub unit: Option<bool>,
    pub listen: Option<String>,
    pub web_config: Option<PathBuf>,
    pub pcie_bw: Option<bool>,
    pub existing: Option<ExistingUnit>,
}

impl ExporterDocument {
    pub(super) fn check(self, gpus: Managed, source: &Source) -> Result<Exporter, Error> {
        let listen = match &self.listen {
            Some(text) => source.check("exporter.listen", text, address(text))?,
            None => LISTEN,
        };
        if let Some(path) = &self.web_config {
            source.check("exporter.web-config", &path.to_string_lossy(), readable_in_unit(path))?;
        }
        Ok(Exporter {
            unit: unit(self.unit, "exporter.unit: false", gpus),
            listen,
            web_config: self.web_config,
            pcie_bw: self.pcie_bw.unwrap_or_default(),
            existing: self.existing.unwrap_or_default(),
        })
    }
}

/// Parses an address on which the exporter may listen.
///
/// # Errors
/// Says what a person writes in place of a text that is no such address.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse().ok().filter(|address| match address {
        // A scope is a specifier of systemd's in a unit.
        SocketAddr::V6(address) => address.scope_id() == 0,
        SocketAddr::V4(_) => true,
    });
    let Some(address) = address else {
        return Err(format!(
            "{text:?} is no IP address with a port: write 127.0.0.1:9401, 0.0.0.0:9401 for every address, or \
             \"[::]:9401\" in quotes"
        ));
    };
    match address.port() {
        0 => {
            Err(format!("{text:?} has port 0, which no scrape can find: name one from {FIRST_PORT} to 65535"))
        }
        port if port < FIRST_PORT => Err(format!(
            "{text:?} has a port below {FIRST_PORT}, which only root may open: the exporter runs without rights; name one \
             from {FIRST_PORT} to 65535"
        )),
        _ => Ok(address),
    }
}

fn readable_in_unit(path: &Path) -> Result<(), String> {
    path::absolute(path)?;
    // What a unit's line takes unquoted: no blank, no quote, no specifier.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte);
    let shown = path.display().to_string();
    if !shown.bytes().all(is_plain) {
        return Err(format!("{shown:?} is no path that a unit takes: use letters, digits and /._+-"));
    }
    match HIDDEN.iter().find(|folder| path.starts_with(folder)) {
        Some(folder) => Err(format!(
            "{shown:?} is in {folder}, which rocm-exporter.service does not see: put it into /etc/rocworker"
        )),
        None => Ok(()),
    }
}
