//! Whether amdgpu is live, and bound to AMD's cards.

use check::{APPLY, About, Check};
use inventory::{Gpu, Problem};
use packages::driver::{Dkms, Hindrances, installed};

use super::machine::Subject;

const NAME: &str = "driver";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let mut checks = vec![module(subject)];
    checks.extend(
        subject.cards().map(|(address, gpu)| bound(About::one(NAME, address.to_string()), subject, gpu)),
    );
    Ok(checks)
}

fn module(subject: &Subject<'_>) -> Check {
    let about = About::one(NAME, "amdgpu");
    let module = &subject.facts.inventory.amdgpu;
    let loaded = match &module.loaded {
        Ok(loaded) => *loaded,
        Err(unknown) => return about.skipped(format!("whether it is loaded is not known: {unknown}")),
    };
    if loaded {
        return about.ok(match (&module.version, &module.srcversion) {
            (Ok(version), _) => format!("loaded: AMD's build, version {version}"),
            (Err(_), Ok(srcversion)) => format!("loaded: the kernel's own, srcversion {srcversion}"),
            (Err(_), Err(_)) => "loaded: the kernel's own".to_owned(),
        });
    }
    if !subject.has_amd() {
        return about.skipped("not loaded, and there is no AMD GPU that needs it");
    }
    // Each card says what the kernel's command line lacks.
    let is_left = |gpu: &Gpu| gpu.never_computes().is_some() || left_to_radeon(gpu).is_some();
    if subject.cards().all(|(_, gpu)| is_left(gpu)) {
        return about.skipped("not loaded: radeon has the cards");
    }
    let evidence = "not loaded";
    if subject.in_container() {
        return about.failed(
            evidence,
            "load it on the host (modprobe amdgpu): no module can be loaded from a container",
        );
    }
    if !Hindrances::read(subject.root).found.is_empty() {
        return about.skipped("not loaded: the check blacklist says why");
    }
    let dkms = Dkms::read(subject.root).ok().filter(|dkms| !dkms.versions.is_empty());
    match (is_built(subject), dkms) {
        (Some(false), Some(dkms)) if !is_installed(subject, &dkms) => {
            about.skipped("not loaded: the check dkms says why")
        }
        (Some(false), Some(_)) => about.failed(LACKS, "depmod -a, then modprobe amdgpu"),
        (Some(false), None) if subject.config.driver_release().is_some() => about.failed(LACKS, APPLY),
        (Some(false), None) => about.failed(
            LACKS,
            "install what brings it for this kernel: linux-modules-extra-KERNEL on Ubuntu, amdgpu-dkms otherwise",
        ),
        _ => about.failed(evidence, "modprobe amdgpu, and read dmesg when it does not stay"),
    }
}

const LACKS: &str = "not loaded, and the running kernel's modules.dep names no amdgpu";

fn is_installed(subject: &Subject<'_>, dkms: &Dkms) -> bool {
    let kernel = subject.root.read_text("/proc/sys/kernel/osrelease", 256);
    kernel.is_ok_and(|kernel| installed(dkms, kernel.trim()).is_ok())
}

/// Whether the running kernel has the module on disk; `None` when that is unknown.
fn is_built(subject: &Subject<'_>) -> Option<bool> {
    let release = subject.root.read_text("/proc/sys/kernel/osrelease", 256).ok()?;
    let modules =
        subject.root.read_text(format!("/lib/modules/{}/modules.dep", release.trim()), 16 << 20).ok()?;
    let is_amdgpu = |line: &str| line.split(':').next().is_some_and(|path| path.contains("/amdgpu.ko"));
    Some(modules.lines().any(is_amdgpu))
}

/// The parameters without which radeon keeps a card that KFD knows.
fn left_to_radeon(gpu: &Gpu) -> Option<&'static str> {
    gpu.problems.iter().find_map(|problem| match problem {
        Problem::LeftToRadeon(chip) => Some(chip.parameters()),
        _ => None,
    })
}

fn bound(about: About, subject: &Subject<'_>, gpu: &Gpu) -> Check {
    if let Some(never) = gpu.never_computes() {
        return about.skipped(format!("{never}: it never computes, by any driver"));
    }
    if let Some(parameters) = left_to_radeon(gpu) {
        let line = subject.root.read_text("/proc/cmdline", 64 << 10).unwrap_or_default();
        let is_set =
            parameters.split(' ').all(|parameter| line.split_whitespace().any(|word| word == parameter));
        let remedy = match is_set {
            true => "the kernel's command line leaves it to amdgpu: reboot, or see that amdgpu is built for this kernel".to_owned(),
            false => format!(
                "put {parameters} on the kernel's command line (GRUB_CMDLINE_LINUX, then update-grub), and reboot"
            ),
        };
        return about.warning("bound to radeon, which has no KFD: no container can use it", remedy);
    }
    let is_unfinished = gpu.problems.contains(&Problem::NoRenderNode);
    match gpu.driver.as_deref() {
        Some("amdgpu") if is_unfinished => about.failed(
            "amdgpu is bound, and sysfs names no render node: the driver did not finish",
            "read dmesg for amdgpu: missing firmware (firmware-amd-graphics, linux-firmware) is the usual reason",
        ),
        Some("amdgpu") => about.ok("bound to amdgpu"),
        Some(other) => about.warning(
            format!("bound to {other}, so no container of this machine can use it"),
            format!("leave it so when a virtual machine uses it; else unbind it from {other} and bind it to amdgpu"),
        ),
        // The check of the module reports this fault, with a remedy.
        None if subject.facts.inventory.amdgpu.loaded == Ok(false) => {
            about.skipped("no driver is bound, as amdgpu is not loaded")
        }
        None if subject.in_container() => {
            about.failed("no driver is bound", "read dmesg on the host for amdgpu and this card")
        }
        None => about.failed("no driver is bound", "read dmesg for amdgpu and this card"),
    }
}
