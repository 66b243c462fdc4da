//! Whether the driver that runs is the one that dkms has built.

use packages::driver::dkms::{Build, Dkms, Version};
use packages::driver::module::{Modprobe, ModuleFile};
use packages::driver::{Attempt, Seen, Verdict, verify};

const KERNEL: &str = "6.8.0-45-generic";
const VERSION: &str = "6.16.13-2327507.24.04";
const FILE: &str = "/lib/modules/6.8.0-45-generic/updates/dkms/amdgpu.ko.zst";
const OURS: &str = "94F3309749DC6CE57A8A067";
const KERNELS: &str = "5AC1AB1E5AC1AB1E5AC1AB1";

fn dkms(kernel: &str, is_installed: bool) -> Dkms {
    let build = Build {
        kernel: kernel.to_owned(),
        arch: "x86_64".to_owned(),
        file: format!("/var/lib/dkms/amdgpu/{VERSION}/{kernel}/x86_64/module/amdgpu.ko.zst").into(),
        is_installed,
    };
    Dkms { versions: vec![Version { name: VERSION.to_owned(), has_source: true, builds: vec![build] }] }
}

fn file(path: &str, srcversion: Option<&str>) -> ModuleFile {
    let srcversion = srcversion.map(str::to_owned);
    ModuleFile { path: path.into(), srcversion }
}

fn attempt(version: &str, kernel: &str, boot_id: &str) -> Attempt {
    Attempt { version: version.to_owned(), kernel: kernel.to_owned(), boot_id: boot_id.to_owned() }
}

/// What stands on a machine on which the driver is installed, and whose kernel's own is loaded.
struct Installed {
    dkms: Dkms,
    ours: ModuleFile,
    modprobe: Modprobe,
}

impl Installed {
    fn new() -> Self {
        Self {
            dkms: dkms(KERNEL, true),
            ours: file(FILE, Some(OURS)),
            modprobe: Modprobe::Loads(FILE.into()),
        }
    }

    fn seen(&self) -> Seen<'_> {
        Seen {
            kernel: KERNEL,
            dkms: &self.dkms,
            built: Some(&self.ours),
            found: Some(&self.ours),
            modprobe: Some(&self.modprobe),
            is_loaded: true,
            srcversion: Some(KERNELS),
            boot_id: "boot-1",
            attempt: None,
        }
    }
}

