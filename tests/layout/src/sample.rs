//! Machines that nobody captured: made up, for `demo` and for the benchmark.

#![expect(clippy::expect_used, reason = "what the repository itself holds is valid")]

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::readings::{Card, Trouble};
use crate::{Device, Entry, Gpu, Kfd, KfdNode, Machine, Module};

const DEMO: &str = include_str!("../../../templates/demo/machine.json");
const LOAD: &str = include_str!("../../../templates/demo/load.json");

const GIB: u64 = 1 << 30;
/// MI300X: 192 GB of HBM3, 8 XCCs of 38 active compute units with 4 SIMDs each.
const MI300X: u16 = 0x74a1;
const MI300X_MEMORY: u64 = 192 * GIB;
const MI300X_SIMDS: u64 = 8 * 38 * 4;
/// XGMI, of the link types in KFD's topology (HSA_IOLINKTYPE).
const XGMI: u64 = 11;

/// The content of [`DEMO`], and of [`LOAD`].
#[derive(Deserialize)]
struct Demo {
    files: BTreeMap<String, String>,
    links: BTreeMap<String, String>,
    #[serde(default)]
    nodes: Vec<Recorded>,
    /// Files that are no text, in hexadecimal digits.
    #[serde(default)]
    bytes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Recorded {
    path: String,
    major: u32,
    minor: u32,
    mode: String,
    uid: u32,
    gid: u32,
}

impl Machine {
    /// The machine of `rocworker demo`, by its data. **All of it is synthetic**: an NVIDIA card that is
    /// not to be touched, a Radeon PRO W7900, and an MI300X in CPX and NPS1 whose 8 partitions
    /// have 24 GiB each. Identities and sizes are those of such cards, serial numbers and PCI
    /// addresses are invented.
    #[must_use]
    pub fn demo() -> Self {
        Self::new().with(DEMO)
    }

    /// [`Machine::demo`] under a load, as `rocworker demo --keep` leaves it, all of it invented: readings, processes, and a
    /// kernel's log in which the Radeon PRO W7900 hangs.
    #[must_use]
    pub fn demo_under_load() -> Self {
        Self::demo().with(LOAD)
    }

    fn with(mut self, data: &str) -> Self {
        let demo: Demo = serde_json::from_str(data).expect("templates/demo has valid data");
        for (path, text) in demo.files {
            self = self.put(&path, text);
        }
        for (path, digits) in demo.bytes {
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two hexadecimal digits");
            self = self.put(&path, (0..digits.len()).step_by(2).map(byte).collect::<Vec<u8>>());
        }
        // The class of hwmon has its links by the layout of any machine.
        for (path, target) in demo.links.into_iter().filter(|(path, _)| !path.starts_with("sys/class/hwmon/"))
        {
            self = self.put(&path, Entry::Link(target));
        }
        for node in demo.nodes {
            let mode = u32::from_str_radix(&node.mode, 8).expect("a mode is octal");
            let Recorded { path, major, minor, uid, gid, .. } = node;
            self = self.put(&path, Device { major, minor, mode, uid, gid });
        }
        self
    }

    /// A synthetic server for the benchmark: `cards` MI300X cut into `partitions` each (1 SPX,
    /// 2 DPX, 4 QPX, any other number as CPX on a part with that many XCCs), two CPU sockets, a
    /// BMC's display, memory as the partitions share it. Render minors have gaps: each card has
    /// eight of them reserved, as amdgpu does, with another eight left free between two cards.
    ///
    /// No io_links: a full mesh of 64 partitions would be 4,000 files; see
    /// [`Machine::instinct_linked`].
    #[must_use]
    pub fn instinct(cards: u8, partitions: u8) -> Self {
        Self::server(cards, partitions, false)
    }

    /// [`Machine::instinct`] with an XGMI link from each GPU node to every other.
    #[must_use]
    pub fn instinct_linked(cards: u8, partitions: u8) -> Self {
        Self::server(cards, partitions, true)
    }

    /// [`Machine::instinct`] whose cards say how they are, in invented numbers that all differ: hwmon, `gpu_metrics` 1.8, a
    /// partition's `xcp_metrics`, RAS, memory, links, firmware. At most eight partitions.
    #[must_use]
    pub fn instinct_with_readings(cards: u8, partitions: u8) -> Self {
        Self::with_readings(cards, partitions, |_| None)
    }

