//! What a start of the machine leaves of what engines were told at the last one, where it cannot be said what they should be
//! told now.

use layout::{Gpu, Kfd, KfdNode, Machine, Module};

use crate::setup::laid::Laid;

const CONFIG: &str = "etc/rocworker/config.yaml";
const SPEC: &str = "etc/cdi/amd.json";
const TAGS: &str = "etc/rocworker/concourse.env";
const POLICY: &str = "etc/rocworker/wrapper.json";
const WITHOUT_WAIT: &str = "boot: {wait-s: 0}\n";

/// The demo's card in eight partitions.
const PARTED: &str = "0000:c1:00.0";

const ONE: &str = "0000:03:00.0";
const OTHER: &str = "0000:43:00.0";

/// Cards by their address, and the number of their render node; each has a uuid.
fn machine(cards: &[(&str, u32)]) -> Machine {
    let mut machine = Machine::new().module(Module::new("amdgpu"));
    let mut kfd = Kfd::new(241).node(KfdNode::cpu(64));
    for (address, render) in cards {
        let id = if *address == ONE { 1 } else { 2 };
        let gpu = Gpu::amd(address, 0x7448).card(render - 127).render(*render);
        machine = machine.gpu(gpu.attribute("unique_id", &format!("{id:016x}")));
        let node = KfdNode::gpu(40_000 + render, 0x7448, 110_000).at(address).render(*render);
        kfd = kfd.node(node.property("unique_id", id));
    }
    machine.kfd(kfd)
}

/// A Concourse worker with two cards that was set up by this configuration.
fn applied(config: &str) -> Laid {
    let laid = Laid::out(&machine(&[(ONE, 128), (OTHER, 129)]), config);
    laid.put("etc/group", "root:x:0:\nrender:x:992:\n");
    laid.put_worker("linux");
    for program in ["var/lib/concourse/bin/concourse", "var/lib/concourse/bin/containerd"] {
        laid.put_program(program, "");
    }
    laid.put(
        "var/lib/dpkg/status",
        "Package: containerd\nStatus: install ok installed\nVersion: 1.7.24~ds1-6\nArchitecture: amd64\n\n",
    );
    laid.run(&["apply"]).success();
    assert!(laid.text(TAGS).contains("gpu-count=2"), "{}", laid.text(TAGS));
    laid
}

/// The next start of a machine, with these cards.
fn started(cards: &[(&str, u32)], before: &Laid) -> Laid {
    let laid = Laid::out(&machine(cards), "");
    laid.put_back(&before.all());
    laid
}

