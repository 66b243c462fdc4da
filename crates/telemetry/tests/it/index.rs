//! A GPU's index is `rocworker detect`'s or absent, and never another's: MI210 cards whose PCI order is not KFD's.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use inventory::snapshot::Snapshot;
use layout::{Gpu, Kfd, KfdNode, Machine, Module};
use nix::errno::Errno;
use root::Root;
use support::fuse::{self, Fault, Served};
use support::laid::Laid;
use telemetry::exporter::Exporter;
use telemetry::samples::samples;

/// The cards by the number of their KFD node, from 1.
const CARDS: [&str; 4] = ["0000:c3:00.0", "0000:43:00.0", "0000:83:00.0", "0000:03:00.0"];

fn mi210() -> Laid {
    const GIB64: u64 = 64 << 30;
    let mut machine = Machine::new().module(Module::new("amdgpu"));
    let mut kfd = Kfd::new(511).node(KfdNode::cpu(64));
    for (place, pci) in (0_u32..).zip(CARDS) {
        let render = 128 + place;
        machine = machine.gpu(
            Gpu::amd(pci, 0x740f)
                .class(0x03_8000)
                .card(place)
                .render(render)
                .attribute("unique_id", &format!("5ca1ab1e000000{render:x}"))
                .attribute("power/runtime_status", "active")
                .attribute("gpu_busy_percent", &place.to_string())
                .attribute("mem_info_vram_total", &GIB64.to_string()),
        );
        kfd = kfd.node(KfdNode::gpu(7000 + place, 0x740f, 90_010).at(pci).render(render).memory(GIB64));
    }
    Laid::out(&machine.kfd(kfd))
}

fn properties(node: usize) -> String {
    format!("/sys/class/kfd/kfd/topology/nodes/{node}/properties")
}

fn scrape(root: &Root) -> Snapshot {
    Exporter::default().scrape(root, 1e9)
}

/// The index of each card by its series: each of them has it, or none.
fn indexes(scraped: &Snapshot) -> BTreeMap<String, Option<u32>> {
    let mut found = BTreeMap::new();
    for sample in &samples(scraped) {
        let label =
            |name: &str| sample.labels.iter().find(|(label, _)| *label == name).map(|(_, it)| it.clone());
        let Some(pci) = label("pci") else { continue };
        let index = label("gpu").map(|index| index.parse().unwrap());
        assert_eq!(*found.entry(pci).or_insert(index), index, "{sample:?}");
    }
    found
}

/// The number of failed reads of a node's file.
fn failed_reads(scraped: &Snapshot, node: usize) -> Option<f64> {
    let file = properties(node);
    let is_its = |sample: &&telemetry::sample::Sample| {
        sample.metric.name == "rocm_exporter_read_errors_total" && sample.labels == [("file", file.clone())]
    };
    samples(scraped).iter().find(is_its).map(|sample| sample.value)
}

/// `known`: how many GPUs have their index; those of the first nodes.
fn assert_known(scraped: &Snapshot, known: u32, what: &str) {
    let expected: BTreeMap<String, Option<u32>> =
        (0..).zip(CARDS).map(|(index, pci)| (pci.to_owned(), (index < known).then_some(index))).collect();
    assert_eq!(indexes(scraped), expected, "{what}");
    let cards = &scraped.cards;
    assert_eq!(cards.len(), CARDS.len(), "{what}: each card is listed");
    let busy = |card: &inventory::snapshot::Card| {
        let place = CARDS.iter().position(|pci| card.pci.is_some_and(|it| it.to_string() == *pci)).unwrap();
        assert_eq!(card.readings.busy_percent, Some(place as f64), "{what}");
        assert_eq!(card.gpus.len(), 1);
        card.gpus[0].index
    };
    let shown: Vec<Option<u32>> = cards.iter().map(busy).collect();
    let unnumbered = CARDS.len() - known as usize;
    let in_order: Vec<Option<u32>> = (0..known).map(Some).chain(vec![None; unnumbered]).collect();
    assert_eq!(shown, in_order, "{what}: what has no index comes last");
    assert_eq!(scraped.may_lack_cards(), unnumbered > 0, "{what}: {:?}", scraped.unknown());
}

