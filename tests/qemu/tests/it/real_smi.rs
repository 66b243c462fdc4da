//! AMD's own tools beside rocworker where the real amdgpu drives no GPU: what each says of the driver, and that none of
//! them makes a GPU of nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use qemu_machine::answers::Answers;
use qemu_machine::archive::Archive;
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use qemu_machine::libraries::copy_program;
use serde_json::{Value, json};
use support::{exposition, real, smi};

const INIT: &str = concat!(
    include_str!("../../guest/first.sh"),
    include_str!("../../guest/steps.sh"),
    include_str!("../../guest/smi.sh")
);

#[test]
#[ignore = "cargo xtask test --all"]
fn real_smi_and_rocworker_say_the_same_of_a_driver_without_a_gpu() {
    let variables = ["ROCWORKER_KERNELS", "ROCWORKER_PROGRAM", smi::VARIABLE];
    let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox", "ldd", "xz"];
    let Some([kernels, rocworker, tree]) = real::require_made(variables, &programs) else { return };
    let place = tempfile::tempdir().unwrap();
    let kernel = Kernel::unpacked_in(&kernels.join("bookworm"));
    let booted = boot(kernel.image(), &archive(&kernel, &rocworker, &tree), place.path());
    eprintln!("Linux {} ({}): {:.1} s", kernel.release(), booted.accelerator, booted.took.as_secs_f64());
    hold(&booted.answers);
}

fn archive(kernel: &Kernel, rocworker: &Path, tree: &Path) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.file("init", 0o755, INIT.as_bytes());
    archive.character_device("dev/console", 0o600, (5, 1));
    archive.copy("bin/busybox", 0o755, &real::program("busybox").unwrap());
    copy_program(&mut archive, &mut BTreeSet::new(), "bin/rocworker", rocworker);
    kernel.modules_into(&mut archive, &["amdgpu"]);
    copy_tree(&mut archive, tree, "smi");
    archive.finish()
}

/// Folders that the tools never read there, and that would not fit into the machine's memory.
const LEFT_OUT: &[&str] = &["doc", "gconv", "idlelib", "locale", "man", "perl5", "pydoc_data", "zoneinfo"];

fn copy_tree(archive: &mut Archive, folder: &Path, path: &str) {
    archive.folder(path);
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let (from, path) = (entry.path(), format!("{path}/{name}"));
        let stat = fs::symlink_metadata(&from).unwrap();
        if stat.is_symlink() {
            archive.link(&path, fs::read_link(&from).unwrap().to_str().unwrap());
        } else if stat.is_file() {
            archive.copy(&path, stat.permissions().mode() & 0o777, &from);
        } else if stat.is_dir() && !LEFT_OUT.contains(&name.as_str()) {
            copy_tree(archive, &from, &path);
        }
    }
}

#[track_caller]
fn hold(answers: &Answers) {
    for step in ["prepare", "amdgpu"] {
        assert_eq!(answers.of(step).status, 0, "{:#?}", answers.of(step));
    }
    // Both end with 0 before the driver is there, and have no reading.
    let before = answers.of("rocm-smi-without-driver");
    assert_eq!((before.status, before.stdout.trim()), (0, ""), "{before:#?}");
    assert!(before.stderr.contains("amdgpu not found in modules"), "{before:#?}");
    no_readings(answers.said("metrics-without-driver"));

    // Debian's driver has no version of its own: rocm-smi gives the kernel's release in its place, rocworker nothing.
    let rocm_smi: Value = serde_json::from_str(answers.said("rocm-smi")).unwrap();
    assert_eq!(rocm_smi, json!({"system": {"Driver version": answers.said("release")}}));
    let detect: Value = serde_json::from_str(answers.said("detect")).unwrap();
    assert_eq!(detect["amdgpu"], json!({"loaded": true, "version": null, "srcversion": null}), "{detect:#}");

    // amd-smi calls it an error that there is no GPU; rocm-smi and rocworker do not.
    let amd_smi = answers.of("amd-smi");
    assert!(
        amd_smi.status != 0 && amd_smi.stderr.contains("Unable to detect any GPU devices"),
        "{amd_smi:#?}"
    );
    no_readings(answers.said("metrics"));
}

/// The only card is the one that no driver drives: it has an identity and no reading, least of all a zero.
#[track_caller]
fn no_readings(metrics: &str) {
    let series = exposition::parse(metrics);
    let of_cards: Vec<_> = series.iter().filter(|it| !it.label("pci").is_empty()).collect();
    let told: Vec<_> = of_cards.iter().map(|it| (it.name.as_str(), it.label("pci"), it.value)).collect();
    assert_eq!(told, [("rocm_gpu_info", "0000:00:05.0", 1.0)], "{metrics}");
    assert_eq!(of_cards[0].label("driver_version"), "", "{metrics}");
    assert!(series.iter().any(|it| it.name == "rocm_exporter_build_info"), "{metrics}");
}
