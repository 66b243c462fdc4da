//! A driver that real dkms builds against the real headers of a kernel of Debian's, and that kernel loads in QEMU.

use lab::headers::Headers;
use lab::key::Key;
use lab::machine::Machine;
use lab::repository::Repository;
use lab::server::Server;
use lab::standins::{self, ORIGIN};
use lab::systems;
use qemu_machine::archive::Archive;
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use support::real;

const VERSION: &str = "6.16.6";
/// The guest's own part follows: the module is given to the kernel as it was built.
const INIT: &str = concat!(
    include_str!("../../../qemu/guest/first.sh"),
    include_str!("../../../qemu/guest/steps.sh"),
    "step release uname -r\nstep load insmod /amdgpu.ko\nstep srcversion cat /sys/module/amdgpu/srcversion\n\
     step version cat /sys/module/amdgpu/version\necho '@@ done' >/dev/ttyS1\npoweroff -f\n"
);

/// Installs the driver and these packages from a repository that has dkms and the headers, too.
#[track_caller]
fn install(machine: &Machine, headers: &Headers, further: &[&str]) {
    machine.seem_to_run(headers.release());
    let key = Key::generate("Laboratory");
    let mut repository = Repository::new(ORIGIN, "stable", "main").with([standins::amdgpu_dkms(VERSION)]);
    headers.offer_in(&mut repository);
    let server = Server::start(&repository.release(&key));
    machine.add_source(&repository, &server.url(), &key);
    machine.apt_get(&["update"]).well();
    machine.apt_get(&[&["install", "--no-install-recommends", "amdgpu-dkms"], further].concat()).well();
}

/// The path at which dkms puts the driver's module.
fn module(headers: &Headers) -> String {
    format!("/lib/modules/{}/updates/dkms/amdgpu.ko", headers.release())
}

#[track_caller]
fn modinfo(machine: &Machine, field: &str, module: &str) -> String {
    machine.call(&["modinfo", "--field", field, module]).well().trim_end().to_owned()
}

#[test]
fn real_the_drivers_stand_in_is_built_for_the_kernel_whose_headers_are_there_and_is_gone_with_its_package() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let release = headers.release();
    install(&machine, &headers, &[&headers.package()]);
    assert_eq!(machine.call(&["uname", "-r"]).well().trim_end(), release);
    let status = machine.call(&["dkms", "status"]).well();
    assert_eq!(status, format!("amdgpu/{VERSION}, {release}, x86_64: installed\n"));
    let module = module(&headers);
    let magic = modinfo(&machine, "vermagic", &module);
    assert!(magic.starts_with(&format!("{release} ")), "{magic}");
    assert_eq!(modinfo(&machine, "version", &module), VERSION);

    machine.apt_get(&["purge", "amdgpu-dkms"]).well();
    assert_eq!(machine.call(&["dkms", "status"]).well(), "");
    assert!(!machine.outside(&module).exists());
}

#[test]
fn real_a_driver_without_headers_is_installed_and_not_built() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    install(&machine, &headers, &[]);
    assert_eq!(machine.package("amdgpu-dkms"), Some(format!("install ok installed {VERSION}")));
    assert_eq!(machine.call(&["dkms", "status"]).well(), format!("amdgpu/{VERSION}: added\n"));
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_the_module_that_dkms_built_is_the_one_that_the_kernel_loads() {
    let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox"];
    let Some([kernels]) = real::require_made(["ROCWORKER_KERNELS"], &programs) else { return };
    let Some((machine, headers)) = systems::with_headers() else { return };
    let kernel = Kernel::unpacked_in(&kernels.join("bookworm"));
    assert_eq!(kernel.release(), headers.release());
    install(&machine, &headers, &[&headers.package()]);
    let module = module(&headers);

    let mut archive = Archive::default();
    archive.file("init", 0o755, INIT.as_bytes());
    archive.character_device("dev/console", 0o600, (5, 1));
    archive.copy("bin/busybox", 0o755, &real::program("busybox").unwrap());
    archive.copy("amdgpu.ko", 0o644, &machine.outside(&module));
    let place = tempfile::tempdir().unwrap();
    let answers = boot(kernel.image(), &archive.finish(), place.path()).answers;
    assert_eq!(answers.said("release"), headers.release());
    assert_eq!(answers.said("load"), "");
    assert_eq!(answers.said("version"), VERSION);
    assert_eq!(answers.said("srcversion"), modinfo(&machine, "srcversion", &module));
}
