//! podman of the system that the test runs on, as root and as an ordinary user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use layout::Machine;
use support::document::quick_start;
use support::stage::{Stage, stdout};
use support::{real, rootfs};

use crate::readme::operator::{DIST, listed, put_source};

/// The README's user.
const USER: &str = "ann";

/// Keeps podman's storage and cgroups off this machine; without CAP_SYS_RESOURCE it may raise no limit.
fn configure(stage: &Stage, runtime: &str) {
    let folder = stage.folder().display();
    stage.put(
        "etc/containers/containers.conf",
        &format!(
            "[containers]\nnetns = \"none\"\n\
             default_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n\
             [engine]\nruntime = \"{runtime}\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n"
        ),
    );
    stage.put(
        "etc/containers/storage.conf",
        &format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{folder}/podman\"\nrunroot = \"{folder}/podman-run\"\n"
        ),
    );
    stage.put("etc/containers/policy.json", "{\"default\": [{\"type\": \"insecureAcceptAnything\"}]}\n");
}

/// The image of a line that runs a container.
fn image(line: &str) -> &str {
    line.split_whitespace().find(|word| word.contains("busybox")).unwrap()
}

#[test]
fn real_the_readmes_quick_start_gives_containers_of_root_and_of_a_user_one_gpu() {
    let needed = ["podman", "runc", "crun", "newuidmap", "useradd", "setpriv", "unshare", "busybox", "dpkg"];
    let Some([made]) = real::require_made(["ROCWORKER_DIST"], &needed) else { return };
    if !real::require_root(&["unshare"]) {
        return;
    }
    let (commands, rest) = quick_start("podman");
    let (first, commands) = commands.split_first().unwrap();
    assert_eq!(first, DIST);
    let (container, before) = commands.split_last().unwrap();
    let [rootless] = rest.as_slice() else { panic!("{rest:?}") };
    let (joins, of_user) = rootless.trim_end().split_once('\n').unwrap();
    assert!(joins.contains(USER), "{joins}");

    // crun is what gives a user's container the user's groups. Root's containers run by runc, because crun refuses this
    // machine's cgroups of both versions; without root podman makes none.
    let stage = Stage::set(&Machine::demo());
    put_source(&stage, &made);
    configure(&stage, "runc");
    let folder: &Path = stage.folder();
    rootfs::lay_out(&folder.join("rootfs"));
    for open in [folder, &folder.join("rootfs")] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let folder = folder.display();
    let image = image(container);
    // The open fails with ENXIO where the user may open the node: no driver of this kernel answers to its number.
    let opens = of_user.replace("ls /dev/dri", "sh -c ': < /dev/dri/renderD129' 2>&1 || true");
    assert_ne!(opens, of_user);
    let alone = opens.replace("--group-add keep-groups ", "");
    assert_ne!(alone, opens);
    fs::write(
        stage.folder().join("user.sh"),
        format!(
            "set -e\nexport HOME={folder}/home XDG_RUNTIME_DIR={folder}/run CONTAINERS_STORAGE_CONF={folder}/user.conf\n\
             cd\npodman import {folder}/image.tar {image} >&2\n{of_user}\necho ---\n{opens}\necho ---\n{alone}\n"
        ),
    )
    .unwrap();
    fs::write(stage.folder().join("user.conf"), "[storage]\ndriver = \"vfs\"\n").unwrap();
    // dpkg's overrides on the stage name groups of this system, which the laid-out machine does not have.
    let said = stage.shell(&format!(
        ": > /var/lib/dpkg/statoverride\ncd {folder}/source\n\
         {{\n{before}\ntar -C {folder}/rootfs -c . -f {folder}/image.tar\npodman import {folder}/image.tar {image}\n\
         getent group render || groupadd --gid 992 render\n\
         useradd --home-dir {folder}/home {USER}\n{joins}\n\
         mkdir {folder}/home {folder}/run\nchown {USER} {folder}/home {folder}/run\n\
         umount /sys/fs/cgroup/unified\nsed -i s/runc/crun/ /etc/containers/containers.conf\n}} >&2\n\
         sed s/crun/runc/ /etc/containers/containers.conf > {folder}/root.conf\n\
         CONTAINERS_CONF={folder}/root.conf {container}\necho ---\n\
         setpriv --reuid {USER} --regid {USER} --init-groups sh {folder}/user.sh\n",
        before = before.join("\n"),
    ));
    let said = stdout(&said);
    let [of_root, of_user, opened, alone] = said.split("---\n").collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(listed(of_root), ["card1", "renderD129"]);
    assert_eq!(listed(of_user), ["card1", "renderD129"]);
    assert!(opened.contains("No such device or address"), "{opened}");
    assert!(alone.contains("Permission denied"), "{alone}");
}
