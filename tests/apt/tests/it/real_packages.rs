//! The packages and tarballs that stand for others' are what they say, by the word of apt, dpkg and tar.

use lab::faulty;
use lab::key::Key;
use lab::machine::Machine;
use lab::package::Package;
use lab::repository::Repository;
use lab::server::Server;
use lab::standins::{self, ORIGIN};
use lab::systems;
use lab::tarball::{Hostile, Tarball};

/// The machine with these packages to be had.
fn offered(machine: &Machine, packages: impl IntoIterator<Item = Package>) -> (Repository, Server) {
    let key = Key::generate("Laboratory");
    let mut repository = Repository::new(ORIGIN, "stable", "main").with(packages);
    let server = Server::start(&repository.release(&key));
    machine.add_source(&repository, &server.url(), &key);
    machine.apt_get(&["update"]).well();
    // What is served lies in the repository's folder.
    (repository, server)
}

#[test]
fn real_the_stand_ins_are_installed_by_amds_installer_and_removed_again() {
    let Some(machine) = systems::this() else { return };
    let key = Key::with_subkey("Laboratory");
    let mut repository = Repository::new(ORIGIN, "stable", "main").with([
        standins::rocm("6.3.2"),
        standins::rocminfo("1.0.0.60302"),
        standins::rocm_smi("7.4.0.60302", "a card\n"),
        standins::container_toolkit("1.2.0", "{\"kind\":\"amd.com/gpu\"}\n"),
    ]);
    let server = Server::start(&repository.release(&key));
    let source = repository.source(&server.url(), standins::AMDGPU_INSTALL_KEYRING.as_ref());
    standins::purge_debians_rocminfo(&machine);
    let installer = standins::amdgpu_install("6.3.60302", &source, key.binary()).build(&machine.shared());
    let before = machine.packages();
    machine.apt_get(&["install", &machine.shared_name(&installer)]).well();
    machine.call(&["amdgpu-install", "--usecase=rocm", "--yes"]).well();
    assert_eq!(machine.call(&["/opt/rocm/bin/rocminfo"]).well(), "rocminfo 1.0.0.60302\n");
    assert_eq!(machine.call(&["/opt/rocm/bin/rocm-smi", "--showall"]).well(), "a card\n");
    machine.apt_get(&["install", "amd-container-toolkit"]).well();
    machine.call(&["amd-ctk", "cdi", "generate", "--output=/run/amd.json"]).well();
    assert_eq!(machine.text("/run/amd.json").as_deref(), Some("{\"kind\":\"amd.com/gpu\"}\n"));
    let names = ["amd-container-toolkit", "amdgpu-install", "rocm", "rocminfo", "rocm-smi-lib"];
    machine.apt_get(&[&["purge"], &names[..]].concat()).well();
    assert_eq!(machine.packages(), before);
    assert!(!machine.outside("/opt/rocm").exists());
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_each_faulty_package_gives_the_trouble_that_it_is_named_for() {
    for (system, machine) in systems::both() {
        let other = || Package::new("lab-other", "1.0").conffile("/etc/lab-other.conf", "a\n");
        let _offered = offered(
            &machine,
            [
                other(),
                faulty::needs_what_is_missing("lab-missing"),
                faulty::displaces("lab-displaces", "lab-other"),
                faulty::needs_newer("lab-newer", "lab-other", "2.0"),
                Package::new("lab-other", "2.0").conffile("/etc/lab-other.conf", "b\n"),
                faulty::fails("lab-fails", "it cannot be configured"),
                faulty::fails_once("lab-fails-once", "not yet"),
                faulty::stays("lab-stays", "it cannot be removed"),
                faulty::asks("lab-asks"),
            ],
        );
        // Without `Dpkg::Use-Pty=0` apt's terminal takes the scripts' output, and passes it on to stdout.
        let apt_get = |arguments: &[&str]| machine.apt_get(&[&["-o", "Dpkg::Use-Pty=0"], arguments].concat());
        let is = |name: &str| machine.package(name);
        let said = machine.apt_get(&["install", "lab-missing"]).badly();
        assert!(
            said.contains("E: Unable to correct problems, you have held broken packages."),
            "{system}: {said}"
        );

        machine.apt_get(&["install", "lab-other=1.0"]).well();
        machine.apt_get(&["install", "lab-newer"]).well();
        assert_eq!(is("lab-other").as_deref(), Some("install ok installed 2.0"), "{system}");
        machine.apt_get(&["install", "lab-displaces"]).well();
        assert_eq!(is("lab-other").as_deref(), Some("deinstall ok config-files 2.0"), "{system}");

        let said = apt_get(&["install", "lab-fails"]).badly();
        assert!(said.contains("it cannot be configured"), "{system}: {said}");
        assert_eq!(is("lab-fails").as_deref(), Some("install ok half-configured 1.0"), "{system}");
        machine.apt_get(&["purge", "lab-fails"]).well();
        machine.apt_get(&["install", "lab-fails-once"]).badly();
        machine.apt_get(&["install", "lab-fails-once"]).well();

        machine.apt_get(&["install", "lab-stays"]).well();
        let said = apt_get(&["remove", "lab-stays"]).badly();
        assert!(said.contains("it cannot be removed"), "{system}: {said}");

        machine.apt_get(&["install", "lab-asks"]).well();
        assert_eq!(machine.text("/var/lib/lab-asks.answer").as_deref(), Some("blue\n"), "{system}");
    }
}

#[test]
fn real_tar_unpacks_therocks_tarball_and_names_what_a_hostile_one_brings() {
    let Some(machine) = systems::this() else { return };
    let list = |tarball: &Tarball| {
        machine.put("/run/lab/tarball", tarball.bytes());
        machine.call(&["tar", "-P", "-t", "-v", "-f", "/run/lab/tarball"]).well()
    };
    machine.put("/run/lab/tarball", Tarball::therock("7.10.0").bytes());
    machine.call(&["mkdir", "/opt/therock"]).well();
    machine.call(&["tar", "-x", "-f", "/run/lab/tarball", "-C", "/opt/therock"]).well();
    assert_eq!(machine.call(&["/opt/therock/bin/rocminfo"]).well(), "rocminfo of 7.10.0\n");
    let library = machine.call(&["readlink", "-f", "/opt/therock/lib/libamdhip64.so"]).well();
    assert_eq!(library, "/opt/therock/lib/libamdhip64.so.7.0\n");
    for (how, expected) in Hostile::ALL.into_iter().zip([
        " /etc/rocworker-lab-hostile\n",
        " ../rocworker-lab-hostile\n",
        " lib/out -> /etc\n",
        " lib/passwd link to /etc/passwd\n",
        " lib/mem\n",
        " bin/hostile\n",
    ]) {
        let listing = list(&Tarball::default().hostile(how));
        assert!(listing.contains(expected), "{how:?}: {listing}");
    }
    assert!(list(&Tarball::default().hostile(Hostile::SetUserId)).starts_with("-rwsr-xr-x 0/0"));
    assert!(list(&Tarball::default().hostile(Hostile::Device)).starts_with("crw-rw-rw- 0/0 "));
}
