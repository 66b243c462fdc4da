//! Several machines on this one, each with Debian's sshd: what a fleet is for tests.
//!
//! A [`Fleet`] is the machine that asks: a process, network, mount and uts namespace of its own, with a bridge. Each
//! [`Machine`] hangs on that bridge by a veth pair and has namespaces of its own inside the asker's: its /etc, /sys, /dev,
//! users and host key. Nothing of this host changes: all of their files are in memory inside those namespaces. They end
//! with the asker's process 1, which waits for the end of a pipe that the test holds; so they do when the test is killed.
//!
//! What a FUSE mount serves must be mounted before the fleet begins, and must end after it.

mod fleet;
mod machine;

pub use fleet::Fleet;
pub use machine::{Machine, Setup, Shell, Sudo};

use crate::real;

/// Whether the calling test can have a fleet.
///
/// # Panics
/// Where [`real::require`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn require() -> bool {
    real::require_root(&["sshd", "ssh", "ssh-keygen", "ip", "unshare", "nsenter", "busybox", "sudo"])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Fleet, Machine, Shell, Sudo};

    fn ssh(fleet: &Fleet, host: &str, script: &str) -> crate::said::Said {
        fleet.run(&["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=3", host, script])
    }

    fn set_up(fleet: &Fleet) -> [Machine<'_>; 3] {
        std::thread::scope(|threads| {
            let dash = threads.spawn(|| {
                fleet.machine("gpu1", |m| {
                    m.laid(layout::Machine::instinct(1, 1)).user("ops", Sudo::NoPassword)
                })
            });
            let busybox = threads.spawn(|| {
                fleet.machine("gpu2", |m| {
                    m.shell(Shell::Busybox).user("ops", Sudo::Password).user("guest", Sudo::No)
                })
            });
            let narrow = threads.spawn(|| fleet.machine("gpu3", |m| m.sshd("PubkeyAuthentication no")));
            [dash.join().unwrap(), busybox.join().unwrap(), narrow.join().unwrap()]
        })
    }

    #[test]
    fn real_machines_answer_by_their_names_each_with_files_users_and_programs_of_its_own() {
        if !super::require() {
            return;
        }
        let fleet = Fleet::new();
        let [gpu1, gpu2, _gpu3] = set_up(&fleet);
        for machine in [&gpu1, &gpu2] {
            let said = ssh(&fleet, machine.name(), "uname -n; id -u; ls -d /sys/class/drm/renderD* | wc -l");
            let cards = u8::from(machine.name() == "gpu1");
            assert_eq!(said.well(), format!("{}\n0\n{cards}\n", machine.name()));
        }
        assert_eq!(ssh(&fleet, "gpu1", "stat -c %t /dev/dri/renderD128").well(), "e2\n");
        assert_eq!(gpu1.shell("readlink -f /bin/sh").well(), "/usr/bin/dash\n");
        assert_eq!(
            ssh(&fleet, "gpu2", "readlink -f /proc/$$/exe; readlink -f $(which od)").well(),
            "/usr/bin/busybox\n/usr/bin/busybox\n"
        );
        assert_eq!(ssh(&fleet, "ops@gpu1", "sudo -n id -u").well(), "0\n");
        assert!(ssh(&fleet, "ops@gpu2", "sudo -n id -u").badly().contains("a password is required"));
        assert!(ssh(&fleet, "guest@gpu2", "sudo -n id -u").badly().contains("password"));
        assert!(ssh(&fleet, "gpu3", "true").badly().contains("Permission denied"));
    }

    #[test]
    fn real_machines_break_as_they_are_told() {
        if !super::require() {
            return;
        }
        let fleet = Fleet::new();
        let gpu1 = fleet.machine("gpu1", |m| m);
        gpu1.stop_sshd();
        let said = ssh(&fleet, "gpu1", "true").badly();
        assert!(said.contains("timed out"), "{said}");
        gpu1.continue_sshd();
        assert_eq!(ssh(&fleet, "gpu1", "echo there").well(), "there\n");
        gpu1.change_key();
        let said = ssh(&fleet, "gpu1", "true").badly();
        assert!(said.contains("REMOTE HOST IDENTIFICATION HAS CHANGED"), "{said}");
        gpu1.kill_sshd();
        assert!(ssh(&fleet, "gpu1", "true").badly().contains("Connection refused"));
        gpu1.start_sshd();
        gpu1.fill_disk();
        let said = gpu1.shell("head -c 100000 /dev/zero > /var/tmp/some").badly();
        assert!(said.contains("No space left"), "{said}");
        gpu1.kill();
        assert!(!ssh(&fleet, "gpu1", "true").badly().is_empty());
    }

    #[test]
    fn real_machines_with_systemd_start_units_and_keep_their_journal() {
        if !super::require() {
            return;
        }
        let fleet = Fleet::new();
        let gpu1 = fleet.machine("gpu1", |m| m.systemd());
        gpu1.put("etc/systemd/system/says.service", "[Service]\nType=oneshot\nExecStart=echo so it is\n");
        let said =
            ssh(&fleet, "gpu1", "systemctl daemon-reload; systemctl start says; journalctl -o cat -u says");
        assert!(said.clone().well().contains("so it is\n"), "{said:?}");
        assert_eq!(ssh(&fleet, "gpu1", "systemctl is-active ssh").well(), "active\n");
    }

    #[test]
    fn real_machines_end_with_the_process_that_began_them() {
        if !super::require() {
            return;
        }
        // A process that is killed before it can clear up: its end of the pipe closes.
        let mut fleet = Fleet::new();
        fleet.machine("gpu1", |m| m.laid(layout::Machine::instinct(1, 1)));
        let asker = Path::new("/proc").join(fleet.pid());
        assert!(asker.exists());
        fleet.forsake();
        crate::waiting::eventually("the asker has ended", || !asker.exists());
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        assert!(!mounts.contains("/mnt/gpu1"), "{mounts}");
        assert!(!Path::new("/mnt/gpu1").exists());
    }
}
