//! What is read of the driver on laid-out machines.

use layout::{Entry, Machine};
use packages::driver::dkms::State;
use packages::driver::{Driver, Enrolled, Signing};

use crate::packages::driver::machines::{
    Come, KERNEL, PACKAGE, SOURCE, beneath, debian, dkms, done, status, ubuntu,
};

fn read(machine: &Machine) -> Driver {
    let (_folder, root) = beneath(machine);
    Driver::read(&root)
}

/// dkms' own word for it, of the running kernel.
fn state(machine: &Machine) -> String {
    let driver = read(machine);
    match driver.dkms.as_ref().unwrap().state(KERNEL) {
        State::Unknown => "none".to_owned(),
        State::SourceGone(version) => format!("{}: source gone", version.name),
        State::Added(version) => format!("{}: added", version.name),
        State::Built(version, build) => format!("{}, {}: built", version.name, build.arch),
        State::Installed(version, build) => format!("{}, {}: installed", version.name, build.arch),
    }
}

#[test]
fn dkms_states_are_told_from_its_tree() {
    for (machine, expected) in [
        (ubuntu(), "none".to_owned()),
        (dkms(ubuntu(), SOURCE, KERNEL, Come::Added), format!("{SOURCE}: added")),
        (dkms(ubuntu(), SOURCE, KERNEL, Come::Built), format!("{SOURCE}, x86_64: built")),
        (dkms(ubuntu(), SOURCE, KERNEL, Come::Installed), format!("{SOURCE}, x86_64: installed")),
        // For another kernel than the one that runs.
        (dkms(ubuntu(), SOURCE, "6.8.0-40-generic", Come::Installed), format!("{SOURCE}: added")),
        // Two versions, the older of which is the installed one.
        (
            dkms(dkms(ubuntu(), "6.14.14-1", KERNEL, Come::Installed), SOURCE, KERNEL, Come::Built),
            "6.14.14-1, x86_64: installed".to_owned(),
        ),
        // A build that failed leaves a log and no module.
        (
            dkms(ubuntu(), SOURCE, KERNEL, Come::Added)
                .put(&format!("/var/lib/dkms/amdgpu/{SOURCE}/{KERNEL}/x86_64/log/make.log"), "error\n"),
            format!("{SOURCE}: added"),
        ),
        // A source that somebody removed; in a report, which has no sources, nothing says that.
        (
            dkms(ubuntu(), SOURCE, KERNEL, Come::Built)
                .remove(&format!("/usr/src/amdgpu-{SOURCE}"))
                .put("/usr/src/other/file", ""),
            format!("{SOURCE}: source gone"),
        ),
        (dkms(ubuntu(), SOURCE, KERNEL, Come::Built).remove("/usr/src"), format!("{SOURCE}, x86_64: built")),
        // The kernel's own module, which dkms keeps, is no version.
        (
            ubuntu().put(&format!("/var/lib/dkms/amdgpu/original_module/{KERNEL}/x86_64/amdgpu.ko"), "x"),
            "none".to_owned(),
        ),
    ] {
        assert_eq!(state(&machine), expected);
    }
}

#[test]
fn the_kernel_its_headers_and_its_compiler_are_read_beneath_the_root() {
    let kernel = read(&debian()).kernel.unwrap();
    assert_eq!((kernel.release.as_str(), kernel.has_headers), ("6.1.0-50-amd64", true));
    assert_eq!(kernel.compiler.as_deref(), Some("gcc-12"));
    assert_eq!(kernel.headers_package(), "linux-headers-6.1.0-50-amd64");
    assert!(!read(&ubuntu()).kernel.unwrap().has_headers);
    // A link to headers that were removed is none.
    let dangling =
        ubuntu().put(&format!("/lib/modules/{KERNEL}/build"), Entry::Link("/usr/src/gone".to_owned()));
    assert!(!read(&dangling).kernel.unwrap().has_headers);
    let why = read(&ubuntu().remove("/proc/sys/kernel/osrelease")).kernel.unwrap_err();
    assert!(why.contains("/proc/sys/kernel/osrelease"), "{why}");
}

#[test]
fn the_drivers_release_is_that_of_its_package() {
    assert_eq!(read(&done()).release().unwrap().to_string(), "30.30.3");
    assert_eq!(read(&ubuntu()).release(), None);
    let removed = status(&[])
        + &format!("Package: amdgpu-dkms\nStatus: deinstall ok config-files\nVersion: {PACKAGE}\n\n");
    assert_eq!(read(&ubuntu().put("/var/lib/dpkg/status", removed.as_str())).release(), None);
    let why = read(&ubuntu().remove("/var/lib/dpkg/status")).packages.unwrap_err();
    assert!(why.contains("no dpkg"), "{why}");
    for (text, release) in [("7.2.3\n", Some("7.2.3")), ("7.2.3-81\n", Some("7.2.3")), ("unknown\n", None)] {
        let rocm = read(&ubuntu().put("/opt/rocm/.info/version", text)).rocm;
        assert_eq!(rocm.map(|rocm| rocm.to_string()).as_deref(), release, "{text}");
    }
}

