//! The real amdgpu module's /dev/kfd, in a machine with a distribution's kernel: what rocworker says of it, and who
//! may ask its driver through the wrapper and who may not. docs/dev/real-driver.md says what is real and what is not.

use serde_json::{Value, json};

use crate::machine::Machine;

const EPERM: &str = "open: 1";
const ENOENT: &str = "open: 2";

/// The output of a container's look: its nodes by path, then nodes that it made itself by their numbers.
fn look(kfd: &str, render: &str, by_number: [&str; 3]) -> String {
    let [kfd_made, render_made, card_made] = by_number;
    format!(
        "kfd {kfd}\nrender {render}\nkfd-by-number {kfd_made}\nrender-by-number {render_made}\n\
         card-by-number {card_made}"
    )
}

/// Everything that is held against one kernel, in one boot.
#[track_caller]
fn hold(machine: &Machine, kfd: &str) {
    what_is_there(machine, kfd);
    before_the_driver(machine);
    detect(machine);
    doctor(machine);
    for hierarchy in ["v2", "v1"] {
        containers(machine, hierarchy, kfd);
    }
    node_check(machine);
    task_check(machine, kfd);
}

/// The stage itself: two drivers answer, and the numbers are the kernel's.
#[track_caller]
fn what_is_there(machine: &Machine, kfd: &str) {
    assert_eq!(machine.said("release"), machine.release);
    assert_eq!(machine.answer("host-kfd").stdout.trim(), kfd);
    assert_eq!((machine.said("host-render"), machine.said("host-card")), ("drm vgem", "drm vgem"));
    assert!(machine.said("kfd-link").ends_with("/virtual/kfd/kfd"), "{}", machine.said("kfd-link"));
    let major: u32 = machine.said("kfd-major").parse().unwrap();
    assert_eq!(
        machine.said("nodes"),
        format!(
            "/dev/kfd {major:x}:0 660 104\n/dev/dri/renderD128 e2:80 660 104\n/dev/dri/card0 e2:0 660 44"
        )
    );
    machine.said("v1-mount");
}

