//! Which device containerd takes for a CDI name that two specs have, and whether rocworker predicts it.

use std::fs;
use std::path::Path;

use cdi::{Siblings, refusal};
use real_engines::containerd::Containerd;
use real_engines::engine::CONTAINERD_2_1;
use real_engines::machine::{ASKED, seen_on_demo};
use root::Root;
use support::cdi_names::{self, BESIDE, NODE, Says, Takes};

/// `ctr` gives CDI's devices from containerd 2.0 on. Its library is the one of containerd's CRI.
#[test]
fn real_containerd_takes_the_device_that_rocworker_says_where_two_specs_have_a_name() {
    let Some(unpacked) = CONTAINERD_2_1.unpacked() else { return };
    let containerd = Containerd::without_wrapper(&CONTAINERD_2_1, &unpacked, ASKED);
    let machine = containerd.outside("/stage/machine");
    let cases = BESIDE.into_iter().chain([cdi_names::of_a_version_that_is_too_low(Takes::Rocworkers)]);
    for (n, (file, version, name, asked, takes, says)) in cases.enumerate() {
        let (id, case) = (format!("c{n}"), format!("{file} {version} {name}, asked for {asked}"));
        let beside = machine.join(file);
        fs::create_dir_all(beside.parent().unwrap()).unwrap();
        fs::write(&beside, cdi_names::spec(version, name)).unwrap();
        // The engine's root has no link at /var/run.
        let inside = format!("/{file}").replace("/run/", "/var/run/");
        let folder = Path::new(&inside).parent().unwrap().display().to_string();
        containerd.host().busybox(&["mkdir", "-p", &folder]).well();
        containerd.host().busybox(&["cp", &format!("/stage/machine/{file}"), &inside]).well();
        let device = format!("amd.com/gpu={asked}");
        let flags = ["--device", &device];
        match takes {
            Takes::Nothing => {
                let said = containerd.run(&flags, &id, &["/bin/true"]).badly();
                assert!(said.contains(&format!("unresolvable CDI devices {device}")), "{case}: {said}");
            }
            Takes::Others => assert_eq!(containerd.look(&flags, &id), format!("{NODE} open\n"), "{case}"),
            Takes::Rocworkers => {
                assert_eq!(containerd.look(&flags, &id), seen_on_demo(0..1, "open"), "{case}");
            }
        }
        // rocworker judges the names before it writes its spec.
        let root = Root::open(&machine).unwrap();
        let spec = machine.join("etc/cdi/amd.json");
        fs::rename(&spec, machine.join("amd.json")).unwrap();
        let siblings = Siblings::read(&root, Path::new("/etc/cdi/amd.json"), |_| false);
        fs::rename(machine.join("amd.json"), &spec).unwrap();
        let conflicts = siblings.conflicts(["0", "1", "all"].into_iter());
        assert_eq!(conflicts.len(), usize::from(says != Says::Nothing), "{case}: {conflicts:?}");
        assert_eq!(refusal(&conflicts).is_some(), says == Says::Refuses, "{case}: {conflicts:?}");

        fs::remove_file(&beside).unwrap();
        containerd.host().busybox(&["rm", &inside]).well();
    }
    containerd.assert_nothing_is_left();
}
