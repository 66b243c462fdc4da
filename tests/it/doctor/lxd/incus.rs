//! A real Incus on a laid-out machine: it lists the machine's cards, takes the commands, and its container has the nodes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use layout::{Machine, Nodes};
use serde_json::Value;
use support::stage::stdout;
use support::{real, rootfs};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// Sets the stage, and makes a container `c1` that is stopped, with busybox in it.
const SET: &str = include_str!("incus.sh");

/// Begins in a cgroup of its own, `$1`.
const BEGIN: &str = r#"cgroup=$1; shift; mkdir "$cgroup"; echo 0 >"$cgroup/cgroup.procs"; exec "$@""#;

struct Incus {
    tree: PathBuf,
    dir: TempDir,
    cgroup: PathBuf,
}

/// cgroups outlive their processes.
impl Drop for Incus {
    fn drop(&mut self) {
        remove(&self.cgroup);
    }
}

fn remove(cgroup: &Path) {
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove(&entry.path());
        }
    }
    fs::remove_dir(cgroup).ok();
}

impl Incus {
    /// `group`: the container's /etc/group.
    #[track_caller]
    fn on(machine: &Machine, group: &str) -> Option<Self> {
        let [tree] = real::require_made(["ROCWORKER_INCUS_TRIXIE"], &["unshare", "busybox"])?;
        if !real::require_root(&["pivot_root"]) {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("machine");
        fs::create_dir(&folder).unwrap();
        machine.lay_out(&folder, Nodes::Real).unwrap();
        let files = dir.path().join("rootfs");
        rootfs::lay_out(&files);
        fs::create_dir(files.join("sbin")).unwrap();
        symlink("../bin/busybox", files.join("sbin/init")).unwrap();
        fs::write(files.join("etc/inittab"), "::sysinit:/bin/sleep 600\n").unwrap();
        fs::write(files.join("etc/group"), group).unwrap();
        // Where there are hierarchies of cgroup v1 too, v2 stands beside them.
        let both = Path::new("/sys/fs/cgroup/unified");
        let v2 = if both.is_dir() { both } else { Path::new("/sys/fs/cgroup") };
        let name = dir.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
        Some(Self { tree, cgroup: v2.join(format!("rocworker-incus-{name}")), dir })
    }

    /// What a script says on stdout.
    #[track_caller]
    fn say(&self, script: &str) -> String {
        let namespaces =
            ["unshare", "--cgroup", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"];
        let mut command = Command::new("sh");
        command
            .args(["-ec", BEGIN, "begin"])
            .arg(&self.cgroup)
            .args(namespaces)
            .args(["sh", "-c", SET, "incus"])
            .args([&*self.tree, self.dir.path()]);
        stdout(&command.args([PROGRAM, script]).output().unwrap())
    }
}

const RENDER: &str = "root:x:0:\nrender:x:992:\n";

/// tests/layout/src/sample.rs: card0 and renderD128 are NVIDIA's, card1 the W7900's, the others the MI300X's eight
/// partitions', of which Incus knows a PCI address only of the first.
const ADVISED: &str = "\
incus config device add c1 kfd unix-char source=/dev/kfd path=/dev/kfd gid=992 mode=0660
incus config device add c1 gpu0 gpu pci=0000:03:00.0 gid=992 mode=0660
incus config device add c1 gpu1 gpu pci=0000:c1:00.0 gid=992 mode=0660
incus config device add c1 renderD131 unix-char source=/dev/dri/renderD131 path=/dev/dri/renderD131 gid=992 mode=0660
incus config device add c1 renderD132 unix-char source=/dev/dri/renderD132 path=/dev/dri/renderD132 gid=992 mode=0660
incus config device add c1 renderD133 unix-char source=/dev/dri/renderD133 path=/dev/dri/renderD133 gid=992 mode=0660
incus config device add c1 renderD134 unix-char source=/dev/dri/renderD134 path=/dev/dri/renderD134 gid=992 mode=0660
incus config device add c1 renderD135 unix-char source=/dev/dri/renderD135 path=/dev/dri/renderD135 gid=992 mode=0660
incus config device add c1 renderD136 unix-char source=/dev/dri/renderD136 path=/dev/dri/renderD136 gid=992 mode=0660
incus config device add c1 renderD137 unix-char source=/dev/dri/renderD137 path=/dev/dri/renderD137 gid=992 mode=0660
";

/// As a member of render, and as somebody else: past the node's mode there is no driver of this kernel behind it.
const TRY: &str = "for group in 992 993; do \
                     inside 'dd if=/dev/kfd of=/dev/null count=1 || true' --user 1000 --group $group; done";

#[test]
fn real_incus_takes_what_is_advised_and_its_container_has_amds_nodes_with_the_group_and_no_others() {
    let Some(incus) = Incus::on(&Machine::demo(), RENDER) else { return };
    let said = incus.say(&format!(
        "rocworker lxd advise --container c1 >/tmp/advice
         grep -v '^#' /tmp/advice
         sh -e /tmp/advice >&2
         echo SHOWN; incus config device show c1
         incus start c1 >&2
         echo NODES; inside 'stat -c \"%n %a %u:%g %t:%T\" /dev/kfd /dev/dri/*'
         echo TRIED; {TRY}
         echo GONE; sed -n 's/^#   incus config device remove/incus config device remove/p' /tmp/advice >/tmp/remove
         sh -e /tmp/remove >&2
         incus config device show c1
         inside 'ls /dev/dri && test ! -e /dev/kfd'"
    ));
    let (advised, rest) = said.split_once("SHOWN\n").unwrap();
    assert_eq!(advised, ADVISED);
    let (shown, rest) = rest.split_once("NODES\n").unwrap();
    for (device, key) in
        [("gpu1:", "pci: 0000:c1:00.0"), ("kfd:", "gid: \"992\""), ("renderD137:", "type: unix-char")]
    {
        assert!(shown.contains(device) && shown.contains(key), "{device} {key} in {shown}");
    }
    let (nodes, rest) = rest.split_once("TRIED\n").unwrap();
    let mut expected = "/dev/kfd 660 0:992 f1:0\n/dev/dri/card1 660 0:992 e2:1\n".to_owned();
    expected += "/dev/dri/card2 660 0:992 e2:2\n";
    for minor in 129..=137 {
        expected += &format!("/dev/dri/renderD{minor} 660 0:992 e2:{minor:x}\n");
    }
    assert_eq!(nodes, expected);
    let (tried, gone) = rest.split_once("GONE\n").unwrap();
    let [member, other] = tried.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(member.contains("No such device or address"), "{member}");
    assert!(other.contains("Permission denied"), "{other}");
    assert_eq!(gone, "{}\n", "no device is left, and no node");
}

/// What the advice says of other ways, seen with the same Incus.
#[test]
fn real_incus_gives_a_plain_gpu_every_vendors_card_for_root_alone_and_no_kfd() {
    let Some(incus) = Incus::on(&Machine::demo(), RENDER) else { return };
    let said = incus.say(
        "incus config device add c1 all gpu >&2
         incus start c1 >&2
         inside 'stat -c \"%n %a %u:%g\" /dev/dri/card0 /dev/dri/renderD129; ls /dev/kfd || true'
         incus config device add c2 gpu0 gpu pci=0000:03:00.0 2>&1 || true",
    );
    let [nvidia, amd, kfd, other] = said.lines().collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((nvidia, amd), ("/dev/dri/card0 660 0:0", "/dev/dri/renderD129 660 0:0"));
    assert!(kfd.contains("No such file"), "{kfd}");
    assert!(other.contains("not found"), "what doctor has as the likely name: {other}");
}

#[test]
fn real_incus_says_in_json_what_is_passed_and_why_a_gid_is_not_known() {
    let Some(incus) = Incus::on(&Machine::demo(), "root:x:0:\n") else { return };
    let said = incus.say("rocworker --output json lxd advise --container c1");
    let answer: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&answer["client"], &answer["source"]),
        (&"incus".into(), &"incus query /1.0/resources".into())
    );
    assert_eq!(
        (&answer["gid"], &answer["cdi"]),
        (&Value::Null, &Value::Null),
        "Incus takes no CDI name of AMD's"
    );
    let cards = answer["cards"].as_array().unwrap();
    let passed: Vec<_> = cards.iter().filter_map(|card| card["device"].as_str()).collect();
    let partitions = (131..=137).map(|minor| format!("renderD{minor}"));
    assert_eq!(
        passed,
        ["gpu0".to_owned(), "gpu1".to_owned()].into_iter().chain(partitions).collect::<Vec<_>>()
    );
    assert_eq!((&cards[0]["pci"], &cards[0]["why_not"]), (&"0000:01:00.0".into(), &"not AMD's".into()));
    let note = answer["notes"][0].as_str().unwrap();
    assert!(note.contains("c1/etc/group names no group render: make it inside with groupadd"), "{note}");
}

#[test]
fn real_incus_on_a_machine_without_amds_cards_leaves_nothing_to_advise() {
    let machine = Machine::new().gpu(layout::Gpu::nvidia("0000:01:00.0", 0x2704).card(0).render(128));
    let Some(incus) = Incus::on(&machine, RENDER) else { return };
    let said = incus.say("rocworker lxd advise 2>&1 || echo ended with $?");
    let expected = "rocworker: no card of AMD's can be passed into a container: 0000:01:00.0 (vendor 10de): not AMD's\n\
                    ended with 1\n";
    assert_eq!(said, expected);
}