#[test]
fn a_module_of_nobodys_is_found_and_one_of_a_packages_is_not() {
    let file = format!("/lib/modules/{KERNEL}/updates/amdgpu.ko");
    let strays = |machine: &Machine| {
        let strays = read(machine).strays.unwrap();
        strays.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
    };
    let there = ubuntu().put(&file, "x").put("/var/lib/dpkg/info/other.list", "/.\n/etc\n");
    assert_eq!(strays(&there).as_slice(), std::slice::from_ref(&file));
    for owner in [format!("/.\n{file}\n"), format!("/usr{file}\n")] {
        let list = "/var/lib/dpkg/info/oem-amdgpu.list";
        assert_eq!(strays(&there.clone().put(list, owner.as_str())), Vec::<String>::new());
    }
    assert_eq!(strays(&done()), Vec::<String>::new());
    // What dkms' folder holds is a stray where dkms does not know of it.
    let left = format!("/lib/modules/{KERNEL}/updates/dkms/amdgpu.ko.xz");
    assert_eq!(strays(&ubuntu().put(&left, "x")), [left]);
    // As the kernel's own build installs a module that it has built outside its tree, and depmod finds it.
    let deep = format!("/lib/modules/{KERNEL}/updates/drivers/gpu/drm/amd/amdgpu/amdgpu.ko");
    assert_eq!(strays(&done().put(&deep, "x")), [deep]);
    // A name that only begins so.
    let other = format!("/lib/modules/{KERNEL}/extra/amdgpu.ko.old");
    assert_eq!(strays(&ubuntu().put(&other, "x")), Vec::<String>::new());
}

/// The variable SecureBoot, off or on: four bytes of attributes, one of value.
fn secure_boot(machine: Machine, value: u8) -> Machine {
    let name = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    machine.put(name, Entry::File(vec![6, 0, 0, 0, value]))
}

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
const ENFORCED: &str = "/sys/module/module/parameters/sig_enforce";

#[test]
fn whether_modules_must_be_signed_is_the_kernels_word_first_and_then_the_firmwares() {
    let on = || secure_boot(ubuntu(), 1);
    for (machine, because) in [
        (ubuntu(), None),
        (secure_boot(ubuntu(), 0), None),
        (on(), Some("Secure Boot is on")),
        (
            on().put(LOCKDOWN, "none [integrity] confidentiality\n"),
            Some("the kernel is locked down (integrity)"),
        ),
        // shim's validation is turned off: the firmware checks, and the kernel takes everything.
        (on().put(LOCKDOWN, "[none] integrity confidentiality\n"), None),
        (ubuntu().put(ENFORCED, "Y\n").put(LOCKDOWN, "[none] integrity\n"), Some("module.sig_enforce")),
        (on().put(ENFORCED, "N\n"), Some("Secure Boot is on")),
    ] {
        match (read(&machine).signing, because) {
            (Signing::NotNeeded, None) => {}
            (Signing::Needed { because, .. }, Some(part)) if because.contains(part) => {}
            (signing, because) => panic!("{signing:?} is not {because:?}"),
        }
    }
}

#[test]
fn the_key_that_dkms_signs_with_is_looked_for_among_the_enrolled() {
    let on = |machine: Machine| machine.put(ENFORCED, "Y\n");
    let certificate: Vec<u8> = (0..=255).chain(0..=255).collect();
    let list = |certificate: &[u8]| Entry::File([&[7; 40], certificate, &[9; 30]].concat());
    let put = |machine: Machine, path: &str| machine.put(path, Entry::File(certificate.clone()));
    let (mok, shim) = ("/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der");
    let whole = "/sys/firmware/efi/mok-variables/MokListRT";
    let variable = "/sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23";
    let settings = "/etc/dkms/framework.conf.d/site.conf";
    let own = "# ours\nmok_signing_key=/etc/keys/site.key\nmok_certificate=\"/etc/keys/site.der\"\n";
    for (machine, expected, of) in [
        (on(debian()), Enrolled::NotMade, mok),
        (on(ubuntu()), Enrolled::NotMade, shim),
        (put(on(debian()), mok), Enrolled::No, mok),
        (put(on(debian()), mok).put(whole, list(&certificate)), Enrolled::Yes, mok),
        (put(on(debian()), mok).put(variable, list(&certificate)), Enrolled::Yes, mok),
        (put(on(debian()), mok).put(whole, list(&certificate[1..])), Enrolled::No, mok),
        (put(on(ubuntu()), shim).put(whole, list(&certificate)), Enrolled::Yes, shim),
        // A certificate that is cut to nothing is none.
        (on(debian()).put(mok, "").put(whole, list(&certificate)), Enrolled::NotMade, mok),
        (
            put(on(ubuntu()), "/etc/keys/site.der").put(settings, own).put(whole, list(&certificate)),
            Enrolled::Yes,
            "/etc/keys/site.der",
        ),
    ] {
        match read(&machine).signing {
            Signing::Needed { certificate, enrolled, .. } => {
                assert_eq!((enrolled, certificate.as_str()), (expected, of))
            }
            signing => panic!("{signing:?}"),
        }
    }
}
