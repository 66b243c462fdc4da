//! docs/doctor.md quotes doctor: each of its sentences is what doctor prints of a machine with that symptom.

use std::os::unix::fs::PermissionsExt as _;

use layout::{Entry, Gpu, Machine, Module};
use serde_json::{Value, json};
use support::document::text;
use support::laid::WRAPPER;
use support::partitioned::Driver;
use support::real;
use support::stage::{Stage, stdout};

use crate::doctor::kfd::{ATOMICS, kmsg, left_out, without_kfd};
use crate::doctor::kubernetes::{BY_CDI, CHECKPOINT, K3S_1_7, POD, checkpoint, given, node};
use crate::doctor::*;

/// Where a processor's own graphics are.
const OWN_GRAPHICS: &str = "0000:0f:00.0";

/// What of a machine is a program.
const PROGRAMS: [&str; 3] =
    ["/usr/lib/rocworker/runc-amd-wrapper", "/usr/sbin/dockerd", "/var/lib/concourse/bin/concourse"];

/// The component and the sentence of each row's second cell, in order.
fn quoted() -> Vec<(String, String)> {
    let document = text("docs/doctor.md");
    let (_, table) = document.split_once("\n## What you see\n").unwrap();
    let (table, _) = table.split_once("\n#").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(2);
    let said = |row: &str| {
        let [_, _, says, does, _] = row.split(" | ").flat_map(|part| part.split('|')).collect::<Vec<_>>()[..]
        else {
            panic!("{row}")
        };
        assert!(!does.trim().is_empty(), "{row}");
        let (component, sentence) = says.trim().split_once(": `").unwrap();
        (component.to_owned(), sentence.strip_suffix('`').unwrap().to_owned())
    };
    rows.map(said).collect()
}

/// Whether a check of that component begins with the sentence.
#[track_caller]
fn assert_says(answer: &Value, (component, sentence): &(String, String)) {
    let says = |check: &&Value| {
        check["name"] == **component && check["evidence"].as_str().unwrap().starts_with(sentence)
    };
    assert!(checks(answer).iter().any(|check| says(&check)), "{component}: {sentence}: {answer:#}");
}

