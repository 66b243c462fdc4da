//! A fleet whose asker has the package and this build's program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use support::machines::{Fleet, Machine, Setup};
use support::real;
use support::said::Said;
use support::tree::Tree;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// What `remote` may change; what dpkg, journald and ssh write of themselves is left out.
const FOLDERS: [&str; 5] = ["etc", "usr/lib/systemd", "usr/lib/rocworker", "var/lib", "root"];
const OTHERS: [&str; 12] = [
    "etc/ssh",
    "etc/machine-id",
    "var/log",
    "var/lib/dpkg/status",
    "var/lib/dpkg/status-old",
    "var/lib/dpkg/diversions-old",
    "var/lib/dpkg/lock",
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/triggers/Lock",
    "var/lib/dpkg/updates",
    // Of a dpkg that was killed before it knew the package: the next one removes it.
    "var/lib/dpkg/tmp.ci",
    // rocworker's own copy, and the folder that each login has for such files.
    "root/.cache",
];

/// dpkg has the host's, of groups that the machine lacks.
const NO_OVERRIDES: &str = ": > /var/lib/dpkg/statoverride; groupadd --system man || :";

pub(crate) struct Asker {
    pub(crate) fleet: Fleet,
    package: PathBuf,
}

impl Asker {
    pub(crate) fn new() -> Option<Self> {
        if !support::machines::require() {
            return None;
        }
        let [dist] = real::require_made(["ROCWORKER_DIST"], &["dpkg", "systemctl", "journalctl"])?;
        let name = format!("rocworker_{}-1_amd64.deb", env!("CARGO_PKG_VERSION"));
        Some(Self { fleet: Fleet::new(), package: dist.join(name) })
    }

    /// A machine with a card and systemd.
    pub(crate) fn machine(&self, name: &str, more: impl FnOnce(Setup) -> Setup) -> Machine<'_> {
        self.fleet.machine(name, |setup| {
            more(setup.systemd().laid(layout::Machine::instinct(1, 1)).prepare(NO_OVERRIDES))
        })
    }

    /// `rocworker remote` there, without a terminal.
    pub(crate) fn remote(&self, words: &[&str]) -> Said {
        self.fleet
            .command(&[&[PROGRAM, "remote"], words].concat())
            .stdin(Stdio::null())
            .output()
            .unwrap()
            .into()
    }

    pub(crate) fn install(&self, words: &[&str]) -> Said {
        self.remote(&[&["install", "--package", self.package.to_str().unwrap()], words].concat())
    }

    /// Puts the package, or another, into the machine's /root.
    pub(crate) fn put_package(&self, machine: &Machine<'_>, package: &Path) -> &'static str {
        fs::copy(package, machine.path("/root/rocworker.deb")).unwrap();
        "/root/rocworker.deb"
    }

    /// One of a version that knows nothing of the exporter.
    pub(crate) fn old_package(&self) -> PathBuf {
        let folder = self.fleet.path("/root/old");
        fs::create_dir_all(folder.join("DEBIAN")).unwrap();
        fs::create_dir_all(folder.join("usr/bin")).unwrap();
        let control = "Package: rocworker\nVersion: 0.0.1-1\nArchitecture: amd64\nMaintainer: a test <a@test>\n\
                       Installed-Size: 1\nDescription: old\n";
        fs::write(folder.join("DEBIAN/control"), control).unwrap();
        let program = folder.join("usr/bin/rocworker");
        fs::write(&program, "#!/bin/sh\nexit 2\n").unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        self.fleet.shell("dpkg-deb --root-owner-group --build /root/old /root/old.deb").well();
        self.fleet.path("/root/old.deb")
    }

    pub(crate) fn package(&self) -> &Path {
        &self.package
    }
}

pub(crate) fn tree(machine: &Machine<'_>) -> Tree {
    let folders: Vec<&str> = FOLDERS.to_vec();
    Tree::of(&machine.path("/"), &folders).without(&OTHERS)
}

/// Fails where the machine is not as it was; of the package nothing is left.
pub(crate) fn is_as_before(machine: &Machine<'_>, before: &Tree) {
    has_the_tree(machine, before);
    let status = machine.shell("dpkg-query -W -f '${db:Status-Status}' rocworker 2> /dev/null || echo none");
    assert!(["none\n", "not-installed"].contains(&&*status.well()));
}

/// Fails where the machine's files are not as they were.
pub(crate) fn has_the_tree(machine: &Machine<'_>, before: &Tree) {
    let differences = [tree(machine).differences(&[before]), before.differences(&[&tree(machine)])].concat();
    assert!(differences.is_empty(), "{differences:#?}");
    assert_eq!(
        machine
            .shell("ls /tmp /var/tmp | grep -v systemd-private || true")
            .well()
            .matches("rocworker")
            .count(),
        0
    );
}
