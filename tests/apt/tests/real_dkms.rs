//! A driver that real dkms builds against the real headers of a kernel of Debian's.

use lab::key::Key;
use lab::repository::Repository;
use lab::server::Server;
use lab::standins::{self, ORIGIN};
use lab::systems;

#[test]
fn real_the_drivers_stand_in_is_built_for_the_kernel_whose_headers_are_there_and_is_gone_with_its_package() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let release = headers.release();
    machine.seem_to_run(release);
    assert_eq!(machine.call(&["uname", "-r"]).well().trim_end(), release);

    let key = Key::generate("Laboratory");
    let mut repository = Repository::new(ORIGIN, "stable", "main").with([standins::amdgpu_dkms("6.16.6")]);
    headers.offer_in(&mut repository);
    let server = Server::start(&repository.release(&key));
    machine.add_source(&repository, &server.url(), &key);
    machine.apt_get(&["update"]).well();
    let install = ["install", "--no-install-recommends", "amdgpu-dkms", &headers.package()];
    machine.apt_get(&install).well();

    let status = machine.call(&["dkms", "status"]).well();
    assert_eq!(status, format!("amdgpu/6.16.6, {release}, x86_64: installed\n"));
    let module = format!("/lib/modules/{release}/updates/dkms/amdgpu.ko");
    let magic = machine.call(&["modinfo", "--field", "vermagic", &module]).well();
    assert!(magic.starts_with(&format!("{release} ")), "{magic}");
    assert_eq!(machine.call(&["modinfo", "--field", "version", &module]).well(), "6.16.6\n");
    assert!(!machine.call(&["modinfo", "--field", "srcversion", &module]).well().trim_end().is_empty());

    machine.apt_get(&["purge", "amdgpu-dkms"]).well();
    assert_eq!(machine.call(&["dkms", "status"]).well(), "");
    assert!(!machine.outside(&module).exists());
}

#[test]
fn real_a_driver_without_headers_is_installed_and_not_built() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    machine.seem_to_run(headers.release());
    let key = Key::generate("Laboratory");
    let mut repository = Repository::new(ORIGIN, "stable", "main").with([standins::amdgpu_dkms("6.16.6")]);
    headers.offer_in(&mut repository);
    let server = Server::start(&repository.release(&key));
    machine.add_source(&repository, &server.url(), &key);
    machine.apt_get(&["update"]).well();
    machine.apt_get(&["install", "--no-install-recommends", "amdgpu-dkms"]).well();
    assert_eq!(machine.package("amdgpu-dkms").as_deref(), Some("install ok installed 6.16.6"));
    assert_eq!(machine.call(&["dkms", "status"]).well(), "amdgpu/6.16.6: added\n");
}
