//! A synthetic server whose cards can be divided, with a driver that behaves as the kernel's source says (Linux 7.3:
//! amdgpu_gfx.c, `amdgpu_gfx_set_compute_partition`; amdgpu_gmc.c, `current_memory_partition_store`,
//! `amdgpu_gmc_prepare_nps_mode_change`; aqua_vanjaram.c; kfd_device.c, `kgd2kfd_check_and_lock_kfd`). **All of it is
//! invented**: no public capture has the partition files.
//!
//! A compute mode is refused with EBUSY while KFD has a process. A memory mode is a request of the whole hive, and takes
//! effect when the driver is loaded again, which resets compute modes. Nothing announces a switch: KFD's nodes and
//! `generation_id` change. DRM's nodes of all partitions stay (amdgpu_xcp.c, `amdgpu_xcp_dev_register`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use inventory::partitioning::{Compute, Generation, Memory, Rules};
use layout::{Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use nix::errno::Errno;
use tempfile::TempDir;

use crate::fuse::Served;

const MI300X: u16 = 0x74a1;
const HBM: u64 = 192 << 30;
const HIVE: u64 = 0x5ca1_ab1e_ffff_ffff;
const XCDS: u32 = 8;

/// The file that stands for modprobe(8): a stub of that program writes `remove` and `load` into it, and a test's script
/// `hold` and `release`, with which a compute process comes and goes.
pub const MODPROBE: &str = "sys/module/rocworker_test/modprobe";

/// A card of the model.
#[derive(Debug, Clone)]
pub struct Card {
    pub address: String,
    pub compute: Compute,
    pub memory: Memory,
    /// Whether the function is a virtual one: the driver takes no mode.
    pub is_virtual: bool,
    /// Whether the card is being reset.
    pub is_in_reset: bool,
    /// Whether a write succeeds and changes nothing.
    pub ignores: bool,
    /// Whether the firmware refuses a mode that the driver lists.
    pub refuses: bool,
    /// Whether KFD fails to come back after a switch.
    pub loses_kfd: bool,
    /// Whether the firmware does not take a memory mode that was requested.
    pub keeps_memory: bool,
    /// KFD's number of its XGMI hive; 0: none.
    pub hive: u64,
    requested: Option<Memory>,
    first_minor: u32,
}

/// The driver, and what it knows.
#[derive(Debug, Clone)]
pub struct Driver {
    pub cards: Vec<Card>,
    /// Compute processes by pid.
    pub processes: Vec<u32>,
    pub is_loaded: bool,
    /// Whether a load fails.
    pub fails_to_load: bool,
    /// Whether the driver lists no memory modes: `Not supported`.
    pub lists_no_memory_modes: bool,
    generation: u32,
    /// What was written, in order: `ADDRESS FILE VALUE`, and `modprobe VERB`.
    pub log: Vec<String>,
}

/// The machine, served.
#[derive(Debug)]
pub struct Partitioned {
    served: Served,
    /// What `--root` is: everything but /sys is laid out there.
    root: PathBuf,
    _own: Option<TempDir>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    driver: Driver,
    /// The folders in which /sys has been laid out: the last one is served.
    laid: Vec<TempDir>,
}

impl Card {
    fn rules() -> Rules {
        Rules { generation: Generation::Mi300, xcds: XCDS }
    }

    fn available(&self) -> String {
        let modes = Compute::ALL.into_iter().filter(|mode| Self::rules().allow(*mode, self.memory));
        modes.map(Compute::name).collect::<Vec<_>>().join(", ")
    }

    fn gpu(&self) -> Gpu {
        let first = self.first_minor;
        let gpu = Gpu::amd(&self.address, MI300X)
            .class(0x12_0000)
            .subsystem(0x1002, MI300X)
            .numa_node(0)
            .card(first)
            .render(128 + first)
            .attribute("product_name", "AMD Instinct MI300X OAM")
            .attribute("unique_id", &format!("{:016x}", self.unique_id()))
            .attribute("mem_info_vram_total", &HBM.to_string())
            .attribute("available_compute_partition", &self.available())
            .attribute("current_compute_partition", self.compute.name())
            .attribute("available_memory_partition", "NPS1, NPS4")
            .attribute("current_memory_partition", &self.memory.to_string())
            .entry("compute_partition_config/supported_xcp_configs", "SPX, DPX, QPX, CPX\n");
        (1..XCDS).fold(gpu, |gpu, n| gpu.partition(first + n, 128 + first + n))
    }

    fn unique_id(&self) -> u64 {
        0x5ca1_ab1e_0001_0000 + u64::from(self.first_minor)
    }

    fn nodes(&self) -> Vec<KfdNode> {
        let devices = self.compute.devices(XCDS);
        let share = u64::from(devices);
        let node = |n: u32| {
            KfdNode::gpu(self.gpu_id(n), MI300X, 90_402)
                .at(&self.address)
                .partition(u8::try_from(n).unwrap())
                .render(128 + self.first_minor + n)
                .property("num_xcc", u64::from(XCDS) / share)
                .property("hive_id", self.hive)
                .property("unique_id", self.unique_id())
                .memory(HBM / share)
        };
        (0..devices).map(node).collect()
    }

    fn gpu_id(&self, n: u32) -> u32 {
        1_000 + 100 * self.first_minor + n
    }
}

impl Driver {
    /// A server with so many MI300X in SPX and NPS1, which are one hive.
    pub fn new(cards: u32) -> Self {
        let card = |number: u32| Card {
            address: format!("0000:{:02x}:00.0", 0x05 + 0x10 * number),
            compute: Compute::Spx,
            memory: Memory::NPS1,
            is_virtual: false,
            is_in_reset: false,
            ignores: false,
            keeps_memory: false,
            refuses: false,
            loses_kfd: false,
            hive: HIVE,
            requested: None,
            first_minor: XCDS * number,
        };
        Self {
            cards: (0..cards).map(card).collect(),
            processes: Vec::new(),
            is_loaded: true,
            fails_to_load: false,
            lists_no_memory_modes: false,
            generation: 2,
            log: Vec::new(),
        }
    }

    /// The machine as the driver shows it now.
    pub fn machine(&self) -> Machine {
        let cpus = [KfdNode::cpu(96), KfdNode::cpu(96)];
        let machine = Machine::new()
            .put("/etc/group", "root:x:0:\nvideo:x:44:\nrender:x:992:\n")
            .put("/sys/fs/cgroup", layout::Entry::Directory)
            .put(&format!("/{MODPROBE}"), "\n");
        if !self.is_loaded {
            let bare = |card: &Card| Gpu::amd(&card.address, MI300X).class(0x12_0000).unbound();
            return self.cards.iter().map(bare).fold(machine, Machine::gpu);
        }
        let kfd = cpus.into_iter().fold(Kfd::new(511), Kfd::node);
        let nodes = self.cards.iter().flat_map(Card::nodes);
        let machine = machine.module(Module::new("amdgpu")).kfd(nodes.fold(kfd, Kfd::node));
        let without_list = |gpu: Gpu| match self.lists_no_memory_modes {
            true => gpu.attribute("available_memory_partition", "Not supported"),
            false => gpu,
        };
        let machine = self.cards.iter().map(|card| without_list(card.gpu())).fold(machine, Machine::gpu);
        let generation = format!("{}\n", self.generation);
        let machine = machine.put("/sys/class/kfd/kfd/topology/generation_id", generation);
        let processes = self.processes.iter().flat_map(|pid| {
            let folder = format!("/sys/class/kfd/kfd/proc/{pid}");
            let cards = self.cards.iter();
            cards.map(move |card| (format!("{folder}/vram_{}", card.gpu_id(0)), "0\n"))
        });
        processes.fold(machine, |machine, (path, text)| machine.put(&path, text))
    }

    /// What a write does. `path`: inside /sys.
    fn write(&mut self, path: &Path, value: &str) -> Result<(), Errno> {
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if Path::new("/").join(MODPROBE).ends_with(path.strip_prefix("/").unwrap()) {
            self.log.push(format!("modprobe {value}"));
            return self.modprobe(value);
        }
        let folder =
            path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
        let is_busy = !self.processes.is_empty();
        self.log.push(format!("{folder} {file} {value}"));
        let card = self.cards.iter_mut().find(|card| card.address == folder).ok_or(Errno::ENOENT)?;
        match file {
            "current_compute_partition" => {
                let mode = Compute::parse(value).map_err(|_| Errno::EINVAL)?;
                if card.is_virtual {
                    return Err(Errno::EACCES);
                }
                if card.is_in_reset {
                    return Err(Errno::EPERM);
                }
                if card.compute == mode {
                    return Ok(());
                }
                if card.refuses || !Card::rules().allow(mode, card.memory) {
                    return Err(Errno::EINVAL);
                }
                if is_busy {
                    return Err(Errno::EBUSY);
                }
                if card.ignores {
                    return Ok(());
                }
                if card.loses_kfd {
                    return Err(Errno::EIO);
                }
                card.compute = mode;
                self.generation += 1;
            }
            "current_memory_partition" => {
                let mode = Memory::parse(value).map_err(|_| Errno::EINVAL)?;
                if ![Memory::NPS1, Memory::NPS4].contains(&mode) {
                    return Err(Errno::EINVAL);
                }
                // The hive keeps the request, and nothing changes.
                if card.memory != mode {
                    let (address, hive) = (card.address.clone(), card.hive);
                    let is_asked =
                        |card: &&mut Card| card.address == address || (hive != 0 && card.hive == hive);
                    self.cards.iter_mut().filter(is_asked).for_each(|card| card.requested = Some(mode));
                }
            }
            _ => return Err(Errno::EACCES),
        }
        Ok(())
    }

    fn modprobe(&mut self, verb: &str) -> Result<(), Errno> {
        match verb {
            "hold" => self.processes.push(1),
            "release" => self.processes.clear(),
            "remove" if !self.processes.is_empty() => return Err(Errno::EBUSY),
            "remove" => self.is_loaded = false,
            "load" if self.fails_to_load => return Err(Errno::EIO),
            "load" => {
                for card in &mut self.cards {
                    let requested = card.requested.take().filter(|_| !card.is_virtual && !card.keeps_memory);
                    card.memory = requested.unwrap_or(card.memory);
                    card.compute = Card::rules().after_load(card.memory, false).ok_or(Errno::EIO)?;
                }
                self.is_loaded = true;
                self.generation = 2;
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// A card gets another compute mode by another program: KFD has other nodes, and no event says so.
    ///
    /// # Panics
    /// Where there is no such card.
    pub fn switch(&mut self, card: usize, mode: Compute) {
        self.cards[card].compute = mode;
        self.generation += 1;
    }

    /// The machine starts again: no mode survives.
    pub fn reboot(&mut self) {
        self.processes.clear();
        for card in &mut self.cards {
            card.requested = None;
            (card.compute, card.memory) = (Compute::Spx, Memory::NPS1);
        }
        self.generation = 2;
        self.is_loaded = true;
    }
}

impl Shared {
    /// Lays /sys out anew.
    fn lay(&mut self) -> PathBuf {
        let folder = crate::detect::scratch();
        self.driver.machine().lay_out(folder.path(), Nodes::Recorded).unwrap();
        let sys = folder.path().join("sys");
        for card in self.driver.cards.iter().filter(|card| card.is_virtual) {
            let file = sys.join("bus/pci/devices").join(&card.address).join("current_compute_partition");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o444);
            std::fs::set_permissions(file, mode).unwrap();
        }
        self.laid.push(folder);
        // A reader may be in the one before.
        let old = self.laid.len().saturating_sub(3);
        self.laid.drain(..old);
        sys
    }
}

impl Partitioned {
    /// Lays the machine out, with its /sys served by the driver.
    ///
    /// # Panics
    /// Where it cannot be mounted.
    pub fn new(driver: Driver) -> Self {
        let own = tempfile::tempdir().unwrap();
        driver.machine().lay_out(own.path(), Nodes::Recorded).unwrap();
        let served = Self::at(own.path(), driver);
        Self { _own: Some(own), ..served }
    }

    /// Serves /sys of [`Driver::machine`], which is laid out beneath `root`.
    ///
    /// # Panics
    /// Where it cannot be mounted.
    pub fn at(root: &Path, driver: Driver) -> Self {
        let sys = root.join("sys");
        let mut shared = Shared { driver, laid: Vec::new() };
        let laid = shared.lay();
        let shared = Arc::new(Mutex::new(shared));
        let of_writes = Arc::clone(&shared);
        let write = move |path: &Path, value: &str| {
            let mut shared = of_writes.lock().unwrap();
            shared.driver.write(path, value)?;
            Ok(shared.lay())
        };
        let served = Served::driven(&laid, &sys, Box::new(write));
        Self { served, root: root.to_owned(), _own: None, shared }
    }

    /// What `--root` takes.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn served(&self) -> &Served {
        &self.served
    }

    /// Changes what the driver knows, without a write and without an event.
    ///
    /// # Panics
    /// Where it cannot be laid out.
    pub fn change<T>(&self, change: impl FnOnce(&mut Driver) -> T) -> T {
        let mut shared = self.shared.lock().unwrap();
        let changed = change(&mut shared.driver);
        let sys = shared.lay();
        self.served().serve(sys);
        changed
    }

    /// The modes of each card: `SPX/NPS1`.
    ///
    /// # Panics
    /// Where a thread of the driver has panicked.
    pub fn modes(&self) -> Vec<String> {
        let shared = self.shared.lock().unwrap();
        shared.driver.cards.iter().map(|card| format!("{}/{}", card.compute, card.memory)).collect()
    }

    /// What was written since the last call.
    ///
    /// # Panics
    /// Where a thread of the driver has panicked.
    pub fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().driver.log)
    }

    /// The files of the machine beside /sys, to be put there.
    ///
    /// # Panics
    /// Where a file cannot be written.
    pub fn put(&self, files: &BTreeMap<&str, String>) {
        for (path, text) in files {
            let file = self.root.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
    }
}
