//! `topology`: as a matrix, as a tree, and as JSON. Expected values of captures were worked out by hand from the raw files
//! named beside them; what is laid out is invented.

use std::process::Command;
use std::time::{Duration, Instant};

use layout::{Gpu, Kfd, KfdNode, Machine, Module, Nodes, XcpNames};
use serde_json::{Value, json};
use support::captures;
use support::detect::scratch;

const ROCWORKER: &str = env!("CARGO_BIN_EXE_rocworker");
const NODES: &str = "/sys/devices/virtual/kfd/kfd/topology/nodes";

/// What the program prints of a machine, without the place where it is laid out.
fn shown(machine: &Machine, arguments: &[&str]) -> String {
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let mut command = Command::new(ROCWORKER);
    let output = command.arg("--root").arg(root.path()).arg("topology").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().replace(root.path().to_str().unwrap(), "")
}

fn answer(machine: &Machine) -> Value {
    serde_json::from_str(&shown(machine, &["-o", "json"])).unwrap()
}

/// The link between two GPUs.
fn link(answer: &Value, a: u32, b: u32) -> Value {
    let links = answer["links"].as_array().unwrap();
    links.iter().find(|link| link["gpus"] == json!([a, b])).unwrap().clone()
}

fn problems(answer: &Value) -> Vec<&str> {
    answer["problems"].as_array().unwrap().iter().map(|problem| problem.as_str().unwrap()).collect()
}

/// A file of a link, as KFD writes it.
fn properties(kind: u64, from: u32, to: u32, weight: u64, bandwidth: (u64, u64)) -> String {
    let (least, most) = bandwidth;
    format!(
        "type {kind}\nversion_major 0\nversion_minor 0\nnode_from {from}\nnode_to {to}\nweight {weight}\nmin_latency 0\n\
         max_latency 0\nmin_bandwidth {least}\nmax_bandwidth {most}\nrecommended_transfer_size 0\nflags 1\n"
    )
}

/// AMD's GPUs, each with the bridges above it and its NUMA node, and KFD's nodes without links. All of it is invented.
fn on_bus(gpus: &[(&str, &str, i32)]) -> Machine {
    let mut machine = Machine::new().module(Module::new("amdgpu"));
    let mut kfd = Kfd::new(511).node(KfdNode::cpu(8));
    for (minor, (address, bridges, numa_node)) in (0..).zip(gpus) {
        let gpu = Gpu::amd(address, 0x74a1).class(0x12_0000).behind(bridges).card(minor).render(128 + minor);
        let cpus = format!("{}-{}", 8 * numa_node, 8 * numa_node + 7);
        machine = machine.gpu(gpu.numa_node(*numa_node).attribute("local_cpulist", cpus.as_str()));
        let node = KfdNode::gpu(minor + 1, 0x74a1, 90_402).at(address).render(128 + minor);
        kfd = kfd.node(node.property("hive_id", 0));
    }
    machine.kfd(kfd)
}

fn pair(first: &str, bridges: &str, second: &str, other_bridges: &str) -> Machine {
    on_bus(&[(first, bridges, 0), (second, other_bridges, 0)])
}

fn neighbours() -> Machine {
    pair("0000:03:00.0", "0000:00:01.1", "0000:04:00.0", "0000:00:01.2")
}

fn linked(there: &str, back: &str) -> Machine {
    neighbours()
        .put(&format!("{NODES}/1/io_links/0/properties"), there)
        .put(&format!("{NODES}/2/io_links/0/properties"), back)
}

