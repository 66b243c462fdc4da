//! Why KFD lacks a GPU: what the kernel says, what an equal card says, and that no remedy is printed which changes
//! nothing.

use layout::{Gpu, Kfd, KfdNode, Machine, Module};
use support::cases;

use crate::doctor::*;

pub(crate) const ATOMICS: &str = "kfd kfd: amdgpu: skipped device 1002:67df, PCI rejects atomics 730<0";

/// The kernel's buffer from its start on (Documentation/ABI/testing/dev-kmsg).
pub(crate) fn kmsg(lines: &[&str]) -> String {
    let record = |(number, line): (usize, &&str)| format!("6,{number},{number}000000,-;{line}\n");
    let first = "Linux version 6.1.0-50-amd64 (debian-kernel@lists.debian.org)";
    [first].iter().chain(lines).enumerate().map(record).collect()
}

/// A card that amdgpu drives, on a machine whose KFD has no GPU.
pub(crate) fn left_out(device: u16) -> Machine {
    with_groups(Machine::new().module(Module::new("amdgpu")))
        .gpu(Gpu::amd(ADDRESS, device).card(0).render(128))
        .kfd(Kfd::new(511).node(KfdNode::cpu(16)))
}

/// amdgpu without its KFD.
pub(crate) fn without_kfd() -> Machine {
    with_groups(Machine::new().module(Module::new("amdgpu")))
        .gpu(Gpu::amd(ADDRESS, 0x1638).card(0).render(128))
        .put("/proc/sys/kernel/osrelease", "6.1.69-talos\n")
}

/// What doctor says to do, but for the check that names the cause and the one that refers to the others.
#[track_caller]
fn assert_no_further_remedy(answer: &Value) {
    let of_others = |check: &&Value| check["name"] != "kfd" && check["name"] != "configuration";
    let further: Vec<_> =
        checks(answer).iter().filter(of_others).filter(|check| check["remedy"].is_string()).collect();
    assert!(further.is_empty(), "{further:#?}");
}

#[test]
fn of_equal_cards_those_that_kfd_leaves_out_have_the_remedy_to_compare_slots() {
    let Some(case) = cases::machine("polaris-atomics") else { return };
    let root = case.root();
    put_wrapper(&root);
    let equals = "KFD has 0000:01:00.0, 0000:02:00.0, of the same PCI ids: the slot differs";
    let (code, answer) = doctor_beneath(&root);
    assert_eq!(code, 3);
    for gpu in ["GPU 2", "GPU 3", "GPU 4", "GPU 5"] {
        assert_check(find(&answer, "kfd", gpu), "failed", equals, "compare the slots");
        assert_check(find(&answer, "nodes", gpu), "skipped", "the check kfd says why", "");
    }
    assert_check(find(&answer, "kfd", "topology"), "ok", "it knows 2 GPUs", "");
    let detected = detect_beneath(Path::new(PROGRAM), &root);
    let problem = detected["gpus"][2]["problems"][0].as_str().unwrap();
    assert!(
        problem.ends_with("knows 0000:01:00.0, 0000:02:00.0, of the same PCI ids: look at this GPU's slot")
    );

    fs::create_dir_all(root.join("etc/rocworker")).unwrap();
    fs::write(root.join("etc/rocworker/config.yaml"), "gpu-device-ids: [0, 2]\n").unwrap();
    let plan = Command::new(PROGRAM).arg("--root").arg(&root).arg("plan").output().unwrap();
    let plan = String::from_utf8([plan.stdout, plan.stderr].concat()).unwrap();
    assert!(
        plan.contains(
            "GPU 2 is configured and left out: KFD does not know render minor 130, and knows 0000:01"
        ),
        "{plan}"
    );

    fs::write(root.join("dev/kmsg"), kmsg(&[ATOMICS; 4])).unwrap();
    let (_, answer) = doctor_beneath(&root);
    let check = find(&answer, "kfd", "GPU 5");
    assert_check(check, "failed", ATOMICS, "Put the card into a slot of PCIe 3.0 or later");
    // The kernel's words end before rocworker's go on.
    assert_check(check, "failed", &format!("The kernel says: \"{ATOMICS}\". {equals}"), "slot");
    assert!(!check["remedy"].as_str().unwrap().contains("firmware"), "{check:#}");
}

