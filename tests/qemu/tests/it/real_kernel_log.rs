//! What a real kernel says of the real amdgpu, and who may read that: wrong parameters on a machine without a GPU, a
//! program that imitates the kernel, and names that make the kernel itself repeat a driver's words.

use std::fs;
use std::path::Path;

use kernel_log::kmsg::Kmsg;
use kernel_log::knowledge::Knowledge;
use kernel_log::origin::Origin;
use nix::unistd::{Uid, seteuid};
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use qemu_machine::libraries::archive_of_rocworker;
use root::Root;
use serde_json::{Value, json};
use support::real;

const INIT: &str = concat!(
    include_str!("../../guest/first.sh"),
    include_str!("../../guest/card.sh"),
    include_str!("../../guest/steps.sh"),
    include_str!("../../guest/log.sh")
);

const IMITATION: &str = "ring gfx_0.0.0 timeout, signaled seq=2219";

/// Names of programs that crash.
const FORGED: [&str; 3] = [
    "x 0000:de:00.0: amdgpu: GPU reset(2) failed",
    "amdgpu: GPU reset(2) failed",
    "[drm] ring gfx timeout, signaled seq=1, emitted seq=2",
];

/// An ELF file of one segment (elf(5)) whose two instructions write to address 0.
fn crashing() -> Vec<u8> {
    let code = [0x31, 0xc0, 0x89, 0x00];
    let header = [
        &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..],
        &[2, 0, 0x3e, 0, 1, 0, 0, 0],
        &0x0040_0078_u64.to_le_bytes(),
        &64_u64.to_le_bytes(),
        &0_u64.to_le_bytes(),
        &[0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0],
    ];
    let length = (64 + 56 + code.len() as u64).to_le_bytes();
    let segment = [
        &[1, 0, 0, 0, 5, 0, 0, 0][..],
        &0_u64.to_le_bytes(),
        &0x0040_0000_u64.to_le_bytes(),
        &0x0040_0000_u64.to_le_bytes(),
        &length,
        &length,
        &0x1000_u64.to_le_bytes(),
    ];
    [header.concat(), segment.concat(), code.to_vec()].concat()
}

/// Not a test: the program that runs in the machine.
#[test]
fn child() {
    // Another machine has no such folder.
    if !Path::new("/modules").is_dir() {
        return;
    }
    let root = Root::open(Path::new("/")).unwrap();
    let knowledge = Knowledge::built_in().unwrap();
    let mut kmsg = Kmsg::open(&root).unwrap();
    let (mut first, mut devices) = (None, 0);
    let mut found = Vec::new();
    loop {
        let read = kmsg.read().unwrap();
        first = first.or(read.records.first().map(|record| record.sequence));
        devices += read.records.iter().filter(|record| record.device.is_some()).count();
        found.extend(read.records.iter().filter_map(|record| {
            let origin = Origin::of_record(&record.text, record.device);
            let id = knowledge.find_from(&origin)?.message.id.clone();
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
    let came = json!({ "first": first, "found": found, "refused": refused, "devices": devices });
    fs::write("/run/came", format!("\n{came}\n")).unwrap();
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_messages_of_a_real_kernel_are_known_and_no_program_that_imitates_it_is_believed() {
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
    // dmesg also shows the names that the kernel repeats, whole: the mount option alone, and as the second line of a
    // record.
    let log = answers.said("dmesg");
    for name in FORGED {
        let comm: String = name.chars().take(15).collect();
        assert!(log.contains(&format!("{comm}[")) && log.contains(&format!(" in {name}[")), "{name}: {log}");
    }
    assert!(
        log.contains("tmpfs: Unknown parameter 'amdgpu 0000:de:00.0: amdgpu: GPU reset(2) failed'"),
        "{log}"
    );
    assert!(log.contains("tmpfs: Unknown parameter 'x\n"), "{log}");
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
    assert!(came["devices"].as_u64() > Some(5), "the PCI core's own records are read");
    // Debian's kernels restrict the log.
    assert_eq!(answers.said("restricted").trim(), "1");
    assert_eq!(
        came["refused"],
        "cannot open /dev/kmsg: Operation not permitted: run this as root or with CAP_SYSLOG"
    );
    let health: Value = serde_json::from_str(answers.said("publish")).unwrap();
    assert!(health["written_at"].as_u64() > Some(0), "{health:#}");
    assert!(!health["unknown"].to_string().contains("kmsg"), "{health:#}");
    for forged in [IMITATION, "segfault", "tmpfs", "de:00.0"] {
        assert!(!health.to_string().contains(forged), "{forged}: {health:#}");
    }
}

fn archive(kernel: &Kernel, rocworker: &Path, wrapper: &Path) -> Vec<u8> {
    let programs = [("rocworker", rocworker), ("runc-amd-wrapper", wrapper)];
    let mut archive = archive_of_rocworker(INIT, kernel, &["amdgpu"], programs);
    for name in FORGED {
        archive.file(&format!("forged/{name}"), 0o755, &crashing());
    }
    archive.finish()
}