#[test]
fn eight_mi300x_in_cpx_are_one_hive() {
    let answer = answer(&captures::mi300x(XcpNames::Dot));
    // 63 GPU nodes: 63 * 62 / 2 pairs.
    assert_eq!(answer["links"].as_array().unwrap().len(), 1_953);
    // nodes/2/properties: hive_id 15188982192727901047, the same in all 63.
    assert_eq!(
        answer["hives"],
        json!([{
            "id": "d2ca1ad46147c377",
            "gpus": (0..63).collect::<Vec<u32>>(),
            "cards": ["0000:05:00.0", "0000:27:00.0", "0000:47:00.0", "0000:65:00.0",
                      "0000:85:00.0", "0000:a7:00.0", "0000:c7:00.0", "0000:e5:00.0"],
        }])
    );
    // nodes/2/io_links/*/properties with node_to 3: type 11, weight 13, bandwidths 819200.
    assert_eq!(
        link(&answer, 0, 1),
        json!({
            "gpus": [0, 1], "kind": "card", "hops": null, "pcie": null, "weight": 13,
            "min_megabytes_per_second": 819_200, "max_megabytes_per_second": 819_200,
            "peer_access": true, "unknown": {},
        })
    );
    // nodes/2/io_links/*/properties with node_to 10: type 11, weight 41, bandwidths 0.
    let between = link(&answer, 0, 8);
    assert_eq!(between["kind"], "xgmi");
    assert_eq!(between["hops"], Value::Null);
    assert!(between["unknown"]["hops"].as_str().unwrap().contains("41"), "{between:#}");
    assert_eq!((&between["weight"], &between["max_megabytes_per_second"]), (&json!(41), &Value::Null));
    // 434 link files have weight 13 and 3472 weight 41 (`grep -h weight nodes/*/io_links/*/properties | sort | uniq -c`), a
    // pair has two.
    let count =
        |kind: &str| answer["links"].as_array().unwrap().iter().filter(|link| link["kind"] == kind).count();
    assert_eq!((count("card"), count("xgmi")), (217, 1_736));
    assert_eq!(problems(&answer), Vec::<&str>::new());
}

#[test]
fn a_matrix_of_cards_and_a_tree_of_partitions() {
    let machine = captures::mi300x(XcpNames::Dot);
    insta::assert_snapshot!(shown(&machine, &[]));
    insta::assert_snapshot!(shown(&machine, &["--tree"]));
    let wide = shown(&machine, &["-o", "wide"]);
    // Of a row: the GPU itself, 7 others of its card, 55 of other cards.
    let words: Vec<&str> = wide.lines().nth(1).unwrap().split_whitespace().collect();
    let count = |word: &str| words.iter().filter(|found| **found == word).count();
    assert_eq!((count("X"), count("CARD"), count("XGMI")), (1, 7, 55), "{words:?}");
}

/// The captured machines have one GPU each, KFD's links to the CPU, or none. The bridges above the GPUs are invented.
#[test]
fn machines_with_one_card_have_no_links() {
    for (name, machine) in captures::ALL.into_iter().filter(|(name, _)| *name != "mi300x-cpx-kfd") {
        let answer = answer(&machine());
        assert_eq!((&answer["links"], &answer["hives"]), (&json!([]), &json!([])), "{name}");
        assert_eq!(problems(&answer), Vec::<&str>::new(), "{name}");
    }
    insta::assert_snapshot!(shown(&captures::phoenix_beside_rtx4080(), &["--tree"]));
    assert_eq!(shown(&captures::rtx4080(0, 128), &[]), "No AMD GPU on the PCI bus of this machine.\n");
    assert_eq!(shown(&Machine::new(), &["--tree"]), "No GPU on the PCI bus of this machine.\n");
}

#[test]
fn whole_cards_have_hops_and_bandwidth() {
    // kfd_fill_gpu_xgmi_link_to_gpu: 15 for each hop; of an MI250X, 50 GB/s a link, four links between two.
    let whole =
        answer(&linked(&properties(11, 1, 2, 15, (50_000, 200_000)), &properties(11, 2, 1, 15, (0, 0))));
    assert_eq!(
        link(&whole, 0, 1),
        json!({
            "gpus": [0, 1], "kind": "xgmi", "hops": 1, "pcie": "PHB", "weight": 15,
            "min_megabytes_per_second": 50_000, "max_megabytes_per_second": 200_000,
            "peer_access": true, "unknown": {},
        })
    );
    let two = linked(&properties(11, 1, 2, 30, (0, 0)), &properties(11, 2, 1, 30, (0, 0)));
    assert_eq!(link(&answer(&two), 0, 1)["hops"], 2);
    insta::assert_snapshot!(shown(
        &linked(&properties(11, 1, 2, 15, (50_000, 200_000)), &properties(11, 2, 1, 15, (50_000, 200_000))),
        &[]
    ));
}

