//! Debian 13's systemd, journald and udevd, as they are packaged, in the archive of a machine that they start.

use std::collections::BTreeSet;

use qemu_machine::archive::Archive;
use support::release::Release;

const PROGRAMS: [&str; 6] = [
    "usr/lib/systemd/systemd",
    "usr/lib/systemd/systemd-executor",
    "usr/lib/systemd/systemd-journald",
    "usr/bin/systemctl",
    "usr/bin/journalctl",
    // udevadm is systemd-udevd under another name.
    "usr/bin/udevadm",
];

/// The folder of packages' units.
const UNITS: &str = "usr/lib/systemd/system";

/// Units that a machine on an initramfs can use: it has no users, no gettys, nothing to mount or to clean up.
const UNIT_FILES: [&str; 17] = [
    "basic.target",
    "local-fs.target",
    "multi-user.target",
    "network.target",
    "paths.target",
    "shutdown.target",
    "slices.target",
    "sockets.target",
    "swap.target",
    "sysinit.target",
    "timers.target",
    "systemd-journald.service",
    "systemd-journald.socket",
    "systemd-journald-dev-log.socket",
    "systemd-udevd.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
];

/// The targets that start units, as the units' packages have it.
const WANTED: [(&str, &str); 6] = [
    ("sockets", "systemd-journald.socket"),
    ("sockets", "systemd-journald-dev-log.socket"),
    ("sockets", "systemd-udevd-control.socket"),
    ("sockets", "systemd-udevd-kernel.socket"),
    ("sysinit", "systemd-journald.service"),
    ("sysinit", "systemd-udevd.service"),
];

/// The rules about who may use which device. udevd leaves out groups that this machine lacks.
const RULES: &str = "usr/lib/udev/rules.d/50-udev-default.rules";

/// Puts it all in its place; what the kernel starts is systemd.
pub(crate) fn into(archive: &mut Archive, release: &Release) {
    let mut libraries = BTreeSet::new();
    for program in PROGRAMS {
        archive.copy(program, 0o755, &release.file(program));
        libraries.extend(release.libraries(program));
    }
    for library in libraries {
        archive.copy(&library, 0o755, &release.file(&library));
    }
    archive.link("usr/lib/systemd/systemd-udevd", "/usr/bin/udevadm");
    for folder in ["bin", "sbin", "lib", "lib64"] {
        archive.link(folder, &format!("usr/{folder}"));
    }
    for file in UNIT_FILES.map(|unit| format!("{UNITS}/{unit}")).iter().map(String::as_str).chain([RULES]) {
        archive.copy(file, 0o644, &release.file(file));
    }
    for (target, unit) in WANTED {
        archive.link(&format!("{UNITS}/{target}.target.wants/{unit}"), &format!("../{unit}"));
    }
    archive.link(&format!("{UNITS}/default.target"), "multi-user.target");
    archive.file("etc/machine-id", 0o644, b"5ca1ab1e5ca1ab1e5ca1ab1e5ca1ab1e\n");
    archive.file("etc/os-release", 0o644, b"ID=debian\n");
    archive.link("var/run", "/run");
}
