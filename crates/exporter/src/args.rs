use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use clap::Parser;

/// Answers Prometheus at /metrics and browsers at /: how the AMD GPUs of this machine are.
#[derive(Debug, Parser)]
#[command(name = "rocworker-exporter", version)]
pub(crate) struct Args {
    /// Read the machine laid out in this directory instead of this one.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
    /// Answer on this address; may be given several times. `:9401` is every address.
    #[arg(long, alias = "web.listen-address", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9401")]
    #[arg(value_parser = address)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Take TLS and basic auth from this file, in the format of Prometheus' exporter-toolkit.
    #[arg(long, alias = "web.config.file", value_name = "FILE")]
    pub(crate) web_config: Option<PathBuf>,
    /// Measure PCIe traffic (`pcie_bw`) in the background. The driver takes a second for each GPU.
    #[arg(long)]
    pub(crate) pcie_bw: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let every = text.strip_prefix(':').and_then(|port| port.parse().ok());
    let every = every.map(|port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    every.or_else(|| text.parse().ok()).ok_or_else(|| {
        "write an IP address and a port: 127.0.0.1:9401, [::1]:9401, or :9401 for every address".to_owned()
    })
}