#[test]
fn pcie_goes_through_the_nearest_that_both_are_below() {
    let kind = |machine: &Machine| {
        let link = link(&answer(machine), 0, 1);
        assert_eq!(link["kind"], "pcie", "{link:#}");
        link["pcie"].as_str().unwrap().to_owned()
    };
    // Root ports of one host bridge.
    assert_eq!(kind(&neighbours()), "PHB");
    // Two functions below one bridge.
    assert_eq!(kind(&pair("0000:03:00.0", "0000:00:01.1", "0000:03:01.0", "0000:00:01.1")), "PIX");
    // Host bridges of one NUMA node, of two, and of which the kernel names none.
    let apart = || pair("0000:03:00.0", "0000:00:01.1", "0000:83:00.0", "0000:80:01.1");
    assert_eq!(kind(&apart()), "NODE");
    let far = |node: &str| apart().put("/sys/bus/pci/devices/0000:83:00.0/numa_node", node);
    assert_eq!(kind(&far("1\n")), "SYS");
    let unknown = link(&answer(&far("-1\n")), 0, 1);
    assert_eq!((&unknown["kind"], &unknown["pcie"]), (&Value::Null, &Value::Null));
    assert!(unknown["unknown"]["pcie"].as_str().unwrap().contains("-1"), "{unknown:#}");
    // A machine with one NUMA node names none for its cards.
    let one = far("-1\n").put("/sys/devices/system/node/online", "0\n");
    assert_eq!(kind(&one), "NODE");
}

/// A switch as servers have it: root port, upstream port, and a downstream port for each card.
const SWITCH: &str = "0000:00:01.1/0000:01:00.0";

/// On the card at the end is a switch of AMD's own (vendor 1002), or a second one of the machine's.
#[test]
fn switches_of_the_machine_count_and_those_of_cards_do_not() {
    let pcie = |bridges: &str, amds: &[&str]| {
        let first = format!("{SWITCH}/0000:02:00.0");
        let machine = pair("0000:03:00.0", &first, "0000:07:00.0", &format!("{SWITCH}/{bridges}"));
        link(&answer(&with_vendor(machine, amds)), 0, 1)["pcie"].clone()
    };
    assert_eq!(pcie("0000:02:01.0", &[]), "PIX");
    let deeper = "0000:02:01.0/0000:05:00.0/0000:06:00.0";
    assert_eq!(pcie(deeper, &[]), "PXB");
    assert_eq!(pcie(deeper, &["0000:05:00.0", "0000:06:00.0"]), "PIX");
}

/// Makes bridges AMD's graphics division's.
fn with_vendor(machine: Machine, bridges: &[&str]) -> Machine {
    bridges.iter().fold(machine, |machine, bridge| {
        machine.put(&format!("/sys/bus/pci/devices/{bridge}/vendor"), "0x1002\n")
    })
}

#[test]
fn each_way_over_pcie_has_its_word_and_each_place_its_branch() {
    let below = |bridges: &str| format!("{SWITCH}/{bridges}");
    let machine = on_bus(&[
        ("0000:03:00.0", &below("0000:02:00.0"), 0),
        ("0000:06:00.0", &below("0000:02:01.0/0000:04:00.0/0000:05:00.0"), 0),
        ("0000:09:00.0", &below("0000:02:02.0/0000:07:00.0/0000:08:00.0"), 0),
        ("0000:0b:00.0", "0000:00:02.1", 0),
        ("0000:43:00.0", "0000:40:01.1", 0),
        ("0000:83:00.0", "0000:80:01.1", 1),
    ]);
    let upstream = "/sys/bus/pci/devices/0000:04:00.0";
    let machine = with_vendor(machine, &["0000:04:00.0", "0000:05:00.0"])
        .put(&format!("{upstream}/current_link_speed"), "32.0 GT/s PCIe\n")
        .put(&format!("{upstream}/current_link_width"), "16\n");
    insta::assert_snapshot!("each_way_over_pcie", shown(&machine, &[]));
    insta::assert_snapshot!("each_way_over_pcie_as_a_tree", shown(&machine, &["--tree"]));
}

#[test]
fn a_branch_has_the_cpus_that_all_its_cards_name() {
    let tree = |machine: &Machine| answer(machine)["tree"][0]["local_cpus"].clone();
    assert_eq!(tree(&neighbours()), "0-7");
    // No node is known of either, as they may be near different CPUs.
    let list = "/sys/bus/pci/devices/0000:04:00.0/local_cpulist";
    assert_eq!(tree(&neighbours().put(list, "8-15\n")), Value::Null);
    assert_eq!(tree(&neighbours().remove(list)), "0-7");
}