#[test]
fn the_kernels_line_says_why_a_gpu_is_left_out_and_no_other_remedy_is_printed() {
    let iommu = [
        "kfd kfd: amdgpu: HAINAN  not supported in kfd",
        "kfd kfd: amdgpu: error getting iommu info. is the iommu enabled?",
        "kfd kfd: amdgpu: Error initializing iommuv2",
        "kfd kfd: amdgpu: device 1002:130d NOT added due to errors",
    ];
    let firmware = "kfd kfd: amdgpu: skipped device 1002:7341, PCI rejects atomics 123<145";
    let hawaii = [
        "amdgpu: KFD support on Hawaii is experimental. See modparam exp_hw_support",
        "kfd kfd: amdgpu: HAWAII  not supported in kfd",
    ];
    for (device, lines, evidence, remedy) in [
        (
            0x67df,
            &[ATOMICS][..],
            "no firmware of the card that does without them",
            "Put the card into a slot",
        ),
        (0x7341, &[firmware], "from version B on it does without them", "Install newer firmware"),
        (
            0x67df,
            &["kfd kfd: skipped device 1002:67df, PCI rejects atomics"],
            "older wording",
            "Put the card into a slot",
        ),
        (
            0x6920,
            &["kfd kfd: amdgpu: TONGA  not supported in kfd"],
            "no support for this chip",
            "newer kernel",
        ),
        (0x15bf, &["kfd kfd: amdgpu: GC IP 0b0004  not supported in kfd"], "GC IP 0b0004", "newer kernel"),
        (
            0x67b0,
            &hawaii,
            "only where amdgpu has the parameter exp_hw_support=1",
            "options amdgpu exp_hw_support=1",
        ),
        (0x130d, &iommu, "only through its IOMMU", "Enable the IOMMU"),
        // Another card's line is none of this one's, and a program can write none of the kernel's.
        (0x6920, &[ATOMICS], "the kernel's log since boot does not say why", "journalctl -k --grep"),
    ] {
        let (code, answer) = doctor(&left_out(device).put("/dev/kmsg", kmsg(lines)));
        assert_eq!(code, 3);
        assert_check(find(&answer, "kfd", "GPU 0"), "failed", evidence, remedy);
        assert_no_further_remedy(&answer);
    }
    let forged = kmsg(&[]) + "14,9,9000000,-;kfd kfd: amdgpu: TONGA  not supported in kfd\n";
    let (_, answer) = doctor(&left_out(0x6920).put("/dev/kmsg", forged));
    assert_check(find(&answer, "kfd", "GPU 0"), "failed", "log since boot does not say why", "journalctl");
}

#[test]
fn a_log_that_is_not_whole_is_named_and_a_reports_log_is_read() {
    let lost = kmsg(&[]).replace("6,0,", "6,7,");
    let (_, answer) = doctor(&left_out(0x6920).put("/dev/kmsg", lost));
    assert_check(
        find(&answer, "kfd", "GPU 0"),
        "failed",
        "has overwritten the lines of its start",
        "journalctl",
    );
    let (_, answer) = doctor(&left_out(0x6920));
    assert_check(find(&answer, "kfd", "GPU 0"), "failed", "was not read: ", "journalctl");
    let kept = format!("2026-11-27T10:00:00+00:00 kernel: {ATOMICS}\n");
    let (_, answer) = doctor(&left_out(0x67df).put("/logs/kernel.log", kept));
    assert_check(find(&answer, "kfd", "GPU 0"), "failed", ATOMICS, "slot");
}

#[test]
fn a_kernel_without_kfd_is_named_and_a_reboot_of_it_is_no_remedy() {
    let config = "CONFIG_DRM=m\n# CONFIG_HSA_AMD is not set\n";
    let boot = "/boot/config-6.1.69-talos";
    for (machine, evidence) in [
        (without_kfd(), "CONFIG_HSA_AMD is likely off in kernel 6.1.69-talos"),
        (
            without_kfd().put(boot, config),
            "CONFIG_HSA_AMD is off in kernel 6.1.69-talos (/boot/config-6.1.69-talos)",
        ),
    ] {
        let (code, answer) = doctor(&machine);
        assert_eq!(code, 3);
        let remedy = "CONFIG_HSA_AMD=y, as the distributions' are: a reboot of this one does not help";
        assert_check(find(&answer, "kfd", "topology"), "failed", evidence, remedy);
        assert_no_further_remedy(&answer);
    }
    // With the option, and with AMD's own build, the kernel's configuration is not the cause.
    let set = without_kfd().put(boot, "CONFIG_DRM=m\nCONFIG_HSA_AMD=y\n");
    let amds = without_kfd().put(boot, config).put("/sys/module/amdgpu/version", "6.16.13\n");
    for machine in [set, amds] {
        let (_, answer) = doctor(&machine);
        assert_check(
            find(&answer, "kfd", "topology"),
            "failed",
            "the kernel's log may say why",
            "journalctl",
        );
        let line = "amdgpu: KFD is disabled due to module initialization failure";
        let (_, answer) = doctor(&machine.put("/dev/kmsg", kmsg(&[line])));
        assert_check(find(&answer, "kfd", "topology"), "failed", line, "first error of amdgpu");
        assert_no_further_remedy(&answer);
    }
}

#[test]
fn a_case_of_a_kernel_without_kfd_has_no_remedy_but_another_kernel() {
    let Some(case) = cases::machine("no-hsa") else { return };
    let (code, answer) = doctor_beneath(&case.root());
    assert_eq!(code, 3);
    assert_check(find(&answer, "kfd", "topology"), "failed", "CONFIG_HSA_AMD", "does not help");
    assert_no_further_remedy(&answer);
}

