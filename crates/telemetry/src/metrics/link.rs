//! PCIe and XGMI.

use inventory::series;

use crate::metric::{Kind, Metric, Scope};

pub static PCIE_TX: Metric = Metric {
    name: "rocm_pcie_tx",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "PCIe traffic that the GPU sent, at most: packets times the maximum payload.",
    source: "pcie_bw",
    dcgm: "DCGM_FI_DEV_PCIE_TX_THROUGHPUT",
    ..Metric::OF_NO_READING
};

pub static PCIE_RX: Metric = Metric {
    name: "rocm_pcie_rx",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "PCIe traffic that the GPU received, at most: packets times the maximum payload.",
    source: "pcie_bw",
    dcgm: "DCGM_FI_DEV_PCIE_RX_THROUGHPUT",
    ..Metric::OF_NO_READING
};

pub static PCIE_BANDWIDTH: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "PCIe traffic in both directions, as the firmware measures it.",
    source: "gpu_metrics",
    dcgm: "",
    dme: "pcie_bandwidth, pcie_bidirectional_bandwidth",
    ..Metric::of(&series::PCIE_BANDWIDTH)
};

pub static PCIE_SPEED: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "transfers per second",
    help: "PCIe link speed by lane: current or max.",
    source: "current_link_speed, max_link_speed, gpu_metrics",
    dcgm: "DCGM_FI_DEV_PCIE_LINK_GEN, DCGM_FI_DEV_PCIE_MAX_LINK_GEN",
    dme: "pcie_speed, pcie_max_speed",
    ..Metric::of(&series::PCIE_SPEED)
};

pub static PCIE_WIDTH: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "lanes",
    help: "PCIe link width: current or max.",
    source: "current_link_width, max_link_width, gpu_metrics",
    dcgm: "DCGM_FI_DEV_PCIE_LINK_WIDTH, DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
    dme: "",
    ..Metric::of(&series::PCIE_WIDTH)
};

pub static PCIE_REPLAYS: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "PCIe packets that were sent again.",
    source: "pcie_replay_count, gpu_metrics",
    dcgm: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    dme: "pcie_replay_count",
    ..Metric::of(&series::PCIE_REPLAYS)
};

pub static PCIE_ERRORS: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "PCIe link errors by kind: replay_rollover, nak_sent, nak_received, recovery.",
    source: "gpu_metrics",
    dcgm: "",
    dme: "pcie_recovery_count, pcie_replay_rollover_count, pcie_nack_sent_count, pcie_nack_received_count",
    ..Metric::of(&series::PCIE_ERRORS)
};

pub static XGMI_LINKS: Metric = Metric {
    name: "rocm_xgmi_links",
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "links",
    help: "XGMI links that KFD names between this GPU and others.",
    source: "/sys/class/kfd/kfd/topology/nodes/*/io_links",
    dcgm: "DCGM_FI_DEV_P2P_NVLINK_STATUS",
    ..Metric::OF_NO_READING
};

pub static XGMI_TRAFFIC: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "bytes",
    help: "XGMI traffic by link and direction: read, write.",
    source: "gpu_metrics",
    dcgm: "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    dme: "gpu_xgmi_link_rx, gpu_xgmi_link_tx, gpu_xgmi_nbr_*_tx_thrput",
    ..Metric::of(&series::XGMI_TRAFFIC)
};

pub static XGMI_SPEED: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "Speed of an XGMI lane.",
    source: "gpu_metrics",
    dcgm: "",
    dme: "",
    ..Metric::of(&series::XGMI_SPEED)
};

pub static XGMI_WIDTH: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "lanes",
    help: "Width of an XGMI link.",
    source: "gpu_metrics",
    dcgm: "",
    dme: "",
    ..Metric::of(&series::XGMI_WIDTH)
};

pub static XGMI_UP: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "",
    help: "1 where an XGMI link is up, 0 where it is down.",
    source: "gpu_metrics",
    dcgm: "",
    dme: "",
    ..Metric::of(&series::XGMI_UP)
};
