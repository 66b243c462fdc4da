//! `partition plan`: what it says, and what it refuses.

use inventory::partitioning::Compute;
use support::fuse;
use support::partitioned::Partitioned;

use super::machine::{PROFILES, configure, refused, run, served, text};

fn refusal(machine: &Partitioned, profile: &str) -> String {
    configure(machine, &format!("partitions: {{profiles: {{a: [{profile}]}}}}\n"));
    let output = run(machine.root(), "partition plan a");
    assert_eq!(output.status.code(), Some(1), "{profile}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("✗ ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn real_each_profile_that_cannot_be_is_refused_with_its_reason() {
    if !fuse::require() {
        return;
    }
    let machine = served(3);
    machine.change(|driver| driver.cards[2].is_virtual = true);
    let only = "{cards: \"0000:25:00.0\", skip: true}";
    for (profile, expected) in [
        ("{cards: MI300A, compute: SPX}", "MI300A is no card of this machine: it has MI300X"),
        ("{cards: \"0000:99:00.0\", compute: SPX}", "0000:99:00.0 is no card of this machine: it has MI300X"),
        (
            "{cards: all, compute: CPX, count: 8}, {cards: \"0000:25:00.0\", skip: true}",
            "all means 3 cards of this machine, and the profile's count is 8",
        ),
        (
            "{cards: \"0000:05:00.0\", compute: TPX}",
            "0000:05:00.0 does not have TPX: its modes are SPX, DPX, QPX, CPX",
        ),
        (
            "{cards: \"0000:05:00.0\", compute: CPX, memory: NPS8}, {cards: all, skip: true}",
            "0000:05:00.0 does not have NPS8: its memory modes are NPS1, NPS4",
        ),
        (
            &format!("{{cards: MI300X, compute: SPX, memory: NPS4}}, {only}"),
            "0000:05:00.0: the kernel does not allow SPX with NPS4; give the entry `memory: NPS1`\n0000:15:00.0: the kernel \
             does not allow SPX with NPS4; give the entry `memory: NPS1`",
        ),
        (
            "{cards: \"0000:05:00.0\", compute: CPX, memory: NPS4}",
            "0000:05:00.0 would have NPS4 and 0000:15:00.0 NPS1: XGMI links both, and a hive has one memory mode, also of a \
             card that the profile skips",
        ),
        (
            "{cards: \"0000:25:00.0\", compute: CPX}",
            "0000:25:00.0: root may not write current_compute_partition, as with a virtual function, whose host sets its modes",
        ),
        (
            "{cards: all, compute: CPX}, {cards: all, skip: true}",
            "two entries mean 0000:05:00.0, the second by `cards: all`: keep one",
        ),
    ] {
        let found = refusal(&machine, profile);
        assert!(found.contains(expected), "{profile}: {found}");
    }
}

#[test]
fn real_a_name_without_a_profile_is_a_wrong_argument() {
    if !fuse::require() {
        return;
    }
    let machine = served(1);
    for (config, line, expected) in [
        ("", "partition plan", "name a profile: config.yaml has no partitions.profile"),
        ("", "partition plan x", "x is no profile: config.yaml has no partitions.profiles"),
        (PROFILES, "partition plan x", "x is no profile: config.yaml has cores, one, quarters, whole"),
        (
            "partitions: {profile: x}\n",
            "partition plan",
            "partitions.profile is \"x\", and partitions.profiles has none",
        ),
    ] {
        configure(&machine, config);
        let (code, stderr) = refused(machine.root(), line);
        assert_eq!(code, Some(2), "{config}: {stderr}");
        assert!(stderr.contains(expected), "{config}: {stderr}");
    }
}

#[test]
fn real_steps_name_what_stops_and_the_cards_that_a_reload_takes_along() {
    if !fuse::require() {
        return;
    }
    let machine = served(3);
    machine.change(|driver| {
        driver.processes.push(4711);
        driver.cards[1].compute = Compute::Dpx;
        // The third card is in no hive.
        driver.cards[2].hive = 0;
        driver.cards[2].compute = Compute::Qpx;
    });
    let most =
        "    most: [{cards: all, compute: CPX, memory: NPS4}, {cards: \"0000:25:00.0\", skip: true}]\n";
    configure(&machine, &format!("{PROFILES}{most}  units: [vllm.service]\n"));
    let mut said = String::new();
    for profile in ["cores", "quarters", "one", "whole", "most"] {
        said += &format!("$ rocworker partition plan {profile}\n");
        said += &text(machine.root(), &format!("partition plan {profile}"));
    }
    insta::assert_snapshot!("plan", said);
    assert_eq!(machine.log(), [""; 0], "a plan writes nothing");
}

#[test]
fn real_a_list_that_says_not_supported_refuses_a_memory_mode_and_allows_a_compute_mode() {
    if !fuse::require() {
        return;
    }
    let machine = served(2);
    machine.change(|driver| driver.lists_no_memory_modes = true);
    let found = refusal(&machine, "{cards: all, compute: CPX, memory: NPS4}");
    assert!(found.contains("0000:05:00.0 does not have NPS4: its memory modes are NPS1"), "{found}");
    configure(&machine, PROFILES);
    assert!(text(machine.root(), "partition plan cores").contains("set the compute mode"));
}

/// The node labeller of AMD's GPU Operator writes this above its line.
#[test]
fn real_a_memory_mode_is_refused_on_a_node_whose_driver_kmm_loads() {
    if !fuse::require() {
        return;
    }
    let machine = served(2);
    let line = "# blacklist driven by amd gpu operator\nblacklist amdgpu\n".to_owned();
    machine.put(&std::collections::BTreeMap::from([("etc/modprobe.d/blacklist-amdgpu.conf", line)]));
    let found = refusal(&machine, "{cards: all, compute: CPX, memory: NPS4}");
    assert!(found.contains("which the AMD GPU Operator's KMM does on this node"), "{found}");
    configure(&machine, PROFILES);
    assert!(text(machine.root(), "partition plan cores").contains("set the compute mode"));
}

#[test]
fn real_a_plan_names_containers_that_hold_gpus_and_do_not_compute() {
    if !fuse::require() {
        return;
    }
    let machine = served(2);
    let lease = serde_json::json!({
        "schema_version": 1, "root": "/run/runc", "id": "idle", "kind": "counted", "since": "2026-11-29T07:13:46Z",
        "gpu": {"index": 1, "pci": "0000:15:00.0", "render": "/dev/dri/renderD136"},
        "creator": {"pid": 7, "start_time": 100, "boot_id": "this"}, "cgroups_path": "/c/x", "idle_since_ms": null,
    });
    machine.put(&std::collections::BTreeMap::from([
        ("run/rocworker/leases/renderD136", lease.to_string()),
        ("proc/7/stat", format!("7 (x) S {}100 0\n", "0 ".repeat(18))),
        ("proc/7/cgroup", "0::/\n".to_owned()),
        ("proc/sys/kernel/random/boot_id", "this\n".to_owned()),
    ]));
    for folder in ["run/rocworker", "run/rocworker/leases"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(machine.root().join(folder), mode).unwrap();
    }
    let said = text(machine.root(), "partition plan cores");
    assert!(said.contains("hold GPUs and do not compute: idle see other devices"), "{said}");
    assert!(!text(machine.root(), "partition plan one").contains("idle"));
    // renderD136 is the card's first node in every mode: only when the card is gone is the lease's GPU gone.
    let lease = |machine: &Partitioned| {
        super::machine::answer(machine.root(), "lease list")["leases"][0]["gone"].clone()
    };
    assert_eq!(lease(&machine), false);
    machine.change(|driver| driver.cards.truncate(1));
    assert_eq!(lease(&machine), true);
}