/// The render nodes that a device of the spec gives; none where there is no such device, or no spec.
fn given(laid: &Laid, device: &str) -> Vec<String> {
    let text = std::fs::read_to_string(laid.path(SPEC)).unwrap_or_else(|_| r#"{"devices": []}"#.to_owned());
    let spec: serde_json::Value = serde_json::from_str(&text).unwrap();
    let found = spec["devices"].as_array().unwrap().iter().find(|it| it["name"] == device);
    let nodes = found.map(|it| it["containerEdits"]["deviceNodes"].as_array().unwrap().clone());
    let paths = nodes.unwrap_or_default().into_iter().map(|it| it["path"].as_str().unwrap().to_owned());
    paths.filter_map(|path| path.strip_prefix("/dev/dri/render").map(str::to_owned)).collect()
}

/// Where a mistake is, what stands there, what is said of it, and the exit code.
const SLIPS: [(&str, &str, &str, i32); 6] = [
    (CONFIG, "boot: {wait-s: 0}\ngpu-device-ids: 77\n", "gpu-device-ids names \"77\"", 2),
    (CONFIG, "no-such-key: 1\n", "config.yaml:1: no-such-key is no key", 2),
    (CONFIG, "", "is empty or not there", 2),
    ("etc/rocworker/templates/cdi/amd.json", "{% if broken", "cdi/amd.json", 1),
    ("etc/rocworker/templates/wrapper.json", "{% if broken", "wrapper.json", 1),
    ("etc/rocworker/templates/udev/70-amdgpu.rules", "{% if broken", "70-amdgpu.rules", 1),
];

/// Begins the machine with a mistake.
fn slipped(laid: &Laid, (path, text, problem, code): (&str, &str, &str, i32)) {
    laid.put(path, text);
    let (ended, said) = laid.fails(&["boot"]);
    assert!(ended == code && said.contains(problem), "{path}: {text:?}: {ended} {said}");
}

#[test]
fn a_slip_at_a_start_takes_nothing_that_is_true() {
    for slip in SLIPS {
        let laid = applied(WITHOUT_WAIT);
        let before = [SPEC, TAGS, POLICY].map(|path| laid.text(path));
        slipped(&laid, slip);
        assert_eq!([SPEC, TAGS, POLICY].map(|path| laid.text(path)), before, "{slip:?}");
        let times = laid.times();
        slipped(&laid, slip);
        let others = |path: &std::path::Path| !laid.path(slip.0).starts_with(path);
        let now: Vec<_> = laid.times().into_iter().filter(|(path, _)| others(path)).collect();
        assert_eq!(now, times.into_iter().filter(|(path, _)| others(path)).collect::<Vec<_>>(), "{slip:?}");
    }
}

#[test]
fn what_names_a_card_that_has_gone_goes_and_the_others_stay() {
    for slip in SLIPS {
        let before = applied(WITHOUT_WAIT);
        let laid = started(&[(OTHER, 129)], &before);
        slipped(&laid, slip);
        for (device, expected) in
            [("0", &[][..]), (ONE, &[]), ("1", &["D129"]), (OTHER, &["D129"]), ("all", &["D129"])]
        {
            assert_eq!(given(&laid, device), expected, "{slip:?}: {device}: {}", laid.text(SPEC));
        }
        assert!(!laid.path(TAGS).exists(), "{slip:?}: two GPUs are there no more");
        assert_eq!(laid.text(POLICY), before.text(POLICY), "it names cards by their address");
        // Once it is mended, the next apply finds nothing of it in its way.
        std::fs::remove_file(laid.path(slip.0)).unwrap();
        laid.put(CONFIG, WITHOUT_WAIT);
        let applied = laid.json(&["apply"]);
        assert_eq!(applied["contested"], serde_json::json!([]), "{applied:#}");
        assert_eq!((given(&laid, "0"), laid.text(TAGS).contains("gpu-count=1")), (vec!["D129".into()], true));
    }
}

/// The kernel hands out the nodes' names anew at each start.
#[test]
fn what_is_another_cards_node_by_now_goes() {
    for slip in SLIPS {
        let before = applied(WITHOUT_WAIT);
        for cards in [&[(OTHER, 128), (ONE, 129)][..], &[(OTHER, 128)]] {
            let laid = started(cards, &before);
            slipped(&laid, slip);
            assert!(!laid.path(SPEC).exists(), "{slip:?} {cards:?}: {}", laid.text(SPEC));
            assert!(!laid.path(TAGS).exists());
        }
    }
}

#[test]
fn of_cards_that_were_chosen_those_that_are_there_stay() {
    let before = applied(&format!("{WITHOUT_WAIT}gpu-device-ids: [\"{ONE}\", \"{OTHER}\"]\n"));
    let laid = started(&[(OTHER, 129)], &before);
    let (code, said) = laid.fails(&["boot"]);
    assert!(code == 2 && said.contains(&format!("gpu-device-ids names \"{ONE}\"")), "{said}");
    assert_eq!((given(&laid, "all"), given(&laid, ONE)), (vec!["D129".into()], vec![]));
}

/// The name that stays a GPU's own is another one where the configuration leaves addresses out. An index is nobody's own: what
/// has it at the next start may be a card that was never chosen.
#[test]
fn a_spec_that_names_no_address_is_held_against_uuids_and_by_indexes_alone_nothing_is_true() {
    let before = applied(&format!("{WITHOUT_WAIT}cdi: {{names: [index]}}\n"));
    for cards in [&[(ONE, 128), (OTHER, 129)][..], &[(OTHER, 129)]] {
        let laid = started(cards, &before);
        slipped(&laid, SLIPS[1]);
        assert!(!laid.path("etc/cdi/amd.json").exists(), "{cards:?}");
    }
    for (names, of_other) in [("[uuid]", Some("D129")), ("[index, uuid]", Some("D129"))] {
        let before = applied(&format!("{WITHOUT_WAIT}cdi: {{names: {names}}}\n"));
        for (cards, expected) in [
            (&[(ONE, 128), (OTHER, 129)][..], vec!["D128", "D129"]),
            (&[(ONE, 128)], vec!["D128"]),
            // By now it is the first.
            (&[(OTHER, 129)], of_other.into_iter().collect()),
        ] {
            let laid = started(cards, &before);
            slipped(&laid, SLIPS[1]);
            assert_eq!(given(&laid, "all"), expected, "{names} {cards:?}");
        }
    }
}

#[test]
fn of_a_card_in_partitions_those_stay_that_are_there() {
    let laid = Laid::demo(WITHOUT_WAIT);
    laid.run(&["apply"]).success();
    let before = given(&laid, PARTED);
    assert_eq!(before.len(), 8, "{before:?}");
    let recorded = laid.text("capture.json");
    laid.put("capture.json", &recorded.replace("/dev/dri/renderD133\"", "/dev/dri/renderD233\""));
    slipped(&laid, SLIPS[0]);
    let expected: Vec<_> = before.into_iter().filter(|node| node != "D133").collect();
    assert_eq!(given(&laid, PARTED), expected);
}

/// What somebody has written there is unmanaged.
#[test]
fn a_spec_that_somebody_has_changed_stays_as_it_is() {
    let before = applied(WITHOUT_WAIT);
    let laid = started(&[(OTHER, 129)], &before);
    let theirs = laid.text(SPEC) + "\n";
    laid.put(SPEC, &theirs);
    slipped(&laid, SLIPS[1]);
    assert_eq!(laid.text(SPEC), theirs);
}
