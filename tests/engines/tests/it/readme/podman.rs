//! podman of the system that the test runs on.

use std::path::Path;

use layout::Machine;
use support::document::quick_start;
use support::stage::{Stage, stdout};
use support::{real, rootfs};

use crate::readme::operator::{DIST, listed, put_source};

/// Keeps podman's storage and cgroups off this machine; without CAP_SYS_RESOURCE it may raise no limit, and crun refuses
/// cgroups of both versions.
fn configure(stage: &Stage) {
    let folder = stage.folder().display();
    stage.put(
        "etc/containers/containers.conf",
        "[containers]\nnetns = \"none\"\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n\
         [engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n",
    );
    stage.put(
        "etc/containers/storage.conf",
        &format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{folder}/podman\"\nrunroot = \"{folder}/podman-run\"\n"
        ),
    );
    stage.put("etc/containers/policy.json", "{\"default\": [{\"type\": \"insecureAcceptAnything\"}]}\n");
}

#[test]
fn real_the_readmes_quick_start_gives_a_container_of_podman_one_gpu() {
    let Some([made]) =
        real::require_made(["ROCWORKER_DIST"], &["podman", "runc", "unshare", "busybox", "dpkg"])
    else {
        return;
    };
    if !real::require_root(&["unshare"]) {
        return;
    }
    let stage = Stage::set(&Machine::demo());
    put_source(&stage, &made);
    configure(&stage);
    let folder: &Path = stage.folder();
    rootfs::lay_out(&folder.join("rootfs"));
    let (commands, rest) = quick_start("podman");
    assert_eq!(rest, [""; 0]);
    let (first, commands) = commands.split_first().unwrap();
    assert_eq!(first, DIST);
    let (container, before) = commands.split_last().unwrap();
    let image = container.split_whitespace().find(|word| word.contains("busybox")).unwrap();
    let folder = folder.display();
    // dpkg's overrides on the stage name groups of this system, which the laid-out machine does not have.
    let said = stage.shell(&format!(
        ": > /var/lib/dpkg/statoverride\ncd {folder}/source\n{{\n{}\ntar -C {folder}/rootfs -c . | podman import - {image}\n}} >&2\n{container}\n",
        before.join("\n")
    ));
    assert_eq!(listed(&stdout(&said)), ["card1", "renderD129"]);
}