#[test]
fn what_is_unknown_of_numa_has_its_reason_below() {
    let file = |card: &str, name: &str| format!("/sys/bus/pci/devices/0000:{card}:00.0/{name}");
    let machine = neighbours()
        .put(&file("03", "numa_node"), "-1\n")
        .put(&file("04", "numa_node"), "-1\n")
        .remove(&file("04", "local_cpulist"));
    let text = shown(&machine, &[]);
    assert!(text.contains("\n? 0-1: /sys/bus/pci/devices/*/numa_node "), "{text}");
    assert!(text.contains("\n? 1: /sys/bus/pci/devices/*/local_cpulist is not there\n"), "{text}");
}

#[test]
fn of_links_that_contradict_each_other_those_of_two_types_are_unknown() {
    let there = properties(11, 1, 2, 15, (0, 0));
    // In one direction alone.
    let machine = neighbours().put(&format!("{NODES}/1/io_links/0/properties"), there.as_str());
    assert_eq!(link(&answer(&machine), 0, 1)["kind"], "xgmi");
    // XGMI there and PCIe back.
    let machine = linked(&there, &properties(2, 2, 1, 40, (0, 0)));
    let two = link(&answer(&machine), 0, 1);
    assert_eq!(two["kind"], Value::Null);
    assert_eq!(two["unknown"]["kind"], "KFD names a link of type 11 from GPU 0 to GPU 1, and of type 2 back");
    // To itself, and to a node that is not there.
    let machine = linked(&properties(11, 1, 1, 15, (0, 0)), &properties(11, 2, 9, 15, (0, 0)));
    assert_eq!(link(&answer(&machine), 0, 1)["kind"], "pcie");
}

#[test]
fn what_cannot_be_read_of_links_is_unknown_with_its_reason() {
    let whole = properties(11, 1, 2, 15, (0, 0));
    for (bad, reason) in [
        ("", "is empty"),
        ("node_to 2\n", "names no type of the link"),
        ("type 11\n", "names no node_to of the link"),
        ("type eleven\nnode_to 2\n", "\"eleven\", not a type"),
        ("type 11\nnode_to 99999999999\n", "not a node"),
        ("type 11\nnode_to 2\nweight -1\n", "\"-1\", not a weight"),
        ("type 11\nnode_to 2\nmax_bandwidth 1e3\n", "\"1e3\", not a max_bandwidth"),
        ("type 11\nnode_to 2\n\u{1b}[31m\n", "is not text"),
    ] {
        // The other side says what this one cannot.
        let half = answer(&linked(bad, &properties(11, 2, 1, 15, (0, 0))));
        assert_eq!(link(&half, 0, 1)["kind"], "xgmi", "{bad:?}");
        assert!(problems(&half)[0].contains(reason), "{bad:?}: {half:#}");
        let none = answer(&linked(bad, bad));
        let found = link(&none, 0, 1);
        assert_eq!((&found["kind"], &found["pcie"]), (&Value::Null, &json!("PHB")), "{bad:?}");
        assert!(found["unknown"]["kind"].as_str().unwrap().contains(reason), "{bad:?}: {found:#}");
    }
    // Missing properties that are no contradiction: nothing is made of them.
    let bare = link(&answer(&linked("type 11\nnode_to 2\n", "type 11\nnode_to 1\n")), 0, 1);
    assert_eq!((&bare["kind"], &bare["hops"], &bare["weight"]), (&json!("xgmi"), &Value::Null, &Value::Null));
    assert_eq!(bare["unknown"]["hops"], "KFD gives the link no weight");
    // The folder is gone: both nodes, then KFD as a whole.
    let machine = linked(&whole, &whole);
    let no_folders =
        machine.clone().remove(&format!("{NODES}/1/io_links")).remove(&format!("{NODES}/2/io_links"));
    let text = shown(&no_folders, &[]);
    assert!(text.contains("\n? 0 and 1: "), "{text}");
    assert!(text.contains("io_links is not there"), "{text}");
    let found = link(&answer(&machine.remove("/sys/devices/virtual/kfd")), 0, 1);
    assert!(found["unknown"]["kind"].as_str().unwrap().starts_with("KFD does not know GPU 0"), "{found:#}");
}

