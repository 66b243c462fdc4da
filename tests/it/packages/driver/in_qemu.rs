//! A driver that real dkms has built, in a machine whose kernel can load it: built, installed, loaded, and another one
//! loaded in its place.

use std::collections::BTreeSet;
use std::path::Path;

use lab::key::Key;
use lab::machine::Machine;
use lab::repository::Repository;
use lab::server::Server;
use lab::{standins, systems};
use qemu_machine::answers::Answers;
use qemu_machine::archive::Archive;
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use qemu_machine::libraries::copy_program;
use serde_json::Value;
use support::real;

const DRIVER: &str = "1:6.16.13.30300300-2327507.22.04";
const SOURCE: &str = "6.16.13-2327507.22.04";

/// kmod's own programs come before busybox'. What dkms installs stands aside at first, and is put there as dkms does.
const STEPS: &str = r#"
export PATH=/kmod:/bin
K=$(uname -r)
doctor() { rocworker doctor --output json; }
step built doctor
ln -s "$(cat /aside/link)" "/var/lib/dkms/amdgpu/kernel-$K-x86_64"
step dangling doctor
mv "/aside/updates" "/lib/modules/$K/updates"
step installed doctor
step modprobe modprobe amdgpu
step loaded doctor
step version cat /sys/module/amdgpu/version
step rmmod rmmod amdgpu
step kernels-own load amdgpu
step another doctor
echo '@@ done' >/dev/ttyS1
poweroff -f
"#;

/// The copy of this system in which the driver is built; its repository goes with the second.
fn built() -> Option<(Machine, String, (Repository, Server))> {
    let (machine, headers) = systems::with_headers()?;
    let release = headers.release().to_owned();
    machine.seem_to_run(&release);
    let key = Key::generate("Laboratory");
    let driver = [standins::amdgpu_dkms(DRIVER)];
    let mut repository = Repository::new(standins::ORIGIN, "stable", "main").with(driver);
    headers.offer_in(&mut repository);
    let server = Server::start(&repository.release(&key));
    machine.add_source(&repository, &server.url(), &key);
    machine.apt_get(&["update"]).well();
    machine.apt_get(&["install", "--no-install-recommends", "amdgpu-dkms", &headers.package()]).well();
    Some((machine, release, (repository, server)))
}

/// What the machine has: the program, kmod, the kernel's own driver, and what dkms has made.
fn archive(machine: &Machine, kernel: &Kernel) -> Archive {
    let mut archive = Archive::default();
    let mut libraries = BTreeSet::new();
    let init = [
        include_str!("../../../qemu/guest/first.sh"),
        include_str!("../../../qemu/guest/card.sh"),
        include_str!("../../../qemu/guest/steps.sh"),
        STEPS,
    ]
    .concat();
    archive.file("init", 0o755, init.as_bytes());
    archive.character_device("dev/console", 0o600, (5, 1));
    archive.copy("bin/busybox", 0o755, &real::program("busybox").unwrap());
    let rocworker = Path::new(env!("CARGO_BIN_EXE_rocworker"));
    copy_program(&mut archive, &mut libraries, "bin/rocworker", rocworker);
    let kmod = std::fs::canonicalize(real::program("modprobe").unwrap()).unwrap();
    copy_program(&mut archive, &mut libraries, "kmod/kmod", &kmod);
    archive.link("kmod/modinfo", "kmod");
    archive.link("kmod/modprobe", "kmod");
    kernel.modules_into(&mut archive, &["amdgpu"]);

    let release = kernel.release();
    let modules = format!("lib/modules/{release}");
    for name in ["dep", "dep.bin", "alias", "alias.bin", "softdep", "symbols", "symbols.bin", "builtin.bin"] {
        let file = format!("{modules}/modules.{name}");
        archive.copy(&file, 0o644, &machine.outside(&file));
    }
    let tree = "var/lib/dkms/amdgpu";
    let build = format!("{tree}/{SOURCE}/{release}/x86_64/module/amdgpu.ko");
    archive.copy(&build, 0o644, &machine.outside(&build));
    archive.link(&format!("{tree}/{SOURCE}/source"), &format!("/usr/src/amdgpu-{SOURCE}"));
    let installed = format!("{modules}/updates/dkms/amdgpu.ko");
    archive.copy("aside/updates/dkms/amdgpu.ko", 0o644, &machine.outside(&installed));
    let link = machine.outside(&format!("{tree}/kernel-{release}-x86_64"));
    let target = std::fs::read_link(link).unwrap();
    archive.file("aside/link", 0o644, target.to_str().unwrap().as_bytes());
    archive
}

/// Status, evidence and remedy of what doctor says of the driver's build.
#[track_caller]
fn said(answers: &Answers, step: &str) -> [String; 3] {
    let answer = answers.of(step);
    let checks: Value =
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    let mut of_build = checks["checks"].as_array().unwrap().iter();
    let check = of_build.find(|check| check["name"] == "dkms" && check["subject"] == "amdgpu");
    let check = check.unwrap_or_else(|| panic!("{checks:#}"));
    ["status", "evidence", "remedy"].map(|key| check[key].as_str().unwrap_or("").to_owned())
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_built_installed_and_loaded_are_told_apart_on_a_running_kernel() {
    let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox", "modprobe", "ldd", "xz"];
    let Some([kernels]) = real::require_made(["ROCWORKER_KERNELS"], &programs) else { return };
    let Some((machine, release, _served)) = built() else { return };
    let kernel = Kernel::unpacked_in(&kernels.join("bookworm"));
    assert_eq!(kernel.release(), release);
    let archive = archive(&machine, &kernel);
    let place = tempfile::tempdir().unwrap();
    let answers = boot(kernel.image(), &archive.finish(), place.path()).answers;

    let install = format!("dkms install amdgpu/{SOURCE} -k {release}");
    let [status, evidence, remedy] = said(&answers, "built");
    assert_eq!((status.as_str(), remedy.as_str()), ("failed", install.as_str()), "{evidence}");
    assert_eq!(
        evidence,
        format!("amdgpu {SOURCE} is built for the running kernel {release}, and not installed")
    );
    // Its file is gone, and depmod's index has it still.
    let gone = ["failed", "dkms has installed amdgpu, and modinfo finds no such module", "depmod -a"];
    assert_eq!(said(&answers, "dangling"), gone);
    // Why it is not loaded, the check `driver` says.
    let can_be_loaded =
        "dkms has built it, and modprobe takes that build; the driver's check says why it is not loaded";
    assert_eq!(said(&answers, "installed"), ["ok", can_be_loaded, ""]);
    assert_eq!(answers.said("modprobe"), "");
    assert_eq!(said(&answers, "loaded")[..2], ["ok", "the module that runs is the one that dkms has built"]);
    assert_eq!(answers.said("version"), SOURCE);
    assert_eq!(answers.said("rmmod"), "");
    assert_eq!(answers.said("kernels-own"), "");
    let [status, evidence, remedy] = said(&answers, "another");
    assert_eq!(
        (status.as_str(), evidence.as_str()),
        ("warning", "the module that runs is another one than dkms has built")
    );
    assert!(remedy.starts_with("reboot"), "{remedy}");
}
