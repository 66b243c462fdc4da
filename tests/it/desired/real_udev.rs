//! udev itself, Debian 13's, verifies the rules, and says what they do to the nodes of captured machines.

use crate::desired::wanted;

use std::path::Path;

use layout::{Machine, XcpNames};
use support::captures;
use support::real;
use support::release::Release;
use support::stage::{Stage, stdout};

/// What `cargo xtask test` unpacks: the verifier came with systemd 254, and Debian 12 has 252.
const UDEVADM: &str = "ROCWORKER_UDEVADM_TRIXIE";
const GROUPS: &str = "root:x:0:\nvideo:x:44:\nrender:x:992:\n";
const RULES: &str = "/etc/udev/rules.d/70-amdgpu.rules";
/// The rules that the system has beside rocworker's: who owns nodes by default, and which of them a person at the
/// machine may open.
const OTHERS: [&str; 3] = ["50-udev-default.rules", "70-uaccess.rules", "73-seat-late.rules"];

/// What the ClusterBloom text writes to the same path.
const EVERY_VENDORS: &str =
    "KERNEL==\"kfd\", MODE=\"0666\"\nSUBSYSTEM==\"drm\", KERNEL==\"renderD*\", MODE=\"0666\"\n";

/// A machine on a stage, with Debian 13's rules and one file more.
struct Udev {
    stage: Stage,
    udevadm: String,
}

impl Udev {
    fn on(udevadm: &Path, machine: &Machine, rules: &str, groups: &str) -> Self {
        let release = Release::of(udevadm);
        // udev asks nothing of KFD's topology, which is thousands of files.
        let machine =
            machine.clone().put("/etc/group", groups).remove("/sys/devices/virtual/kfd/kfd/topology");
        let stage = Stage::set(&machine);
        for name in OTHERS {
            let text = std::fs::read_to_string(release.file("usr/lib/udev/rules.d").join(name)).unwrap();
            stage.put(&format!("etc/udev/rules.d/{name}"), &text);
        }
        stage.put(RULES.trim_start_matches('/'), rules);
        // A laid-out sysfs is no sysfs to the kernel, which udev otherwise insists on.
        let udevadm = format!("SYSTEMD_DEVICE_VERIFY_SYSFS=0 {}", release.argv("usr/bin/udevadm").join(" "));
        Self { stage, udevadm }
    }