    pub(crate) fn with_readings(cards: u8, partitions: u8, trouble: impl Fn(u8) -> Option<Trouble>) -> Self {
        let mut machine = Self::instinct(cards, partitions);
        for number in 0..cards {
            let Instinct { address, first_render, .. } = Instinct::of_server(number, 0, partitions);
            let card = Card { number, address, first_render, partitions, trouble: trouble(number) };
            machine = card.put(machine);
        }
        machine
    }

    fn server(cards: u8, partitions: u8, linked: bool) -> Self {
        let aspeed = Gpu::aspeed("0000:02:00.0").behind("0000:00:1c.4").card(0);
        let machine = Self::new()
            .module(Module::new("amdgpu").srcversion("5AC1AB1E5AC1AB1E5AC1AB1"))
            .module(Module::new("ast"))
            .put("/etc/group", "root:x:0:\nvideo:x:44:\nrender:x:992:\n")
            .gpu(aspeed);
        let cpus = [KfdNode::cpu(96), KfdNode::cpu(96)];
        let first_gpu_node = cpus.len();
        let gpu_nodes = usize::from(cards) * usize::from(partitions);
        let mut kfd = cpus.into_iter().fold(Kfd::new(511), Kfd::node);
        let mut number = 0;
        let mut next_card = 1;
        let mut gpus = Vec::new();
        for card in 0..cards {
            let instinct = Instinct::of_server(card, next_card, partitions);
            next_card += u32::from(partitions);
            gpus.push(instinct.gpu());
            for node in instinct.nodes() {
                let peers = (0..gpu_nodes).filter(|peer| linked && *peer != number);
                let node = peers.fold(node, |node, peer| node.link(XGMI, first_gpu_node + peer));
                kfd = kfd.node(node);
                number += 1;
            }
        }
        gpus.into_iter().fold(machine, Self::gpu).kfd(kfd)
    }
}

/// An MI300X with its partitions.
pub(crate) struct Instinct {
    pub(crate) address: String,
    unique_id: u64,
    first_gpu_id: u32,
    first_card: u32,
    first_render: u32,
    partitions: u8,
}

impl Instinct {
    /// Fifteen cards to a PCI domain, a bus in sixteen each: buses 05, 15, 25, ….
    pub(crate) fn of_server(number: u8, first_card: u32, partitions: u8) -> Self {
        let (domain, slot) = (number / 15, number % 15);
        Self {
            address: format!("{domain:04x}:{:02x}:00.0", 0x05 + 0x10 * slot),
            unique_id: 0x5ca1_ab1e_0001_0000 + u64::from(number),
            first_gpu_id: 1_000 + 100 * u32::from(number),
            first_card,
            first_render: 128 + 16 * u32::from(number),
            partitions,
        }
    }

    fn compute_mode(&self) -> &'static str {
        match self.partitions {
            1 => "SPX",
            2 => "DPX",
            4 => "QPX",
            _ => "CPX",
        }
    }

    fn gpu(&self) -> Gpu {
        let gpu = Gpu::amd(&self.address, MI300X)
            .class(0x12_0000)
            .subsystem(0x1002, MI300X)
            .numa_node(0)
            .card(self.first_card)
            .render(self.first_render)
            .attribute("product_name", "AMD Instinct MI300X OAM")
            .attribute("unique_id", &format!("{:016x}", self.unique_id))
            .attribute("mem_info_vram_total", &MI300X_MEMORY.to_string())
            .attribute("available_compute_partition", "SPX, DPX, QPX, CPX")
            .attribute("current_compute_partition", self.compute_mode())
            .attribute("available_memory_partition", "NPS1, NPS4")
            .attribute("current_memory_partition", "NPS1");
        let further = 1..u32::from(self.partitions);
        further.fold(gpu, |gpu, n| gpu.partition(self.first_card + n, self.first_render + n))
    }

    fn nodes(&self) -> Vec<KfdNode> {
        let share = u64::from(self.partitions.max(1));
        let node = |n: u8| {
            KfdNode::gpu(self.first_gpu_id + u32::from(n), MI300X, 90_402)
                .at(&self.address)
                .partition(n)
                .render(self.first_render + u32::from(n))
                .property("simd_count", MI300X_SIMDS / share)
                .property("num_xcc", 8 / share)
                .property("hive_id", 0x5ca1_ab1e_ffff_ffff)
                .property("unique_id", self.unique_id)
                .memory(MI300X_MEMORY / share)
        };
        (0..self.partitions).map(node).collect()
    }
}
