use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use inventory::labels::Property;

/// With 64 GPUs this is a list of less than a megabyte; the kubelet takes four.
const MOST_REPLICAS: i64 = 64;

/// Offers the AMD GPUs of a Kubernetes node to its kubelet.
#[derive(Debug, Parser)]
#[command(name = "rocworker-device-plugin", version)]
pub(crate) struct Args {
    /// Read the machine laid out in this directory instead of this one. In a pod: where the host's folders are mounted.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
    /// The kubelet's folder beneath the root.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/kubelet")]
    pub(crate) kubelet_dir: PathBuf,
    /// How containers get a GPU.
    #[arg(long, value_name = "HOW", default_value = "devices")]
    pub(crate) allocate: Allocate,
    /// How resources are named.
    #[arg(long, value_name = "NAMES", alias = "resource_naming_strategy", default_value = "single")]
    pub(crate) resource_names: ResourceNames,
    /// Offer each GPU so many times, 64 at most: pods that share a GPU are not protected from each other.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=MOST_REPLICAS))]
    pub(crate) replicas: u32,
    /// Label this node by its GPUs, through the API server.
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    pub(crate) label_node: Option<String>,
    /// The name of the pod in which this program runs: a kubelet that does not name it has not heard of its pods yet.
    #[arg(long, value_name = "NAME")]
    pub(crate) pod_name: Option<String>,
    /// Properties that become labels, with commas between: vram, cu-count, simd-count, device-id, family, product-name,
    /// driver-version (these by default), driver-src-version, compute-memory-partition, compute-partitioning-supported,
    /// memory-partitioning-supported, firmware.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = property)]
    pub(crate) labels: Option<Vec<Property>>,
    /// The folder of the pod's service account.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/run/secrets/kubernetes.io/serviceaccount",
        hide = true
    )]
    pub(crate) service_account: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Allocate {
    /// Device nodes. Every kubelet and container runtime takes them.
    Devices,
    /// Names of /etc/cdi/amd.json. Kubernetes 1.29 and a container runtime with CDI take them.
    Cdi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResourceNames {
    /// Each GPU and each partition is amd.com/gpu. Cards that can be divided must be divided alike.
    Single,
    /// A partition's resource is named by its card's modes: amd.com/cpx_nps4.
    Mixed,
}

impl Args {
    pub(crate) fn wanted_labels(&self) -> BTreeSet<Property> {
        match &self.labels {
            Some(labels) => labels.iter().copied().collect(),
            None => Property::USUAL.into(),
        }
    }
}

fn property(text: &str) -> Result<Property, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// A name is part of the API server's address (RFC 1123, as Kubernetes has it).
fn node_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let has_ends = text.starts_with(|c| is_plain(c) && c != '.') && !text.ends_with(['-', '.']);
    match has_ends && text.len() <= 253 && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("a node's name has lower case letters, digits, `-` and `.`".to_owned()),
    }
}