/// A display chip that never computes, and a card that another driver has, lack no KFD.
#[test]
fn cards_without_a_need_for_kfd_change_no_remedy_and_selinux_is_no_cause_without_it() {
    let config = "CONFIG_DRM=m\n# CONFIG_HSA_AMD is not set\n";
    for further in [
        Gpu::amd("0000:01:03.0", 0x515e).driver("radeon"),
        Gpu::amd("0000:01:03.0", 0x7448).driver("vfio-pci"),
        Gpu::amd("0000:01:03.0", 0x1638).card(1).render(129),
    ] {
        let machine = without_kfd()
            .gpu(further)
            .put("/boot/config-6.1.69-talos", config)
            .put("/sys/fs/selinux/enforce", "1")
            .put("/sys/fs/selinux/booleans/container_use_devices", "0 0");
        let (_, answer) = doctor(&machine);
        assert_check(find(&answer, "kfd", "topology"), "failed", "CONFIG_HSA_AMD is off", "does not help");
        for name in ["nodes", "groups", "selinux"] {
            let of = checks(&answer).iter().filter(|check| check["name"] == name);
            let remedies: Vec<_> = of.filter(|check| check["remedy"].is_string()).collect();
            assert!(remedies.is_empty(), "{remedies:#?}");
        }
    }
}

#[test]
fn a_topology_that_cannot_be_listed_is_not_said_to_be_missing() {
    let machine = without_kfd().put("/sys/class/kfd/kfd/topology/nodes", "no folder");
    let (_, answer) = doctor(&machine);
    let topology = find(&answer, "kfd", "topology");
    assert_check(topology, "failed", "whether there is one cannot be seen: ", "look as root");
    let text = answer.to_string();
    assert!(!text.contains("there is none") && !text.contains("there is no KFD"), "{answer:#}");
}

#[test]
fn a_card_takes_over_the_cause_in_the_record_right_before_its_own_alone() {
    let cause = "kfd kfd: amdgpu: TONGA  not supported in kfd";
    let not_added = "kfd kfd: amdgpu: device 1002:6920 NOT added due to errors";
    let between = "usb 1-1: new high-speed USB device number 2";
    for (lines, evidence, remedy) in [
        (&[cause, not_added][..], "no support for this chip", "No kernel supports"),
        (&[cause, between, not_added], "NOT added due to errors", "the kernel's first error"),
    ] {
        let (_, answer) = doctor(&left_out(0x6920).put("/dev/kmsg", kmsg(lines)));
        assert_check(find(&answer, "kfd", "GPU 0"), "failed", evidence, remedy);
    }
}

#[test]
fn a_case_of_a_chip_that_never_computes_has_no_remedy_that_changes_nothing() {
    let Some(case) = cases::machine("pitcairn") else { return };
    for log in [&[][..], &["kfd kfd: amdgpu: PITCAIRN  not supported in kfd"]] {
        fs::write(case.root().join("dev/kmsg"), kmsg(log)).unwrap();
        let (_, answer) = doctor_beneath(&case.root());
        let evidence = "GCN 1 (Southern Islands), which no kernel's KFD knows: it never computes";
        assert!(answer.to_string().contains(evidence), "{answer:#}");
        let remedies: Vec<_> = checks(&answer).iter().filter(|check| check["remedy"].is_string()).collect();
        assert!(
            remedies.iter().all(|check| check["name"] == "pci" || check["name"] == "configuration"),
            "{remedies:#?}"
        );
    }
}

#[test]
fn a_parameter_out_of_its_range_is_named_with_the_place_that_sets_it() {
    let policy = "/sys/module/amdgpu/parameters/sched_policy";
    let queues = "/sys/module/amdgpu/parameters/max_num_of_queues_per_device";
    let set = "options amdgpu sched_policy=9 noretry=0";
    for (machine, evidence, remedy) in [
        (
            without_kfd().put(policy, "9\n").put("/etc/modprobe.d/gpu.conf", format!("# why\n{set}\n")),
            "amdgpu's parameter sched_policy is 9, and KFD takes 0 to 2",
            "remove sched_policy from /etc/modprobe.d/gpu.conf:2 (options amdgpu sched_policy=9 noretry=0)",
        ),
        (
            without_kfd()
                .put(policy, "0\n")
                .put(queues, "0\n")
                .put("/proc/cmdline", "root=/dev/vda1 amdgpu.max-num-of-queues-per-device=0\n"),
            "max_num_of_queues_per_device is 0, and KFD takes 1 to 524288",
            "from /proc/cmdline (amdgpu.max-num-of-queues-per-device=0)",
        ),
        (without_kfd().put(policy, "-1\n"), "sched_policy is -1", "modprobe --showconfig"),
    ] {
        let root = laid_out(&machine);
        let (code, answer) = doctor_beneath(root.path());
        assert_eq!(code, 3);
        assert_check(find(&answer, "kfd", "topology"), "failed", evidence, remedy);
        assert_no_further_remedy(&answer);
        let detected = detect_beneath(Path::new(PROGRAM), root.path());
        assert!(detected["gpus"][0]["problems"][0].as_str().unwrap().contains(evidence), "{detected:#}");
    }
    let (_, answer) = doctor(&good().put(policy, "0\n").put(queues, "4096\n"));
    assert_check(find(&answer, "kfd", "topology"), "ok", "it knows 1 GPU", "");
}
