//! PCI, DRM and KFD joined into the list of what a container can be given.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use inventory::partitioning::Chip;
use inventory::{
    Gpu, Inventory, Kfd, NeverComputes, Partition, PciAddress, Problem, Reading, SeaIslands, Unknown, Unread,
    UnreadOf, Uuid, Vendor,
};
use root::Root;

use crate::drm::{self, Minor, Parent};
use crate::kfd::{self, Node};
use crate::pci::{self, Function};
use crate::{attribute, card, kfd_parameter, module, node, partitioning, virtualization};

/// The parts of the machine, read and not yet joined.
struct Survey<'a> {
    root: &'a Root,
    minors: Vec<Minor>,
    kfd: Kfd,
    /// Properties that an AMD card and each of its partitions share.
    cards: BTreeMap<PciAddress, Gpu>,
    /// The first node of KFD of which it is not known whether it is a GPU.
    unread_node: Option<Unread>,
}

/// Reads the machine beneath `root`. Never fails: where a value cannot be read, its reason stands in its
/// place.
#[must_use]
pub fn read(root: &Root) -> Inventory {
    let (functions, mut unread) = pci::functions(root);
    let (amd, others): (Vec<_>, Vec<_>) = functions.into_iter().partition(|f| f.vendor == Vendor::Amd);
    let topology = kfd::topology(root);
    let node = node::examine_kfd(root);
    let parameter = topology.there.as_ref().err().and_then(|_| kfd_parameter::refused(root));
    let kfd = Kfd { topology: topology.there, parameter, node, hidden_nodes: topology.hidden };
    let minors = drm::minors(root);
    let numbers = minors.iter().filter_map(|minor| minor.number.as_ref().err());
    let numbers: Vec<_> = numbers.chain(kfd.node.unread()).cloned().collect();
    let has_unread_function = !unread.is_empty();
    let unread_node = topology.unread.first().cloned();
    let number_of = |unread: &Unread| match unread.of {
        UnreadOf::KfdNode(id) => Some(id),
        UnreadOf::Function(_) | UnreadOf::Device => None,
    };
    let mut first_unread = unread_node.as_ref().and_then(number_of);
    unread.extend(topology.unread);
    let mut contradictions = Vec::new();
    let cards = amd.into_iter().map(|function| (function.address, card(root, function))).collect();
    let survey = Survey { root, minors, kfd, cards, unread_node };
    let numa_nodes = survey.cards.values().filter_map(|card| card.numa_node.clone().err());
    let failed = numbers.into_iter().chain(numa_nodes).filter(Unknown::is_failed);
    unread.extend(failed.map(|reason| Unread { of: UnreadOf::Device, reason }));
    let mut nodes = Vec::new();
    for node in topology.nodes {
        match survey.why_no_amd_gpu(&node) {
            None => nodes.push(node),
            Some(problem) => {
                // The node may be of a function that cannot be read.
                if has_unread_function {
                    first_unread = first_unread.into_iter().chain([node.id]).min();
                }
                contradictions.push(problem);
            }
        }
    }

    let mut gpus = survey.known_to_kfd(nodes);
    gpus.extend(survey.unknown_to_kfd(&gpus));
    settle_uuids(&mut gpus);
    // A node or function that cannot be read may be a GPU: whoever can read it numbers the GPUs behind it
    // otherwise.
    let is_before = |gpu: &Gpu| match gpu.kfd_node {
        Some(id) => first_unread.is_none_or(|first| id < first),
        None => first_unread.is_none() && !has_unread_function,
    };
    for (index, gpu) in (0..).zip(&mut gpus).filter(|(_, gpu)| is_before(gpu)) {
        gpu.index = Some(index);
    }
    for function in others {
        let parent = Parent::Pci(function.address);
        let gpu = of_function(root, function, "not read from another vendor's card");
        let gpu = survey.with_nodes(gpu, survey.render_of(&parent));
        gpus.push(Gpu { problems: vec![Problem::NotAmd], ..gpu });
    }
    let is_bound = gpus.iter().any(|gpu| gpu.is_driven_by_amdgpu());
    Inventory {
        gpus,
        kfd: survey.kfd,
        amdgpu: module::read(root, is_bound),
        virtualization: virtualization::read(root),
        unread,
        contradictions,
    }
}

