//! PCIe and XGMI.

use crate::metric::{Kind, Metric, Scope};

pub static PCIE_TX: Metric = Metric {
    name: "rocm_pcie_tx",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "PCIe traffic that the GPU sent, at most: packets times the maximum payload.",
    labels: &[],
    source: "pcie_bw",
    dcgm: "DCGM_FI_DEV_PCIE_TX_THROUGHPUT",
    dme: "",
};

pub static PCIE_RX: Metric = Metric {
    name: "rocm_pcie_rx",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "PCIe traffic that the GPU received, at most: packets times the maximum payload.",
    labels: &[],
    source: "pcie_bw",
    dcgm: "DCGM_FI_DEV_PCIE_RX_THROUGHPUT",
    dme: "",
};

pub static PCIE_BANDWIDTH: Metric = Metric {
    name: "rocm_pcie_bandwidth_bytes_per_second",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "PCIe traffic in both directions, as the firmware measures it.",
    labels: &[],
    source: "gpu_metrics",
    dcgm: "",
    dme: "pcie_bandwidth, pcie_bidirectional_bandwidth",
};

pub static PCIE_SPEED: Metric = Metric {
    name: "rocm_pcie_link_speed_transfers_per_second",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "transfers per second",
    help: "PCIe link speed by lane: current or max.",
    labels: &["link"],
    source: "current_link_speed, max_link_speed, gpu_metrics",
    dcgm: "DCGM_FI_DEV_PCIE_LINK_GEN, DCGM_FI_DEV_PCIE_MAX_LINK_GEN",
    dme: "pcie_speed, pcie_max_speed",
};

pub static PCIE_WIDTH: Metric = Metric {
    name: "rocm_pcie_link_width_lanes",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "lanes",
    help: "PCIe link width: current or max.",
    labels: &["link"],
    source: "current_link_width, max_link_width, gpu_metrics",
    dcgm: "DCGM_FI_DEV_PCIE_LINK_WIDTH, DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
    dme: "",
};

pub static PCIE_REPLAYS: Metric = Metric {
    name: "rocm_pcie_replays_total",
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "PCIe packets that were sent again.",
    labels: &[],
    source: "pcie_replay_count, gpu_metrics",
    dcgm: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    dme: "pcie_replay_count",
};

pub static PCIE_ERRORS: Metric = Metric {
    name: "rocm_pcie_errors_total",
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "PCIe link errors by kind: replay_rollover, nak_sent, nak_received, recovery.",
    labels: &["kind"],
    source: "gpu_metrics",
    dcgm: "",
    dme: "pcie_recovery_count, pcie_replay_rollover_count, pcie_nack_sent_count, pcie_nack_received_count",
};

pub static XGMI_LINKS: Metric = Metric {
    name: "rocm_xgmi_links",
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "links",
    help: "XGMI links that KFD names between this GPU and others.",
    labels: &[],
    source: "/sys/class/kfd/kfd/topology/nodes/*/io_links",
    dcgm: "DCGM_FI_DEV_P2P_NVLINK_STATUS",
    dme: "",
};

pub static XGMI_TRAFFIC: Metric = Metric {
    name: "rocm_xgmi_traffic_bytes_total",
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "bytes",
    help: "XGMI traffic by link and direction: read, write.",
    labels: &["link", "direction"],
    source: "gpu_metrics",
    dcgm: "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    dme: "gpu_xgmi_link_rx, gpu_xgmi_link_tx, gpu_xgmi_nbr_*_tx_thrput",
};

pub static XGMI_SPEED: Metric = Metric {
    name: "rocm_xgmi_lane_speed_bytes_per_second",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "Speed of an XGMI lane.",
    labels: &[],
    source: "gpu_metrics",
    dcgm: "",
    dme: "",
};

pub static XGMI_WIDTH: Metric = Metric {
    name: "rocm_xgmi_link_width_lanes",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "lanes",
    help: "Width of an XGMI link.",
    labels: &[],
    source: "gpu_metrics",
    dcgm: "",
    dme: "",
};

pub static XGMI_UP: Metric = Metric {
    name: "rocm_xgmi_link_up",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "",
    help: "1 where an XGMI link is up, 0 where it is down.",
    labels: &["link"],
    source: "gpu_metrics",
    dcgm: "",
    dme: "",
};
