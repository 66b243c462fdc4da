//! Units as apply writes them for the packaged program: it is asked, on a laid-out machine, rather than guessed here.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use layout::{Machine, Nodes};

use super::files::{in_folder, name, read};
use crate::command::Command;
use crate::repository;

/// Files that make the laid-out machine one that systemd starts, with the package's programs in their places.
const BESIDE: [(&str, &str); 4] = [
    ("usr/bin/rocworker", ""),
    ("usr/bin/rocworker-exporter", ""),
    ("usr/lib/rocworker/runc-amd-wrapper", "\u{7f}ELF"),
    ("run/systemd/system/.keep", ""),
];
const WRITTEN: &str = "etc/systemd/system";

/// Units that apply alone writes: another package may have the exporter's file, and dpkg would refuse to unpack a second
/// one; the other one is for machines with a partition profile.
const APPLIED_ONLY: [&str; 2] = ["rocm-exporter.service", "rocworker-partition.service"];

/// Each unit of templates/systemd but [`APPLIED_ONLY`], rendered for /usr/bin/rocworker and a machine without
/// a configuration of its own.
pub(super) fn rendered(program: &Path, work: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let root = work.join("machine");
    Machine::demo().lay_out(&root, Nodes::Recorded).context("laying a machine out")?;
    for (path, text) in BESIDE {
        let path = root.join(path);
        let folder = path.parent().unwrap_or(&root);
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("setting the mode of {}", path.display()))?;
    }
    // This apply falls short of what has to be installed or started, which is no matter here.
    let apply = Command::new([program]).arguments(["--root".as_ref(), root.as_os_str(), "apply".as_ref()]);
    let said = apply.read_whatever_it_ends_with()?;
    let templates = in_folder(&repository::top().join("templates/systemd"), "")?;
    let mut units = Vec::new();
    for template in templates {
        let name = name(&template)?;
        if APPLIED_ONLY.contains(&name.as_str()) {
            continue;
        }
        let unit = root.join(WRITTEN).join(&name);
        ensure!(
            unit.is_file(),
            "apply writes no {name} on the demo's machine, so that it cannot be packaged: {said}"
        );
        units.push((name, read(&unit)?));
    }
    Ok(units)
}
