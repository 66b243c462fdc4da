//! A fleet whose asker has the package and this build's program.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use support::machines::{Fleet, Machine, Setup};
use support::real;
use support::said::Said;
use support::tree::Tree;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// What `remote` may change; what dpkg, journald and ssh write of themselves is left out.
const FOLDERS: [&str; 5] = ["etc", "usr/lib/systemd", "usr/lib/rocworker", "var/lib", "root"];
const OTHERS: [&str; 10] = [
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

    pub(crate) fn package(&self) -> &Path {
        &self.package
    }
}

pub(crate) fn tree(machine: &Machine<'_>) -> Tree {
    let folders: Vec<&str> = FOLDERS.to_vec();
    Tree::of(&machine.path("/"), &folders).without(&OTHERS)
}

/// Fails where the machine is not as it was.
pub(crate) fn is_as_before(machine: &Machine<'_>, before: &Tree) {
    let differences = [tree(machine).differences(&[before]), before.differences(&[&tree(machine)])].concat();
    assert!(differences.is_empty(), "{differences:#?}");
    let status = machine.shell("dpkg-query -W -f '${db:Status-Status}' rocworker 2> /dev/null || echo none");
    assert!(["none\n", "not-installed"].contains(&&*status.well()));
    assert_eq!(
        machine
            .shell("ls /tmp /var/tmp | grep -v systemd-private || true")
            .well()
            .matches("rocworker")
            .count(),
        0
    );
}
