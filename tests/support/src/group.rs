//! Control groups of machines that systemd boots. A cgroup namespace begins there, so that systemd takes its group for the
//! whole tree. Without a group of its own, it makes units' groups at the root. Two machines with a unit of one name then
//! write each other's device rules.

use std::fs;
use std::path::Path;

/// The start of a script: `join_group NAME` puts its shell into a new control group of this name. These are
/// the hierarchies in which systemd makes units' groups (`CGroupMask` in src/basic/cgroup-util.h).
pub(crate) const JOIN: &str = r#"
join_group() {
    for hierarchy in systemd unified cpu cpuacct blkio memory devices pids; do
        mkdir -p "/sys/fs/cgroup/$hierarchy/$1"
        echo $$ > "/sys/fs/cgroup/$hierarchy/$1/cgroup.procs"
    done
}
"#;

/// Removes a group from each hierarchy. All processes in it must have ended.
///
/// # Panics
/// Where it cannot be removed.
pub(crate) fn remove(name: &str) {
    for hierarchy in fs::read_dir("/sys/fs/cgroup").unwrap().map(Result::unwrap) {
        let group = hierarchy.path().join(name);
        if group.exists() {
            remove_with_all_below(&group);
        }
    }
}

fn remove_with_all_below(group: &Path) {
    for entry in fs::read_dir(group).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            remove_with_all_below(&entry.path());
        }
    }
    fs::remove_dir(group).unwrap();
}

#[cfg(test)]
mod tests {
    use layout::Machine;

    use crate::stage::{Stage, stdout};

    #[test]
    fn real_a_units_group_is_beneath_its_machines_and_goes_with_it() {
        if !crate::real::require_root(&["unshare", "systemctl"]) {
            return;
        }
        let unit = format!("group-{}.service", std::process::id());
        let of_this_machine = || {
            let found = std::process::Command::new("find").args(["/sys/fs/cgroup", "-name", &unit]).output();
            String::from_utf8(found.unwrap().stdout).unwrap()
        };
        let stage = Stage::set(&Machine::demo());
        stage.put(
            &format!("etc/systemd/system/{unit}"),
            "[Service]\nType=exec\nExecStart=/bin/sleep 60\nDevicePolicy=closed\nTasksMax=9\n",
        );
        let script = format!("systemctl start {unit}; ls -d /sys/fs/cgroup/devices/system.slice/{unit}");
        let said = stdout(&stage.boot(&script));
        assert_eq!(said, format!("/sys/fs/cgroup/devices/system.slice/{unit}\n"));
        assert_eq!(of_this_machine(), "");
    }
}
