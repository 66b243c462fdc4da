//! udev reads its rules again, and applies them.

use std::path::PathBuf;

use root::Root;

use super::ran::{PATIENCE, Ran, done};
use crate::command::Programs;

/// The devices are added, not changed: the system's own rules set a node's rights at no other event
/// (50-udev-default.rules), and what a rule that is gone had set would stay. They are named, so that no other node
/// loses what its owner changed by hand.
pub(super) fn udev(root: &Root, programs: &Programs, devices: &[PathBuf]) -> Ran {
    let there: Vec<&str> =
        devices.iter().filter(|device| root.exists(device)).filter_map(|device| device.to_str()).collect();
    let trigger = [&["udevadm", "trigger", "--action=add", "--settle"], there.as_slice()].concat();
    let reloaded = programs.run(&["udevadm", "control", "--reload"], PATIENCE);
    let ran = match there.as_slice() {
        // Without a name udevadm would take every device of the machine.
        [] => reloaded,
        _ => reloaded.and_then(|_| programs.run(&trigger, PATIENCE)),
    };
    ran.map_err(|error| error.to_string())?;
    done(format!("udev has read its rules again and applied them to {} devices", there.len()))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests lay out a stand-in for udevadm")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::effects::Came;
    use crate::model::Outcome;

    /// The calls of a stand-in for udevadm, one in a line, on a machine with these devices.
    fn called(devices: &[&str], there: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let calls = folder.path().join("calls");
        let program = folder.path().join("udevadm");
        fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> {}\n", calls.display())).unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        for device in there {
            fs::create_dir_all(folder.path().join(device.trim_start_matches('/'))).unwrap();
        }
        let programs = Programs::in_folders(folder.path());
        let devices: Vec<PathBuf> = devices.iter().map(PathBuf::from).collect();
        let came = udev(&Root::open(folder.path()).unwrap(), &programs, &devices);
        assert!(matches!(came, Ok(Came::Ended(Outcome::Done, _))));
        fs::read_to_string(calls).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn udev_reads_its_rules_and_adds_the_devices_that_are_there_and_no_others() {
        let [kfd, render] = ["/sys/class/kfd/kfd", "/sys/class/drm/renderD128"];
        let trigger = format!("trigger --action=add --settle {kfd} {render}");
        assert_eq!(called(&[kfd, render], &[kfd, render]), ["control --reload", trigger.as_str()]);
        let trigger = format!("trigger --action=add --settle {kfd}");
        assert_eq!(called(&[kfd, render], &[kfd]), ["control --reload", trigger.as_str()]);
        // Without a name it would go over every device of the machine.
        assert_eq!(called(&[kfd], &[]), ["control --reload"]);
        assert_eq!(called(&[], &[]), ["control --reload"]);
    }
}