/// What is wrong, and what to do.
#[track_caller]
fn wrong(verdict: Verdict) -> (String, String) {
    match verdict {
        Verdict::Wrong(stop) => (stop.why, stop.remedy),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_driver_is_loaded_or_loadable() {
    let machine = Installed::new();
    assert_eq!(verify(&Seen { srcversion: Some(OURS), ..machine.seen() }), Verdict::Loaded);
    assert_eq!(verify(&Seen { is_loaded: false, srcversion: None, ..machine.seen() }), Verdict::Loadable);
    // kmod names /usr/lib where /lib is a link to it.
    let merged = format!("/usr{FILE}");
    let machine =
        Installed { ours: file(&merged, Some(OURS)), modprobe: Modprobe::Loads(merged.into()), ..machine };
    assert_eq!(verify(&Seen { is_loaded: false, srcversion: None, ..machine.seen() }), Verdict::Loadable);
}

#[test]
fn another_build_that_is_loaded_takes_one_reboot_and_no_second() {
    let machine = Installed::new();
    let seen = machine.seen();
    let asked = attempt(VERSION, KERNEL, "boot-1");
    assert_eq!(verify(&seen), Verdict::Reboot(asked.clone()));
    // Built into a kernel that shows none.
    assert_eq!(verify(&Seen { srcversion: None, ..seen }), Verdict::Reboot(asked.clone()));
    // Asked for and not done yet.
    assert_eq!(verify(&Seen { attempt: Some(&asked), ..seen }), Verdict::Reboot(asked.clone()));
    // Done, and it did not help.
    let (why, remedy) = wrong(verify(&Seen { attempt: Some(&asked), boot_id: "boot-2", ..seen }));
    assert!(why.contains("was rebooted for amdgpu 6.16.13-2327507.24.04"), "{why}");
    assert!(remedy.contains("update-initramfs -u -k 6.8.0-45-generic"), "{remedy}");
    // Done, and it helped.
    let helped = Seen { attempt: Some(&asked), boot_id: "boot-2", srcversion: Some(OURS), ..seen };
    assert_eq!(verify(&helped), Verdict::Loaded);
    // Another driver, or another kernel, is another matter.
    for last in [attempt("6.14.14-1", KERNEL, "boot-1"), attempt(VERSION, "6.8.0-40-generic", "boot-1")] {
        let verdict = verify(&Seen { attempt: Some(&last), boot_id: "boot-2", ..seen });
        assert_eq!(verdict, Verdict::Reboot(attempt(VERSION, KERNEL, "boot-2")));
    }
}

#[test]
fn what_neither_loading_nor_a_reboot_puts_right_is_said() {
    let machine = Installed::new();
    let seen = machine.seen();
    let (none, built, of_older) = (Dkms::default(), dkms(KERNEL, false), dkms("6.8.0-40-generic", true));
    let version = Version { name: VERSION.to_owned(), has_source: true, builds: Vec::new() };
    let source_alone = Dkms { versions: vec![version.clone()] };
    let gone = |mut dkms: Dkms| {
        dkms.versions.iter_mut().for_each(|version| version.has_source = false);
        dkms
    };
    let (link_alone, of_older_gone) = (gone(source_alone.clone()), gone(of_older.clone()));
    let older = Version { name: "6.10.5".to_owned(), has_source: false, ..version.clone() };
    let beside_gone = Dkms { versions: vec![version, older] };
    let kernels_own = "/lib/modules/6.8.0-45-generic/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst";
    let (of_kernel, others, nameless) =
        (file(kernels_own, Some(KERNELS)), file(FILE, Some(KERNELS)), file(FILE, None));
    let runs = Modprobe::Runs("/bin/false".to_owned());
    let unloaded = Seen { is_loaded: false, srcversion: None, ..seen };
    for (seen, why, remedy) in [
        (Seen { dkms: &none, ..seen }, "dkms has no amdgpu", "install amdgpu-dkms"),
        (Seen { dkms: &source_alone, ..seen }, "and has not built it for the running kernel", "make.log"),
        (
            Seen { dkms: &of_older, ..seen },
            "and has not built it for the running kernel",
            "-k 6.8.0-45-generic",
        ),
        (Seen { dkms: &built, ..seen }, "6.8.0-45-generic, and not installed", "dkms install amdgpu/6.16.13"),
        (Seen { dkms: &link_alone, ..seen }, "its source is gone", "dkms remove amdgpu/6.16.13"),
        (Seen { dkms: &of_older_gone, ..seen }, "its source is gone", "rm -r /var/lib/dkms/amdgpu/6.16.13"),
        (Seen { dkms: &beside_gone, ..seen }, "and has not built it", "dkms install amdgpu/6.16.13"),
        (Seen { found: None, ..seen }, "modinfo finds no such module", "depmod -a"),
        (
            Seen { found: Some(&of_kernel), ..seen },
            "modprobe takes /lib/modules/6.8.0-45-generic/kernel/",
            "depmod",
        ),
        (
            Seen { found: Some(&others), ..seen },
            "is not the module that dkms has built",
            "dkms install --force",
        ),
        (Seen { built: None, found: Some(&nameless), ..seen }, "has no srcversion", "/sys/module/amdgpu"),
        (
            Seen { modprobe: Some(&runs), ..unloaded },
            "modprobe amdgpu runs \"/bin/false\"",
            "remove the line",
        ),
        (Seen { modprobe: None, ..unloaded }, "modprobe finds no amdgpu", "depmod -a"),
    ] {
        let said = wrong(verify(&seen));
        assert!(said.0.contains(why) && said.1.contains(remedy), "{why:?}, {remedy:?}: {said:?}");
    }
}