#[test]
fn an_index_behind_a_node_that_cannot_be_read_is_absent_and_the_read_error_is_counted_and_shown() {
    let laid = mi210();
    let root = Root::open(laid.top()).unwrap();
    let detected = amdgpu::read(&root);
    let order: Vec<String> = detected.gpus.iter().map(|gpu| gpu.pci.unwrap().to_string()).collect();
    assert_eq!(order, CARDS, "the order of `rocworker detect`");
    assert_known(&scrape(&root), 4, "a healthy machine");
    // Node 0 is the CPU's, which only who can read it knows.
    for (node, known) in [(0, 0), (1, 0), (2, 1), (4, 3)] {
        for (what, text) in
            [("empty", ""), ("no text", "\u{0}\u{1}\u{2}"), ("nothing of a GPU", "wave_front_size 64\n")]
        {
            let laid = mi210();
            laid.put(&properties(node)[1..], text);
            let mut exporter = Exporter::default();
            let root = Root::open(laid.top()).unwrap();
            exporter.scrape(&root, 1e9);
            let scraped = exporter.scrape(&root, 1e9 + 1.0);
            let what = format!("node {node}: {what}");
            assert_known(&scraped, known, &what);
            let detected = amdgpu::read(&root);
            let numbered: Vec<u32> = detected.gpus.iter().filter_map(|gpu| gpu.index).collect();
            assert_eq!(numbered, (0..known).collect::<Vec<_>>(), "{what}: {detected:?}");
            let unanswered = detected.unanswered().next().unwrap().to_string();
            assert!(unanswered.starts_with(&format!("KFD node {node}: ")), "{what}");
            assert_eq!(failed_reads(&scraped, node), Some(2.0), "{what}");
            let shown = scraped.unknown();
            let count = shown.iter().filter(|it| it.starts_with(&format!("KFD node {node}: "))).count();
            assert_eq!(count, 1, "{what}: {shown:?}");
        }
    }
}

/// Programs number no GPU without a render node.
#[test]
fn a_gpu_node_without_a_render_node_costs_no_other_gpu_its_index_and_no_left_out_card_its_cause() {
    for minor in ["", "drm_render_minor 0\n"] {
        let laid = mi210();
        laid.put(&properties(2)[1..], &format!("simd_count 4\ngfx_target_version 90010\n{minor}"));
        let detected = amdgpu::read(&Root::open(laid.top()).unwrap());
        let order: Vec<_> =
            detected.gpus.iter().map(|gpu| (gpu.index, gpu.pci.unwrap().to_string())).collect();
        let expected = [CARDS[0], CARDS[2], CARDS[3], CARDS[1]];
        assert_eq!(
            order,
            (0..).zip(expected).map(|(at, pci)| (Some(at), pci.to_owned())).collect::<Vec<_>>()
        );
        assert!(!detected.may_lack_gpus() && detected.problems()[0].contains("without drm_render_minor"));
        let left_out = detected.gpus[3].problems.iter().map(ToString::to_string).collect::<String>();
        assert!(left_out.contains("KFD does not know render minor 129"), "{left_out}");
    }
}

/// Runs as the exporter's user, who is not root.
#[test]
fn real_fuse_an_index_is_absent_where_the_kernel_refuses_a_node() {
    if !fuse::require() {
        return;
    }
    let laid = mi210();
    let served = Served::new(laid.top());
    let root = Root::open(served.path()).unwrap();
    for errno in [Errno::EACCES, Errno::EIO, Errno::EBUSY] {
        served.fault(&properties(2), Fault::Errno(errno));
        let scraped = scrape(&root);
        assert_known(&scraped, 1, &errno.to_string());
        assert_eq!(failed_reads(&scraped, 2), Some(1.0), "{errno}");
        let detected = amdgpu::read(&root);
        let unread = detected.gpus.iter().find(|gpu| gpu.pci.unwrap().to_string() == CARDS[1]).unwrap();
        let problems: Vec<String> = unread.problems.iter().map(ToString::to_string).collect();
        assert!(problems.iter().any(|it| it.contains("KFD node 2: ")), "{errno}: {problems:?}");
        served.mend();
    }
}

/// An unprivileged process must read the files that `rocworker detect` reads as root.
#[test]
fn real_a_node_that_only_root_reads_shifts_no_index_of_an_unprivileged_exporter() {
    if !support::real::require_root(&[]) {
        return;
    }
    let laid = mi210();
    let file = laid.path(&properties(2)[1..]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(laid.top(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let root = Root::open(laid.top()).unwrap();
    assert_known(&scrape(&root), 4, "as root");
    // setfsuid changes a thread's rights: other tests keep theirs.
    let scraped = std::thread::spawn(move || {
        nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
        nix::unistd::setfsgid(nix::unistd::Gid::from_raw(65_534));
        scrape(&root)
    });
    let scraped = scraped.join().unwrap();
    assert_known(&scraped, 1, "as nobody");
    assert_eq!(failed_reads(&scraped, 2), Some(1.0));
    let shown = scraped.unknown();
    assert!(
        shown.iter().any(|it| it.contains("Permission denied") && it.contains("KFD node 2")),
        "{shown:?}"
    );
}
