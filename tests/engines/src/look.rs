//! Commands that show which GPUs a container sees, and what happens when it opens a node.

use std::fs;
use std::path::Path;

use support::rootfs;

/// Prints each GPU node with its number, and what came of opening it for reading and writing.
///
/// The laid-out machine's numbers have no driver in this kernel: ENXIO says that the mode and the device cgroup let
/// it through; EPERM is the device cgroup's answer, EACCES the mode's.
const LOOK: &str = r#"
exec >"/seen/$1"
for node in $(find /dev/dri /dev/kfd -type c 2>/dev/null | sort); do
    case "$( { : <>$node; } 2>&1)" in
        *"No such device or address"*) outcome=open ;;
        *"Operation not permitted"*) outcome=denied ;;
        *"Permission denied"*) outcome=shut ;;
        *) outcome=strange ;;
    esac
    echo "$node $(stat -c '%t:%T' $node) $outcome"
done
"#;

/// Makes a node of the number that is given, and says what came of opening it. A name for the
/// same device that nobody handed out: only the device cgroup stands before it.
const FORGE: &str = r#"
exec >"/seen/$1"; shift
/bin/busybox rm -f /tmp/forged
/bin/busybox mknod /tmp/forged c "$1" "$2" || exit 9
case "$( { : <>/tmp/forged; } 2>&1)" in
    *"No such device or address"*) echo open ;;
    *"Operation not permitted"*) echo denied ;;
    *) echo strange ;;
esac
"#;

/// The folder that every container has from outside: what it sees goes there. What it printed, `ctr` would lose now
/// and then: its copying ends with the container, sometimes before the last lines have come through.
pub const SEEN: &str = "/stage/seen";
/// The flag that puts it in.
pub const MOUNT: &str = "type=bind,src=/stage/seen,dst=/seen,options=rbind:rw";

/// The command that looks, and writes what it saw into this file.
pub fn look(file: &str) -> [&str; 3] {
    ["/bin/sh", "/look", file]
}

/// The command that forges a node.
pub fn forge<'a>(file: &'a str, major: &'a str, minor: &'a str) -> [&'a str; 5] {
    ["/bin/sh", "/forge", file, major, minor]
}

/// A root file system that can look.
///
/// # Panics
/// Where it cannot be laid out.
pub fn lay_out(folder: &Path) {
    rootfs::lay_out(folder);
    fs::create_dir(folder.join("seen")).unwrap();
    fs::write(folder.join("look"), LOOK).unwrap();
    fs::write(folder.join("forge"), FORGE).unwrap();
}