/// The one PCI device of AMD's, as detect lists it in either state.
#[track_caller]
fn the_card(answer: &Value) -> &Value {
    let [card] = answer["gpus"].as_array().unwrap().as_slice() else { panic!("{answer:#}") };
    assert_eq!(card["pci"], "0000:00:05.0", "{answer:#}");
    assert_eq!(
        (&card["vendor"], &card["vendor_id"], &card["device_id"]),
        (&json!("amd"), &json!("1002"), &json!("7448"))
    );
    assert_eq!((&card["usable"], &card["driver"]), (&json!(false), &Value::Null), "{answer:#}");
    assert_eq!(
        (&card["card"], &card["render"], &card["kfd_node"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    card
}

#[track_caller]
fn before_the_driver(machine: &Machine) {
    let answer = machine.json("detect-without-driver");
    the_card(&answer);
    assert_eq!((&answer["kfd"], &answer["amdgpu"]["loaded"]), (&Value::Null, &json!(false)), "{answer:#}");
}

/// With the driver there is a KFD, which knows no GPU. vgem's nodes belong to no card, and the card is still
/// not usable.
#[track_caller]
fn detect(machine: &Machine) {
    let answer = machine.json("detect");
    let problems = the_card(&answer)["problems"].to_string();
    assert!(problems.contains("no driver is bound to it"), "{problems}");
    let major: u32 = machine.said("kfd-major").parse().unwrap();
    assert_eq!(answer["kfd"], json!({"path": "/dev/kfd", "major": major, "minor": 0}), "{answer:#}");
    assert_eq!(answer["amdgpu"]["loaded"], true, "{answer:#}");
    assert!(!answer.to_string().contains("renderD128"), "vgem's node is no GPU's: {answer:#}");
}

#[track_caller]
fn doctor(machine: &Machine) {
    let status = machine.answer("doctor").status;
    let answer: Value = serde_json::from_str(&machine.answer("doctor").stdout).unwrap();
    assert_eq!(status, 3, "a machine whose only card is unbound is not in order: {answer:#}");
    let checks = answer["checks"].as_array().unwrap();
    let of = |name: &str, subject: &str| {
        let found = checks.iter().find(|check| check["name"] == name && check["subject"] == subject);
        found.unwrap_or_else(|| panic!("no check {name} {subject}: {answer:#}"))
    };
    let major = machine.said("kfd-major");
    let kfd = of("kfd", "/dev/kfd");
    assert_eq!(kfd["status"], "ok", "{kfd:#}");
    assert_eq!(kfd["evidence"], format!("is {major}:0, as sysfs and /proc/devices say"));
    let topology = of("kfd", "topology");
    assert_eq!(topology["evidence"], "it knows 0 GPUs", "{topology:#}");
    let unbound = checks.iter().any(|check| {
        check["status"] == "failed" && check["evidence"].to_string().contains("no driver is bound")
    });
    assert!(unbound, "{answer:#}");
}

/// Runs equal containers beneath either cgroup hierarchy: v2 asks a BPF program, v1 the devices controller.
#[track_caller]
fn containers(machine: &Machine, hierarchy: &str, kfd: &str) {
    let said = |bundle: &str| machine.said(&format!("{hierarchy}-{bundle}")).to_owned();
    let refused = look(ENOENT, ENOENT, [EPERM; 3]);
    // The nodes that a container makes itself do work where the cgroup lets them: what refuses is the cgroup.
    assert_eq!(said("allowed"), look(ENOENT, ENOENT, [kfd, "drm vgem", "drm vgem"]), "{hierarchy}");
    assert_eq!(said("plain"), refused, "{hierarchy}");
    assert_eq!(said("asks-of-runc"), refused, "{hierarchy}");
    assert_eq!(said("silent"), refused, "{hierarchy}");
    // The card's node is a real one and stands in no policy.
    assert_eq!(said("asks"), look(kfd, "drm vgem", [kfd, "drm vgem", EPERM]), "{hierarchy}");
    let user = said("user");
    let expected = format!("1000 104\nkfd {kfd}\nrender drm vgem\n");
    assert!(user.starts_with(&expected), "{hierarchy}: {user}");
    let stranger = machine.answer(&format!("{hierarchy}-stranger"));
    assert_eq!((stranger.status, stranger.stdout.trim()), (1, ""), "{stranger:#?}");
    assert!(
        stranger.stderr.contains("the policy has no GPU") && stranger.stderr.contains('1'),
        "{stranger:#?}"
    );
}

/// Containers of Debian 12's containerd, in the namespace that Concourse uses.
#[track_caller]
fn containerd(machine: &Machine, kfd: &str) {
    machine.said("containerd");
    let version = machine.said("containerd-version");
    assert!(version.contains("containerd/containerd 1.6."), "{version}");
    let refused = look(ENOENT, ENOENT, [EPERM; 3]);
    for (step, expected) in [
        ("ctr-silent", &refused),
        ("ctr-asks-of-runc", &refused),
        ("ctr-asks", &look(kfd, "drm vgem", [kfd, "drm vgem", EPERM])),
    ] {
        assert_eq!(machine.said(step), expected, "{step}: {:#?}", machine.answer(step));
    }
    let stranger = machine.answer("ctr-stranger");
    assert!(stranger.status != 0 && stranger.stderr.contains("the policy has no GPU"), "{stranger:#?}");
    let life = machine.said("ctr-life");
    let record = "%2Frun%2Fcontainerd%2Frunc%2Fconcourse@life";
    assert_eq!(life, format!("{record}\n{kfd}\nleft:"), "{life}");
}

/// The checks of `doctor --canary`, where both drivers answer.
#[track_caller]
fn canary(machine: &Machine, version: &str) {
    let step = machine.answer("canary");
    let answer: Value =
        serde_json::from_str(&step.stdout).unwrap_or_else(|error| panic!("{error}: {step:#?}"));
    let checks = answer["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|check| check["name"] == "canary" && check["subject"] == "containerd");
    let told: Vec<_> = checks.map(|check| (check["status"].as_str(), check["evidence"].as_str())).collect();
    let kfd = format!("KFD answers inside with version {version}, asked for by AMD_VISIBLE_DEVICES=0");
    let expected = [
        kfd.as_str(),
        "/dev/dri/renderD128 of GPU 0 opens inside",
        "the device 226:191, which no GPU of this machine has, was not given, and is refused inside",
    ];
    assert_eq!(told, expected.map(|text| (Some("ok"), Some(text))), "{answer:#}\n{}", step.stderr);
}

/// By the kernel's own /sys/dev/char, vgem's node does not belong to the card, whatever the CDI spec lists.
#[track_caller]
fn node_check(machine: &Machine) {
    let answer = machine.answer("v2-not-a-gpu");
    assert_eq!((answer.status, answer.stdout.trim()), (1, ""), "{answer:#?}");
    for part in ["/dev/dri/renderD128", "vgem", "0000:00:05.0"] {
        assert!(answer.stderr.contains(part), "{answer:#?}");
    }
    assert_eq!(machine.said("synthetic"), "../../devices/pci0000:00/0000:00:05.0/drm/renderD128");
}

/// The drivers that answer are real; that vgem's nodes are AMD's is what this step's sysfs is made to say, and before
/// that nobody believes it.
#[track_caller]
fn task_check(machine: &Machine, kfd: &str) {
    let honest = machine.answer("task-check-of-vgem");
    let unsaid = "✗ Found no AMD GPU render devices: /dev/dri/renderD128 is device 226:128, and /sys does not say whose";
    assert!(honest.status == 3 && honest.stdout.starts_with(unsaid), "{honest:#?}");
    let answer = machine.answer("task-check");
    let found =
        "✓ Found AMD GPU render devices: /dev/dri/renderD128\n✓ Found AMD GPU card devices: /dev/dri/card0\n";
    let (status, access) = match kfd.strip_prefix("kfd ") {
        Some(version) => (0, format!("✓ AMD GPU devices are accessible in container (KFD {version})")),
        // The newest driver refuses by itself where there is no GPU.
        None => (
            3,
            "✗ AMD GPU devices are not accessible in container: /dev/kfd does not open (EINVAL, ".to_owned(),
        ),
    };
    assert!(answer.status == status && answer.stdout.starts_with(&format!("{found}{access}")), "{answer:#?}");
}

#[test]
fn real_driver_of_linux_6_1_answers_containers_of_the_policy_and_no_others() {
    if let Some(machine) = Machine::boot("bookworm", true) {
        hold(&machine, "kfd 1.11");
        containerd(&machine, "kfd 1.11");
        canary(&machine, "1.11");
    }
}

#[test]
#[ignore = "a second kernel: cargo xtask test --all"]
fn real_driver_of_linux_6_12_answers_containers_of_the_policy_and_no_others() {
    if let Some(machine) = Machine::boot("trixie", false) {
        hold(&machine, "kfd 1.17");
    }
}

/// sid's kernel, 7.2 in November 2026: a third boot makes the full run longer than it is worth there.
#[cfg(feature = "newest-kernel")]
#[test]
fn real_driver_of_the_newest_linux_answers_containers_of_the_policy_and_no_others() {
    if let Some(machine) = Machine::boot("sid", false) {
        // Without any GPU this driver refuses every open by itself, with another error than the device
        // cgroup's.
        hold(&machine, "open: 22");
    }
}