/// A machine of each symptom that doctor can see beneath `--root`, in the order of the table.
fn machines() -> Vec<Machine> {
    let unloaded = || with_groups(Machine::new().gpu(Gpu::amd(ADDRESS, 0x7448).unbound()));
    let worker =
        "[Service]\nEnvironmentFile=/etc/worker.env\nExecStart=/var/lib/concourse/bin/concourse worker\n";
    let one = || {
        let machine = Machine::new().module(Module::new("amdgpu")).gpu(card(ADDRESS, 0, 128));
        with_groups(machine).kfd(kfd())
    };
    let one_in_lxd = one()
        .put("/dev/lxd/sock", "")
        .remove("/dev/kfd")
        .remove("/dev/dri/card0")
        .remove("/dev/dri/renderD128");
    let on_kubernetes = || node(good());
    let divided: Vec<String> =
        (0..7).map(|number| format!("amdgpu_xcp_{number}")).chain([ADDRESS.to_owned()]).collect();
    let with_wrapper = || good().put(PROGRAMS[0], WRAPPER);
    vec![
        with_groups(Machine::new()),
        unloaded(),
        with_groups(
            Machine::new().module(Module::new("amdgpu")).gpu(Gpu::amd(ADDRESS, 0x6811).card(0).render(128)),
        ),
        with_groups(Machine::new()).put("/dev/dxg", ""),
        one()
            .put("/run/systemd/container", "lxc\n")
            .put("/proc/sys/kernel/osrelease", "6.8.12-1-pve\n")
            .remove("/dev/kfd"),
        with_groups(Machine::new())
            .module(Module::new("amdgpu"))
            .gpu(card(ADDRESS, 0, 128))
            .gpu(Gpu::amd(OWN_GRAPHICS, 0x164e).card(1).render(129))
            .kfd(kfd().node(KfdNode::gpu(7129, 0x164e, 100_306).at(OWN_GRAPHICS).render(129))),
        good().put(
            "/etc/modprobe.d/blacklist-amdgpu.conf",
            "# blacklist driven by amd gpu operator\nblacklist amdgpu\n",
        ),
        good().put("/usr/local/bin/k3s", ""),
        on_kubernetes(),
        on_kubernetes(),
        on_kubernetes().put(CHECKPOINT, checkpoint(&json!({"amd.com/gpu": divided}), &Value::Null)),
        on_kubernetes()
            .put("/usr/local/bin/k3s", "")
            .put("/var/lib/rancher/k3s/agent/etc/containerd/config.toml", K3S_1_7)
            .put(CHECKPOINT, checkpoint(&Value::Null, &json!([given(POD, &Value::Null, BY_CDI)]))),
        on_kubernetes().put("/etc/kubernetes/node-feature-discovery/features.d", Entry::Directory),
        unloaded().put("/etc/modprobe.d/no-gpu.conf", "blacklist amdgpu\n"),
        with_groups(
            Machine::new().module(Module::new("amdgpu")).gpu(Gpu::amd(ADDRESS, 0x7448).driver("vfio-pci")),
        ),
        good().remove("/dev/kfd"),
        good().put("/dev/kfd", device(511, 0, 0, 0o600)),
        good()
            .put("/sys/fs/selinux/enforce", "1")
            .put("/sys/fs/selinux/booleans/container_use_devices", "0 0"),
        left_out(0x67df).put("/dev/kmsg", kmsg(&[ATOMICS])),
        left_out(0x6920).put("/dev/kmsg", kmsg(&["kfd kfd: amdgpu: TONGA  not supported in kfd"])),
        without_kfd().put("/boot/config-6.1.69-talos", "CONFIG_DRM=m\n# CONFIG_HSA_AMD is not set\n"),
        without_kfd().put("/sys/module/amdgpu/parameters/sched_policy", "9\n"),
        one_in_lxd,
        good(),
        with_wrapper().put(PROGRAMS[1], "").put(
            "/var/lib/dpkg/status",
            "Package: docker.io\nStatus: install ok installed\nVersion: 26.1.5\n",
        ),
        with_wrapper()
            .put("/etc/systemd/system/concourse-worker.service", worker)
            .put("/etc/worker.env", "CONCOURSE_RUNTIME=guardian\n")
            .put(PROGRAMS[2], ""),
        with_groups(Driver::new(1).machine()).put(
            "/etc/rocworker/config.yaml",
            "partitions: {profile: cores, profiles: {cores: [{cards: all, compute: CPX}]}}\n",
        ),
    ]
}

#[test]
fn each_sentence_of_the_troubleshooting_table_is_what_doctor_prints() {
    let quoted = quoted();
    assert_eq!(quoted.len(), 28, "{quoted:?}");
    let (tools, beneath_a_root): (Vec<_>, Vec<_>) = quoted.iter().partition(|(name, _)| name == "tools");
    assert_eq!(tools.len(), 1, "{quoted:?}");
    let machines = machines();
    assert_eq!(machines.len(), beneath_a_root.len());
    for (machine, said) in machines.iter().zip(beneath_a_root) {
        let root = scratch();
        machine.lay_out(root.path(), Nodes::Recorded).unwrap();
        for program in PROGRAMS.map(|program| root.path().join(program.trim_start_matches('/'))) {
            if program.exists() {
                fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        assert_says(&doctor_beneath(root.path()).1, said);
    }
}

#[test]
fn real_the_troubleshooting_table_says_what_doctor_prints_of_a_tool_that_is_not_installed() {
    if !real::require_root(&["unshare"]) {
        return;
    }
    let said = Stage::set(&Machine::demo()).shell(&format!("{PROGRAM} --output json doctor || [ $? = 3 ]"));
    let answer: Value = serde_json::from_str(&stdout(&said)).unwrap();
    assert_says(&answer, quoted().iter().find(|(component, _)| component == "tools").unwrap());
}