#[test]
fn peer_access_over_pcie_is_what_kfd_offers() {
    let path = |node: u32| format!("{NODES}/{node}/p2p_links/0/properties");
    let offered = neighbours()
        .put(&path(1), properties(2, 1, 2, 40, (312, 64_000)))
        .put(&path(2), properties(2, 2, 1, 40, (312, 64_000)));
    let found = link(&answer(&offered), 0, 1);
    assert_eq!((&found["kind"], &found["peer_access"]), (&json!("pcie"), &json!(true)));
    assert_eq!(found["max_megabytes_per_second"], 64_000);
    // KFD has the folders and names no path; an older kernel has none.
    assert_eq!(link(&answer(&neighbours()), 0, 1)["peer_access"], false);
    let old = neighbours().remove(&format!("{NODES}/1/p2p_links")).remove(&format!("{NODES}/2/p2p_links"));
    assert_eq!(link(&answer(&old), 0, 1)["peer_access"], Value::Null);
}

/// Its place on the bus and KFD's links are known without it; its own link to the machine would wake it.
#[test]
fn a_suspended_card_is_not_asked() {
    let devices = "/sys/bus/pci/devices/0000:03:00.0";
    let machine = linked(&properties(11, 1, 2, 15, (0, 0)), &properties(11, 2, 1, 15, (0, 0)))
        .put(&format!("{devices}/power/runtime_status"), "suspended\n")
        .put(&format!("{devices}/current_link_speed"), "16.0 GT/s PCIe\n");
    let answer = answer(&machine);
    assert_eq!(link(&answer, 0, 1)["kind"], "xgmi");
    let card = &answer["tree"][0]["children"][0]["children"][0]["children"][0];
    assert_eq!((&card["pci"], &card["link_transfers_per_second"]), (&json!("0000:03:00.0"), &Value::Null));
    assert!(card["unknown"].as_str().unwrap().contains("suspended"), "{card:#}");
}

/// kgd2kfd_device_init gives a partitioned card without XGMI its place on the bus (0x0300) as a hive.
#[test]
fn a_place_on_the_bus_is_no_hive() {
    let node = |id: u32, render: u32, number: u8| {
        KfdNode::gpu(id, 0x74a1, 90_402).at("0000:03:00.0").partition(number).render(render)
    };
    let machine = Machine::new()
        .module(Module::new("amdgpu"))
        .gpu(Gpu::amd("0000:03:00.0", 0x74a1).card(0).render(128).partition(1, 129))
        .kfd(
            Kfd::new(511)
                .node(node(1, 128, 0).property("hive_id", 0x0300))
                .node(node(2, 129, 1).property("hive_id", 0x0300)),
        );
    let answer = answer(&machine);
    assert_eq!((&answer["hives"], &link(&answer, 0, 1)["kind"]), (&json!([]), &json!("card")));
}

#[test]
fn tables_fit_and_many_cards_stand_in_blocks() {
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    // Eight cards in 80 columns, whatever their partitions.
    for partitions in [1, 8] {
        let text = shown(&Machine::instinct_linked(8, partitions), &[]);
        assert!(widest(&text) <= 80, "{text}");
    }
    let text = shown(&Machine::instinct_linked(24, 1), &[]);
    assert!(widest(&text) <= 100, "{text}");
    // Each row three times: ten columns, ten, and four.
    assert_eq!(text.matches("\n23 ").count(), 3, "{text}");
}

#[test]
fn the_document_shows_what_is_printed() {
    let document = include_str!("../../../docs/topology.md");
    let matrix = shown(&captures::mi300x(XcpNames::Dot), &[]);
    assert!(document.contains(&format!("```\n$ rocworker topology\n{matrix}```\n")), "{matrix}");
    let tree = shown(&captures::phoenix_beside_rtx4080(), &["--tree"]);
    assert!(document.contains(&format!("```\n$ rocworker topology --tree\n{tree}```\n")), "{tree}");
}

/// 64 partitions have 64 * 63 files of links.
#[test]
fn four_thousand_links_are_read_in_a_moment() {
    let root = scratch();
    Machine::instinct_linked(8, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    let quickest = |command: &str| {
        let run = || {
            let started = Instant::now();
            let output =
                Command::new(ROCWORKER).arg("--root").arg(root.path()).arg(command).output().unwrap();
            assert!(output.status.success());
            started.elapsed()
        };
        (0..5).map(|_| run()).min().unwrap()
    };
    let (detect, topology) = (quickest("detect"), quickest("topology"));
    eprintln!("detect {detect:?}, topology {topology:?}");
    // Unoptimized, and beside other tests.
    assert!(topology < detect + Duration::from_secs(1), "detect {detect:?}, topology {topology:?}");
}