/// A card of AMD's, without its nodes.
fn card(root: &Root, function: Function) -> Gpu {
    let address = function.address;
    let folder = pci::folder(address);
    let why = "only KFD reports the architecture, and it does not know this GPU";
    if let Some(asleep) = pci::asleep(root, address) {
        return Gpu {
            product_name: Err(asleep.clone()),
            uuid: Err(asleep.clone()),
            vram_bytes: Err(asleep.clone()),
            partition: Some(Partition::unread(&asleep)),
            ..of_function(root, function, why)
        };
    }
    let uuid = unique_id(root, &folder.join("unique_id"));
    Gpu {
        product_name: attribute::text(root, &folder.join("product_name")),
        card_uuid: uuid.as_ref().ok().copied(),
        uuid,
        vram_bytes: attribute::number(root, &folder.join("mem_info_vram_total")),
        partition: Some(partitioning::first_of(root, address)),
        ..of_function(root, function, why)
    }
}

/// A card as the PCI bus reports it; `why` is the reason of each reading that the bus does not give.
fn of_function(root: &Root, function: Function, why: &str) -> Gpu {
    Gpu {
        vendor_id: Some(function.vendor_id),
        device_id: Some(function.device_id),
        pci: Some(function.address),
        sriov: pci::sriov(root, function.address),
        driver: function.driver,
        numa_node: pci::numa_node(root, function.address),
        ..Gpu::unread(function.vendor, why)
    }
}