    /// Whether the verifier finds nothing, not even in style, and what it says.
    fn verify(&self) -> (bool, String) {
        let output = self.stage.shell(&format!("{} verify {RULES} 2>&1", self.udevadm));
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What udev gives the nodes of these devices, in /sys/class, when it first sees them.
    fn test<const N: usize>(&self, devices: [&str; N]) -> [Node; N] {
        let test =
            |device: &str| format!("echo @@; {} test --action=add /sys/class/{device} 2>&1\n", self.udevadm);
        // A stage takes longer to set than the tests on it.
        let said = stdout(&self.stage.shell(&devices.map(test).concat()));
        let mut said = said.split("@@\n").skip(1);
        devices.map(|device| Node::read(device, said.next().unwrap()))
    }
}

#[derive(Debug, PartialEq)]
struct Node {
    group: String,
    /// None where no rule sets one.
    mode: Option<u32>,
    /// Whether a line of 70-amdgpu.rules had a part in it.
    by_ours: bool,
    /// Whether a person who sits at the machine is let in beside the group.
    has_uaccess: bool,
}

impl Node {
    /// From what `udevadm test` prints.
    fn read(device: &str, said: &str) -> Self {
        let after = |heading: &str| said.lines().skip_while(|line| *line != heading).nth(1).map(str::trim);
        let devname = device.replace("drm/", "dri/").replace("kfd/kfd", "kfd");
        assert!(said.contains(&format!("DEVNAME=/dev/{devname}\n")), "{device}: {said}");
        Self {
            group: after("Device node group:").unwrap_or_else(|| panic!("{device}: {said}")).to_owned(),
            mode: after("Device node permission:").map(|mode| u32::from_str_radix(mode, 8).unwrap()),
            // One file of rules is rocworker's, whatever else sets.
            by_ours: said.contains("/70-amdgpu.rules:"),
            has_uaccess: said.contains(" RUN 'uaccess'"),
        }
    }
}

fn ours(mode: u32) -> Node {
    Node { group: "render (gid=992)".into(), mode: Some(mode), by_ours: true, has_uaccess: false }
}

/// As Debian's own rules have a render node.
fn theirs() -> Node {
    Node { by_ours: false, ..ours(0o660) }
}

fn seated(node: Node) -> Node {
    Node { has_uaccess: true, ..node }
}

fn rules(machine: &Machine, config: &str) -> String {
    wanted::text(&wanted::on(machine, config), RULES)
}

#[test]
fn real_udev_verifies_the_rules_and_tells_a_group_that_is_not_there() {
    let Some(udevadm) = real::require_root_and_built(UDEVADM, &["unshare"]) else { return };
    let machine = captures::phoenix();
    for config in ["", "permissions: open"] {
        let (well, said) = Udev::on(&udevadm, &machine, &rules(&machine, config), GROUPS).verify();
        assert!(well && said.contains("Success: 1"), "{said}");
        let without = wanted::text(&wanted::with_group(&machine, config, None), RULES);
        let (well, said) = Udev::on(&udevadm, &machine, &without, "root:x:0:\n").verify();
        assert!(well && said.contains("Success: 1"), "{said}");
    }
    // What is left out where there is no such group would be an error.
    let (well, said) = Udev::on(&udevadm, &machine, &rules(&machine, ""), "root:x:0:\n").verify();
    assert!(!well && said.contains("Unknown group 'render'"), "{said}");
}

#[test]
fn real_udev_gives_amds_nodes_the_rights_and_leaves_another_vendors_alone() {
    let Some(udevadm) = real::require_root_and_built(UDEVADM, &["unshare"]) else { return };
    // phoenix is card1 and renderD128, the NVIDIA card card0 and renderD129.
    let machine = captures::phoenix_beside_rtx4080();
    let devices = ["kfd/kfd", "drm/renderD128", "drm/renderD129", "drm/card0", "drm/card1"];
    let card = || Node { group: "video (gid=44)".into(), mode: None, ..seated(theirs()) };
    for (config, mode) in [("", 0o660), ("permissions: open", 0o666)] {
        let nodes = Udev::on(&udevadm, &machine, &rules(&machine, config), GROUPS).test(devices);
        assert_eq!(nodes, [ours(mode), seated(ours(mode)), seated(theirs()), card(), card()], "{config}");
    }
    // ClusterBloom's text at the same path opens the NVIDIA card's node too.
    let [_, _, nvidia, ..] = Udev::on(&udevadm, &machine, EVERY_VENDORS, GROUPS).test(devices);
    assert_eq!(nvidia, seated(ours(0o666)));
}

#[test]
fn real_udev_gives_partitions_the_rights_of_their_card_in_either_spelling() {
    let Some(udevadm) = real::require_root_and_built(UDEVADM, &["unshare"]) else { return };
    for names in [XcpNames::Dot, XcpNames::Underscore] {
        let machine = captures::mi300x(names);
        let udev = Udev::on(&udevadm, &machine, &rules(&machine, "permissions: open"), GROUPS);
        // The first card itself, its first and last further partition, and the last of all.
        let devices = ["drm/renderD128", "drm/renderD129", "drm/renderD135", "drm/renderD190"];
        for node in udev.test(devices) {
            assert_eq!(node, seated(ours(0o666)), "{names:?}");
        }
        // A rule for the driver alone would miss them: no driver is bound to a partition's device.
        let by_driver = "SUBSYSTEM==\"drm\", KERNEL==\"renderD*\", DRIVERS==\"amdgpu\", MODE=\"0666\"\n";
        let nodes =
            Udev::on(&udevadm, &machine, by_driver, GROUPS).test(["drm/renderD128", "drm/renderD129"]);
        assert_eq!(nodes, [seated(ours(0o666)), seated(theirs())], "{names:?}");
    }
}
