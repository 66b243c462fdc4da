//! What a real kernel says of the real amdgpu, and who may read that: wrong parameters on a machine without a GPU, and a
//! program that imitates the kernel.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test fails by panicking, and runs itself in the machine; the figures of a boot are for the reader"
)]

use std::fs;
use std::path::Path;

use kernel_log::kmsg::Kmsg;
use kernel_log::knowledge::Knowledge;
use nix::unistd::{Uid, seteuid};
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use qemu_machine::libraries::archive_of_rocworker;
use root::Root;
use serde_json::{Value, json};
use support::real;

const INIT: &str = concat!(
    include_str!("../guest/first.sh"),
    include_str!("../guest/steps.sh"),
    include_str!("../guest/log.sh")
);

const IMITATION: &str = "ring gfx_0.0.0 timeout, signaled seq=2219";

/// Not a test: what runs in the machine.
#[test]
fn child() {
    // Another machine has no such folder.
    if !Path::new("/modules").is_dir() {
        return;
    }
    let root = Root::open(Path::new("/")).unwrap();
    let knowledge = Knowledge::built_in().unwrap();
    let mut kmsg = Kmsg::open(&root).unwrap();
    let mut first = None;
    let mut found = Vec::new();
    loop {
        let read = kmsg.read().unwrap();
        first = first.or(read.records.first().map(|record| record.sequence));
        found.extend(read.records.iter().filter_map(|record| {
            let id = knowledge.find(&record.text)?.message.id.clone();
            Some(json!([id, String::from_utf8_lossy(&record.text)]))
        }));
        if !read.more {
            break;
        }
    }
    // busybox' insmod tries finit_module(2), then init_module(2).
    found.dedup();
    seteuid(Uid::from_raw(65534)).unwrap();
    let refused = Kmsg::open(&root).err();
    seteuid(Uid::from_raw(0)).unwrap();
    let came = json!({ "first": first, "found": found, "refused": refused });
    fs::write("/run/came", format!("\n{came}\n")).unwrap();
}

#[test]
fn real_messages_of_a_real_kernel_are_known_and_a_program_that_imitates_it_is_not_believed() {
    let variables = ["ROCWORKER_KERNELS", "ROCWORKER_PROGRAM", "ROCWORKER_WRAPPER"];
    let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox", "ldd", "xz"];
    let Some([kernels, rocworker, wrapper]) = real::require_made(variables, &programs) else { return };
    let place = tempfile::tempdir().unwrap();
    let kernel = Kernel::unpacked_in(&kernels.join("bookworm"));
    let booted = boot(kernel.image(), &archive(&kernel, &rocworker, &wrapper), place.path());
    eprintln!("Linux {} ({}): {:.1} s", kernel.release(), booted.accelerator, booted.took.as_secs_f64());
    let answers = &booted.answers;
    for step in ["needed", "value", "name", "imitate", "found", "publish"] {
        assert_eq!(answers.of(step).status, 0, "{step}: {:#?}", answers.of(step));
    }
    // Any other reader of the log sees the imitation.
    assert!(answers.said("dmesg").contains(IMITATION), "{}", answers.said("dmesg"));
    let came: Value = serde_json::from_str(answers.said("found").lines().last().unwrap_or_default()).unwrap();
    eprintln!("{came:#}");
    assert_eq!(
        came["found"],
        json!([
            ["invalid-parameter", "amdgpu: `x' invalid for parameter `dc'"],
            ["unknown-parameter", "amdgpu: unknown parameter 'nosuch' ignored"],
        ])
    );
    assert_eq!(came["first"], 0, "from boot on");
    // As Debian's kernels are set.
    assert_eq!(answers.said("restricted").trim(), "1");
    assert_eq!(
        came["refused"],
        "cannot open /dev/kmsg: Operation not permitted: run this as root or with CAP_SYSLOG"
    );
    let health: Value = serde_json::from_str(answers.said("publish")).unwrap();
    assert!(health["written_at"].as_u64() > Some(0), "{health:#}");
    assert!(!health["unknown"].to_string().contains("kmsg"), "{health:#}");
    assert!(!health.to_string().contains(IMITATION), "{health:#}");
}

fn archive(kernel: &Kernel, rocworker: &Path, wrapper: &Path) -> Vec<u8> {
    let programs = [("rocworker", rocworker), ("runc-amd-wrapper", wrapper)];
    archive_of_rocworker(INIT, kernel, &["amdgpu"], programs, "real_kernel_log").finish()
}
