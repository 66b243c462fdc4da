//! Says that the machine has to be restarted, until it was.

use root::{Attributes, Root};

use super::ran::{Ran, done, pending, skipped};
use crate::error::if_there;
use crate::model::Uptime;
use crate::receipt::Pending;

/// Where Debian and Ubuntu record that a reboot is required, and for which packages (update-notifier-common's
/// notify-reboot-required). Login messages and unattended-upgrades read these files, which go with the boot.
const REQUIRED: &str = "/run/reboot-required";
const PACKAGES: &str = "/run/reboot-required.pkgs";
const LIMIT: usize = 1 << 20;

/// The text that notify-reboot-required writes.
const TEXT: &str = "*** System restart required ***\n";
const OWN: &str = "rocworker";

/// Done once the boot is another than that in which it arose.
pub(super) fn reboot(root: &Root, reason: &str, due: &Pending) -> Ran {
    let (Some(since), Some(now)) = (&due.uptime, Uptime::now(root)) else {
        return skipped(format!("{reason}: rocworker cannot read here when the machine was started"));
    };
    if since.boot != now.boot {
        return done(format!("the machine was restarted since ({reason})"));
    }
    let problem = record(root).err().map_or_else(String::new, |error| format!(" ({error})"));
    pending(format!("{reason}: restart the machine when it may{problem}"))
}

/// Removes what rocworker recorded; what other programs recorded stays.
pub(crate) fn unrecord(root: &Root) -> Result<(), root::Error> {
    let Some(packages) = if_there(root.read_text(PACKAGES, LIMIT))? else { return Ok(()) };
    let others: String = packages.split_inclusive('\n').filter(|line| line.trim() != OWN).collect();
    if others == packages {
        return Ok(());
    }
    if !others.is_empty() {
        return root.write(PACKAGES, others.as_bytes(), Attributes { mode: 0o644, owner: None }).map(|_| ());
    }
    root.remove(PACKAGES)?;
    if root.read_text(REQUIRED, LIMIT).is_ok_and(|text| text == TEXT) {
        root.remove(REQUIRED)?;
    }
    Ok(())
}

fn record(root: &Root) -> Result<(), root::Error> {
    let how = Attributes { mode: 0o644, owner: None };
    if !root.exists(REQUIRED) {
        root.write(REQUIRED, TEXT.as_bytes(), how)?;
    }
    let mut packages = if_there(root.read_text(PACKAGES, LIMIT))?.unwrap_or_default();
    if packages.lines().all(|line| line.trim() != OWN) {
        if !packages.is_empty() && !packages.ends_with('\n') {
            packages.push('\n');
        }
        packages.push_str(OWN);
        packages.push('\n');
        root.write(PACKAGES, packages.as_bytes(), how)?;
    }
    Ok(())
}
