//! `partition set --reload` on a real kernel: the real kmod unloads and loads the real amdgpu, between the request of a memory
//! mode and the write of the compute mode. What says that the card is an MI300X is made up.

use std::collections::BTreeSet;

use layout::{Gpu, Kfd, KfdNode, Machine, Module};
use qemu_machine::answers::Answers;
use qemu_machine::archive::Archive;
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use qemu_machine::libraries::copy_program;
use support::real;

use crate::machine::laid::{ADDRESS, sys_into};

const INIT: &str = concat!(
    include_str!("../../guest/first.sh"),
    include_str!("../../guest/steps.sh"),
    include_str!("../../guest/reload.sh")
);
const MI300X: u16 = 0x74a1;
const CONFIG: &str = "partitions:
  profiles:
    whole: [{cards: all, compute: SPX, memory: NPS1}]
    quarters: [{cards: all, compute: CPX, memory: NPS4}]
";

#[test]
fn real_a_memory_mode_is_requested_before_the_driver_goes_and_the_compute_mode_set_once_it_is_back() {
    let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox", "kmod", "ldd", "xz"];
    let Some([kernels, rocworker]) =
        real::require_made(["ROCWORKER_KERNELS", "ROCWORKER_PROGRAM"], &programs)
    else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let kernel = Kernel::unpacked_in(&kernels.join("bookworm"));
    let booted = boot(kernel.image(), &archive(&kernel, &rocworker), place.path());
    eprintln!("Linux {} ({}): {:.1} s", kernel.release(), booted.accelerator, booted.took.as_secs_f64());
    hold(&booted.answers);
}

#[track_caller]
fn hold(answers: &Answers) {
    for step in ["depmod", "first", "set"] {
        let answer = answers.of(step);
        assert_eq!(answer.status, 0, "{step}: {answer:#?}");
    }
    let order = "modprobe amdgpu: 0, amdgpu is live\nmodprobe --remove amdgpu: 0, amdgpu is unloaded\n\
                 modprobe amdgpu: 0, amdgpu is live";
    assert_eq!(answers.said("order"), order);
    assert_eq!(answers.said("modes"), "CPX\nNPS4");
    let said = &answers.of("set").stderr;
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    let steps =
        ["NPS4 in place of NPS1", "amdgpu was unloaded", "amdgpu was loaded", "CPX in place of SPX"].map(at);
    assert!(steps.is_sorted(), "{said}");
    // A program has /dev/kfd open, of which KFD says nothing: the module stays, and the card's modes are said.
    let kept = answers.of("in-use");
    assert_eq!(kept.status, 1, "{kept:#?}");
    assert!(
        kept.stderr.contains("the driver cannot be unloaded") && kept.stderr.contains("in use"),
        "{kept:#?}"
    );
    assert!(kept.stderr.contains("now: 0000:00:05.0 CPX/"), "{kept:#?}");
    assert_eq!(answers.said("loaded"), "live");
}

fn archive(kernel: &Kernel, rocworker: &std::path::Path) -> Vec<u8> {
    let mut archive = Archive::default();
    let mut libraries = BTreeSet::new();
    archive.file("init", 0o755, INIT.as_bytes());
    archive.character_device("dev/console", 0o600, (5, 1));
    archive.copy("bin/busybox", 0o755, &real::program("busybox").unwrap());
    copy_program(&mut archive, &mut libraries, "sbin/kmod", &real::program("kmod").unwrap());
    archive.link("sbin/depmod", "kmod");
    archive.link("kmod/modprobe", "/sbin/kmod");
    archive.file("sbin/modprobe", 0o755, include_bytes!("../../guest/modprobe.sh"));
    archive.copy("sbin/rocworker", 0o755, rocworker);
    archive.file("etc/rocworker/config.yaml", 0o644, CONFIG.as_bytes());
    archive.file("etc/group", 0o644, b"root:x:0:\nrender:x:104:\n");
    kernel.modules_into(&mut archive, &["amdgpu"]);
    archive.folder("var/lib");
    let gpu = Gpu::amd(ADDRESS, MI300X)
        .card(0)
        .render(128)
        .attribute("available_compute_partition", "SPX, DPX, QPX, CPX")
        .attribute("current_compute_partition", "SPX")
        .attribute("available_memory_partition", "NPS1, NPS4")
        .attribute("current_memory_partition", "NPS1");
    let node = KfdNode::gpu(1, MI300X, 90_402).at(ADDRESS).render(128).property("num_xcc", 8);
    let machine = Machine::new().module(Module::new("amdgpu")).gpu(gpu);
    sys_into(&mut archive, &machine.kfd(Kfd::new(241).node(KfdNode::cpu(1)).node(node)));
    archive.finish()
}
