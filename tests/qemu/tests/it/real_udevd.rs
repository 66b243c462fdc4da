//! A real udevd and the real /dev/kfd: what rocworker's rules make of it, what they leave alone, and which events make
//! them count. vgem's render node stands for another vendor's.

#[path = "../../../it/desired/wanted.rs"]
mod wanted;

use std::path::Path;

use layout::Machine;
use qemu_machine::answers::Answers;
use qemu_machine::archive::Archive;
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use support::real;
use support::release::Release;

const INIT: &str = concat!(
    include_str!("../../guest/first.sh"),
    include_str!("../../guest/steps.sh"),
    include_str!("../../guest/udev.sh")
);
const RULES: &str = "/etc/udev/rules.d/70-amdgpu.rules";

/// The rule that the ClusterBloom text writes to this path.
const EVERY_VENDORS: &str =
    "KERNEL==\"kfd\", MODE=\"0666\"\nSUBSYSTEM==\"drm\", KERNEL==\"renderD*\", MODE=\"0666\"\n";

/// Mode and group of KFD's node and of vgem's.
fn nodes(kfd: &str, vgem: &str) -> String {
    format!("/dev/kfd {kfd}\n/dev/dri/renderD128 {vgem}")
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_udevd_gives_the_real_kfd_its_rights_and_leaves_another_drivers_node_alone() {
    let variables = ["ROCWORKER_KERNELS", "ROCWORKER_UDEVADM_TRIXIE"];
    let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox", "xz"];
    let Some([kernels, udevadm]) = real::require_made(variables, &programs) else { return };
    let place = tempfile::tempdir().unwrap();
    let kernel = Kernel::unpacked_in(&kernels.join("bookworm"));
    let booted = boot(kernel.image(), &archive(&kernel, &udevadm), place.path());
    eprintln!(
        "Linux {} ({}): off after {:.1} s",
        kernel.release(),
        booted.accelerator,
        booted.took.as_secs_f64()
    );
    hold(&booted.answers);
}

#[track_caller]
fn hold(answers: &Answers) {
    assert!(answers.said("version").starts_with("257"), "{}", answers.said("version"));
    assert_eq!(answers.of("udevd").status, 0, "{:#?}", answers.of("udevd"));
    // As the kernel makes a node: root's alone. The first line is the driver's own event, the others are triggered.
    for (step, kfd, vgem) in [
        ("drivers", "660 104", "600 0"),
        ("open", "666 104", "600 0"),
        ("every-vendors", "666 104", "666 0"),
        ("render", "660 104", "600 0"),
        ("debian", "660 104", "660 104"),
        ("debian-open", "666 104", "660 104"),
        // Only AMD's devices are named: the other node does not get back what the system's rules say.
        ("by-hand", "666 104", "640 104"),
        // A change would not give /dev/kfd back: Debian's rules set a node's rights when it is added.
        ("undone-changed", "666 104", "640 104"),
        ("undone", "660 104", "640 104"),
    ] {
        assert_eq!(answers.said(step), nodes(kfd, vgem), "{step}: {:#?}", answers.of(step));
    }
}

fn archive(kernel: &Kernel, udevadm: &Path) -> Vec<u8> {
    let release = Release::of(udevadm);
    let mut archive = Archive::default();
    archive.file("init", 0o755, INIT.as_bytes());
    archive.character_device("dev/console", 0o600, (5, 1));
    archive.copy("bin/busybox", 0o755, &real::program("busybox").unwrap());
    archive.copy("usr/bin/udevadm", 0o755, udevadm);
    archive.link("bin/udevadm", "/usr/bin/udevadm");
    archive.link("usr/lib/systemd/systemd-udevd", "/usr/bin/udevadm");
    for library in release.libraries("usr/bin/udevadm") {
        archive.copy(&library, 0o755, &release.file(&library));
    }
    archive.link("lib64", "usr/lib64");
    kernel.modules_into(&mut archive, &["amdgpu", "vgem"]);
    archive.file("etc/group", 0o644, b"root:x:0:\nvideo:x:44:\nrender:x:104:\n");
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/:/bin/sh\n");
    archive.folder("etc/udev/rules.d");
    archive.folder("usr/lib/udev/rules.d");
    let machine = Machine::demo();
    for (name, config) in [("render", ""), ("open", "permissions: open")] {
        let text = wanted::text(&wanted::on(&machine, config), RULES);
        archive.file(&format!("rules/{name}"), 0o644, text.as_bytes());
    }
    archive.file("rules/every-vendors", 0o644, EVERY_VENDORS.as_bytes());
    archive.copy("rules/debian", 0o644, &release.file("usr/lib/udev/rules.d/50-udev-default.rules"));
    archive.finish()
}