impl Survey<'_> {
    /// An entry for each render minor that KFD names, in the order of KFD's nodes.
    fn known_to_kfd(&self, mut nodes: Vec<Node>) -> Vec<Gpu> {
        let mut naming = BTreeMap::<u32, Vec<u32>>::new();
        for node in &nodes {
            naming.entry(node.render_minor).or_default().push(node.id);
        }
        // A minor that several nodes name gets one entry, whose problem names the nodes.
        nodes.retain(|node| naming.get(&node.render_minor).and_then(|ids| ids.first()) == Some(&node.id));
        let amd: Vec<PciAddress> = self.cards.keys().copied().collect();
        let parent_of = |node: &Node| self.render(node.render_minor).map(|minor| minor.parent.clone());
        let cards = card::resolve(&nodes, parent_of, &amd);
        let mut parts = BTreeMap::<PciAddress, Vec<u32>>::new();
        for (id, address) in &cards {
            parts.entry(*address).or_default().push(*id);
        }
        let mut gpus = Vec::new();
        for node in nodes {
            let address = cards.get(&node.id).copied();
            let siblings = address.and_then(|address| parts.get(&address)).map_or(&[][..], Vec::as_slice);
            let mut gpu = self.kfd_gpu(&node, address, siblings);
            let nodes = naming.remove(&node.render_minor).filter(|nodes| nodes.len() > 1);
            gpu.problems.extend(nodes.map(|nodes| Problem::SharedMinor { minor: node.render_minor, nodes }));
            gpus.push(gpu);
        }
        gpus
    }

    /// `siblings`: the numbers of all KFD nodes of the same card, this one among them.
    fn kfd_gpu(&self, node: &Node, address: Option<PciAddress>, siblings: &[u32]) -> Gpu {
        let mut gpu = self.gpu(address, self.render(node.render_minor), siblings.len());
        gpu.device_id = gpu.device_id.or(node.device_id);
        gpu.kfd_node = Some(node.id);
        gpu.gfx = node.gfx.clone();
        gpu.hive_id = node.hive_id;
        gpu.xcds = node.xcds;
        gpu.simds = node.simds;
        gpu.compute_units = node.simds.zip(node.simds_per_unit).map(|(all, each)| all / each);
        gpu.is_integrated = node.has_cores || node.gfx.as_ref().is_ok_and(|gfx| gfx.is_integrated());
        let cards_own = gpu.card_uuid;
        let own = node.unique_id.and_then(Uuid::new).or(cards_own);
        gpu.card_uuid = cards_own.or(own);
        if let Some(uuid) = own {
            gpu.uuid = Ok(uuid);
        }
        let place = (0..).zip(siblings).find_map(|(place, id)| (*id == node.id).then_some(place));
        if let Some(partition) = &mut gpu.partition {
            partition.id = place.unwrap_or(0);
        }
        let whole = gpu.partition.as_ref().is_none_or(|partition| partition.is_whole(siblings.len()));
        if !whole || address.is_none() {
            gpu.vram_bytes = kfd::memory(self.root, node.id);
            // A container may see one partition of eight, and with it the id that all eight share.
            let alone = siblings.len() == 1 && cards_own.is_none();
            if let Some(uuid) = own.filter(|uuid| alone || cards_own == Some(*uuid)) {
                gpu.uuid =
                    Err(Unknown::because(format!("unique id {uuid} is or may be its card's, not its own")));
            }
        }
        if address.is_none() {
            gpu.problems.insert(0, Problem::CardUnknown);
        }
        gpu
    }

    /// The AMD cards that no KFD node names, in PCI order.
    fn unknown_to_kfd(&self, known: &[Gpu]) -> Vec<Gpu> {
        let with_own_node: BTreeSet<&Path> =
            known.iter().filter_map(|gpu| gpu.render.as_ref()).map(|node| node.path.as_path()).collect();
        let mut gpus = Vec::new();
        for address in self.cards.keys().copied() {
            let render = self.render_of(&Parent::Pci(address));
            let is_listed = match render {
                Some(minor) => with_own_node.contains(node_path(&minor.name).as_path()),
                None => known.iter().any(|gpu| gpu.pci == Some(address)),
            };
            if is_listed {
                continue;
            }
            let mut gpu = self.gpu(Some(address), render, 1);
            if let Some(minor) = render.and_then(|minor| minor.render)
                && gpu.never_computes().is_none()
            {
                gpu.problems.push(self.why_unknown_to_kfd(&gpu, minor, known));
            }
            gpus.push(gpu);
        }
        gpus
    }

    /// Why a KFD node is not taken for a GPU: its render node belongs to no AMD card. Without this check an
    /// error in KFD's tree could offer another vendor's GPU.
    fn why_no_amd_gpu(&self, node: &Node) -> Option<String> {
        let (id, minor) = (node.id, node.render_minor);
        if minor == 0 {
            return Some(format!(
                "KFD node {id}: a GPU without drm_render_minor: nothing can be given to a container"
            ));
        }
        match self.render(minor).map(|minor| &minor.parent) {
            Some(Parent::Partition(_)) => None,
            Some(Parent::Pci(address)) if self.cards.contains_key(address) => None,
            Some(Parent::Pci(address)) => Some(format!(
                "KFD node {id} names renderD{minor}, which belongs to {address}, where no AMD GPU is known"
            )),
            Some(Parent::Other) => {
                Some(format!("KFD node {id} names renderD{minor}, which belongs to no PCI device"))
            }
            None => {
                Some(format!("KFD node {id} names renderD{minor}, and /sys/class/drm has none of that name"))
            }
        }
    }

    fn why_unknown_to_kfd(&self, gpu: &Gpu, minor: u32, known: &[Gpu]) -> Problem {
        match &self.kfd.topology {
            Err(reason) => self.no_kfd(reason),
            Ok(()) if self.kfd.hidden_nodes > 0 => Problem::HiddenByKfd,
            Ok(()) => match &self.unread_node {
                Some(node) => Problem::UnreadInKfd(node.clone()),
                None => {
                    let is_equal = |other: &&Gpu| {
                        gpu.device_id.is_some()
                            && (other.vendor_id, other.device_id) == (gpu.vendor_id, gpu.device_id)
                    };
                    let equals: BTreeSet<_> =
                        known.iter().filter(is_equal).filter_map(|gpu| gpu.pci).collect();
                    Problem::UnknownToKfd { minor, equals: equals.into_iter().collect() }
                }
            },
        }
    }

    fn no_kfd(&self, reason: &Unknown) -> Problem {
        match &self.kfd.parameter {
            Some(parameter) => Problem::KfdParameter(parameter.clone()),
            None => Problem::NoKfd(reason.clone()),
        }
    }

    /// Builds an AMD GPU from all that needs no KFD. `partitions`: how many its card has.
    fn gpu(&self, address: Option<PciAddress>, render: Option<&Minor>, partitions: usize) -> Gpu {
        let card = address.and_then(|address| self.cards.get(&address)).cloned();
        let unknown = || Gpu { vendor_id: Some(0x1002), ..Gpu::unread(Vendor::Amd, "its card is not known") };
        let mut gpu = self.with_nodes(card.unwrap_or_else(unknown), render);
        let can_be_divided = gpu.device_id.and_then(Chip::of).is_some();
        // The driver refuses reads while it resets the card.
        let is_unread =
            |it: &Partition| can_be_divided && it.compute.as_ref().is_err_and(|why| !why.is_absent());
        gpu.partition = gpu.partition.filter(|it| partitions > 1 || it.is_known() || is_unread(it));
        gpu.problems = self.problems_of(&gpu);
        gpu
    }

    /// Adds the GPU's nodes in /dev.
    fn with_nodes(&self, gpu: Gpu, render: Option<&Minor>) -> Gpu {
        let parent = render.map(|minor| minor.parent.clone()).or(gpu.pci.map(Parent::Pci));
        let mut minors = self.minors.iter().filter(|minor| minor.render.is_none());
        let card = minors.find(|minor| Some(&minor.parent) == parent.as_ref());
        let node = |minor: &Minor| node::examine(self.root, node_path(&minor.name), &minor.number);
        let platform_device = match &parent {
            Some(Parent::Partition(name)) => Some(name.clone()),
            _ => None,
        };
        Gpu { card: card.map(node), render: render.map(node), platform_device, ..gpu }
    }

    fn problems_of(&self, gpu: &Gpu) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(never) = gpu.device_id.and_then(NeverComputes::of) {
            return vec![Problem::NeverComputes(never)];
        }
        match (gpu.pci, gpu.driver.as_deref()) {
            (Some(_), None) => return vec![Problem::Unbound],
            (_, Some(other)) if other != "amdgpu" => {
                let chip = gpu.device_id.and_then(SeaIslands::of).filter(|_| other == "radeon");
                let of_other = || Problem::OtherDriver(other.to_owned());
                return vec![chip.map_or_else(of_other, Problem::LeftToRadeon)];
            }
            (_, Some(_)) | (None, None) => {}
        }
        match gpu.render.as_ref().map(|node| &node.state) {
            Some(Ok(_)) => {}
            Some(Err(fault)) => problems.push(Problem::Node(fault.clone())),
            None => problems.push(Problem::NoRenderNode),
        }
        match (&self.kfd.topology, &self.kfd.node.state) {
            (Ok(()), Ok(_)) => {}
            (Ok(()), Err(fault)) => problems.push(Problem::Kfd(fault.clone())),
            (Err(reason), _) if gpu.render.is_none() => problems.push(self.no_kfd(reason)),
            // `unknown_to_kfd` reports the missing KFD of a GPU with a render node.
            (Err(_), _) => {}
        }
        problems
    }

    fn render(&self, number: u32) -> Option<&Minor> {
        self.minors.iter().find(|minor| minor.render == Some(number))
    }

    fn render_of(&self, parent: &Parent) -> Option<&Minor> {
        self.minors.iter().find(|minor| minor.render.is_some() && minor.parent == *parent)
    }
}

