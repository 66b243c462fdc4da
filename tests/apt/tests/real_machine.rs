//! Real apt and dpkg change a copy of this system, and nothing of this system.
#![allow(clippy::disallowed_methods, reason = "what is held against its old state is this system's own")]

use std::path::Path;

use lab::key::Key;
use lab::machine::Machine;
use lab::package::{Package, Script};
use lab::repository::Repository;
use lab::server::Server;
use support::real;

const PROGRAMS: &[&str] = &["apt-get", "dpkg-deb", "gpg", "unshare", "nsenter", "pivot_root"];

#[test]
fn real_an_installed_and_purged_package_leaves_the_copy_as_it_was_and_this_system_untouched() {
    if !real::require_root(PROGRAMS) {
        return;
    }
    let here = || std::fs::read("/var/lib/dpkg/status").unwrap();
    let before_here = here();
    let machine = Machine::of_this_system();
    let key = Key::generate("Laboratory");
    let package = Package::new("rocworker-lab", "1.0")
        .program("/usr/bin/rocworker-lab", "#!/bin/sh\necho it runs\n")
        .conffile("/etc/rocworker-lab.conf", "a=1\n")
        .script(Script::Postinst, "#!/bin/sh\nset -e\ntouch /var/lib/rocworker-lab.marked\n")
        .script(Script::Postrm, "#!/bin/sh\nset -e\nrm -f /var/lib/rocworker-lab.marked\n");
    let mut repository = Repository::new("Lab", "stable", "main").with([package]);
    let server = Server::start(&repository.release(&key));
    let before = machine.packages();
    machine.add_source(&repository, &server.url(), &key);
    machine.apt_get(&["update"]).well();
    machine.apt_get(&["install", "rocworker-lab"]).well();
    assert_eq!(machine.package("rocworker-lab").as_deref(), Some("install ok installed 1.0"));
    assert_eq!(machine.call(&["rocworker-lab"]).well(), "it runs\n");
    assert!(machine.outside("/var/lib/rocworker-lab.marked").exists());
    machine.apt_get(&["purge", "rocworker-lab"]).well();
    assert_eq!(machine.packages(), before);
    for path in ["/usr/bin/rocworker-lab", "/etc/rocworker-lab.conf", "/var/lib/rocworker-lab.marked"] {
        assert!(!machine.outside(path).exists(), "{path}");
        assert!(!Path::new(path).exists(), "{path} is on this system");
    }
    assert_eq!(here(), before_here);
}