/// A unique id that several GPUs have is no GPU's own. It names their card where all are of one card; else it names
/// nothing.
fn settle_uuids(gpus: &mut [Gpu]) {
    let mut holders = BTreeMap::<Uuid, Vec<Option<PciAddress>>>::new();
    for gpu in &*gpus {
        let own = gpu.uuid.as_ref().ok().copied();
        for uuid in own.into_iter().chain(gpu.card_uuid.filter(|uuid| own != Some(*uuid))) {
            holders.entry(uuid).or_default().push(gpu.pci);
        }
    }
    holders.retain(|_, places| places.len() > 1);
    let is_of_one_card = |places: &[Option<PciAddress>]| {
        places.first().is_some_and(|first| first.is_some() && places.iter().all(|place| place == first))
    };
    for gpu in gpus {
        // With an own id, from ROCm 7.0.1 on, what is shared is the card's alone.
        let reported = gpu.uuid.as_ref().ok().copied().or(gpu.card_uuid);
        if let Some((uuid, places)) = reported.and_then(|uuid| holders.get_key_value(&uuid)) {
            let what = if is_of_one_card(places) { "it names their card" } else { "it names no GPU" };
            let n = places.len();
            gpu.uuid = Err(Unknown::because(format!("{n} GPUs share unique id {uuid}: {what}")));
        }
        gpu.card_uuid = gpu.card_uuid.filter(|uuid| holders.get(uuid).is_none_or(|it| is_of_one_card(it)));
    }
}

/// amdgpu prints it in hexadecimal, and an empty line or 0 where there is none (amdgpu_pm.c).
fn unique_id(root: &Root, path: &Path) -> Reading<Uuid> {
    let id = attribute::hexadecimal(root, path)?;
    Uuid::new(id)
        .ok_or_else(|| Unknown::because(format!("{} says 0: it has none", root.shown(path).display())))
}

fn node_path(name: &str) -> PathBuf {
    Path::new("/dev/dri").join(name)
}
