//! Lists what the tests need beyond a Rust toolchain, and what of it is missing.

use std::collections::BTreeSet;

use crate::command::Command;
use crate::programs;
use crate::refusal::Refusal;

/// Debian's and Ubuntu's packages, and what each is for. podman's own helpers are named, because they are
/// only recommended by it and recommendations are not installed.
const PACKAGES: &[(&str, &str)] = &[
    ("runc", "the runtime that the wrapper executes"),
    ("crun", "podman's default runtime"),
    ("podman", "an engine that reads CDI specs itself"),
    ("conmon", "podman's monitor of a container"),
    ("procps", "pgrep finds what podman has left running"),
    ("uidmap", "podman without root"),
    ("slirp4netns", "podman without root"),
    ("fuse-overlayfs", "podman without root"),
    ("netavark", "podman's networks"),
    ("aardvark-dns", "podman's networks"),
    ("busybox-static", "what runs inside the containers"),
    ("pciutils", "lspci reads the laid-out PCI folders"),
    ("pci.ids", "the names that lspci prints"),
    ("strace", "counts system calls"),
    ("util-linux", "unshare and nsenter"),
    ("kmod", "reads module information, and the module options that are written"),
    ("systemd", "systemd-tmpfiles sets nodes as a container's start does"),
    ("g++", "compiles libFuzzer"),
    ("qemu-system-x86", "boots kernels with the real amdgpu driver"),
    ("qemu-user-static", "runs the wrapper as it is built for Arm"),
    ("seabios", "what QEMU's machines start with"),
    ("xz-utils", "decompresses kernel modules"),
    ("zstd", "compresses code objects as clang does"),
    ("debian-archive-keyring", "checks the kernels' signatures"),
    ("mmdebstrap", "makes the file system of another release of Debian, for tests of apt"),
    ("gpg", "makes the keys that the tests' repositories are signed with"),
    ("gpg-agent", "signs with them"),
    ("dpkg-dev", "dkms depends on it; so it does on the next four"),
    ("gcc", "compiles the module that dkms builds"),
    ("make", "builds it"),
    ("patch", "is there for modules that bring patches along"),
    ("lsb-release", "names the distribution for dkms"),
    ("systemd", "verifies the worker's unit, and reads environment files"),
    ("shellcheck", "reads the scripts that are shipped"),
    ("lintian", "judges the Debian package"),
    ("python3-jsonschema", "holds the bill of materials against CycloneDX' schema"),
    ("python3-venv", "holds charmcraft, which packs the charm"),
    ("python3-prometheus-client", "reads what the exporter writes, in both formats"),
    ("curl", "asks rocworker-exporter, over TLS too"),
    ("openssl", "makes certificates for it"),
    ("python3-apt", "charmcraft asks apt through it"),
    ("binutils", "takes debug information out of the programs that tests hand out"),
    ("openssh-server", "sshd of the machines that a fleet consists of"),
    ("openssh-client", "ssh, by which rocworker asks them"),
    ("sudo", "lets a user of such a machine read what root alone may"),
    ("iproute2", "gives each of them a network of its own"),
    ("tmux", "the terminal in which top runs"),
    ("chromium", "shows the exporter's page"),
    ("nodejs", "drives Chromium"),
    ("npm", "installs what does, and axe, which judges the page"),
    ("libcap2-bin", "takes capabilities away from a test's process"),
    ("hipcc", "compiles the programs that run on a GPU elsewhere, and the kernels in them"),
    ("libamdhip64-dev", "AMD's HIP headers, and the real library for a worker without a GPU"),
    ("llvm-14", "llvm-mc, against which the tests' GPU checks how it reads instructions"),
];

const COMPONENTS: &[(&str, &str)] = &[("rustfmt", "fmt"), ("clippy", "clippy")];

/// The missing needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) packages: Vec<&'static str>,
    pub(crate) components: Vec<&'static str>,
    /// Rust targets.
    pub(crate) targets: Vec<String>,
    pub(crate) nextest: bool,
    pub(crate) fuzz: bool,
}

impl Missing {
    /// Looks at this machine; changes nothing. `all`: cargo-fuzz and Arm's target are needed, too.
    ///
    /// # Errors
    /// A [`Refusal`] where there is no dpkg to ask.
    pub(crate) fn on_this_machine(all: bool) -> anyhow::Result<Self> {
        let mut targets = vec![programs::target()];
        targets.extend(programs::ARM.filter(|_| all).map(str::to_owned));
        targets.retain(|target| !programs::is_installed(target));
        let lacks = |subcommand| !Command::new(["cargo", subcommand, "--version"]).succeeds();
        Ok(Self {
            packages: packages_without(&installed_packages()?),
            components: COMPONENTS.iter().filter(|(_, sub)| lacks(sub)).map(|(name, _)| *name).collect(),
            targets,
            nextest: lacks("nextest"),
            fuzz: all && lacks("fuzz"),
        })
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// A line for each missing thing, and what it is for.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for name in &self.packages {
            let purpose =
                PACKAGES.iter().find(|(known, _)| known == name).map_or("", |(_, purpose)| *purpose);
            lines.push(format!("package {name}: {purpose}"));
        }
        lines.extend(self.components.iter().map(|name| format!("Rust component {name}")));
        lines.extend(
            self.targets.iter().map(|target| format!("Rust target {target}: the programs as they ship")),
        );
        if self.nextest {
            lines.push("cargo-nextest: runs the tests".to_owned());
        }
        if self.fuzz {
            lines.push("cargo-fuzz: builds the fuzz targets".to_owned());
        }
        lines
    }
}

/// dpkg's answer, a line a package that it has heard of. It ends with 1 when there is one it has not.
fn installed_packages() -> anyhow::Result<BTreeSet<String>> {
    if which::which("dpkg-query").is_err() {
        return Err(Refusal::new(
            "there is no dpkg-query here: `cargo xtask test` installs what it needs on Debian (12 or later) and \
             Ubuntu (24.04 or later); on this machine `cargo test` runs what needs no real components",
        ));
    }
    let names = PACKAGES.iter().map(|(name, _)| *name);
    let query = ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\\n"];
    let mut installed = read_dpkg(&Command::new(query).arguments(names).read_whatever_it_ends_with()?);
    // Node's own packages of nodejs bring npm along and refuse Debian's.
    if which::which("npm").is_ok() {
        installed.insert("npm".to_owned());
    }
    Ok(installed)
}

/// The packages that are installed in a dpkg-query answer of `NAME STATUS` lines.
fn read_dpkg(answer: &str) -> BTreeSet<String> {
    answer
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, status)| *status == "installed")
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn packages_without(installed: &BTreeSet<String>) -> Vec<&'static str> {
    PACKAGES.iter().map(|(name, _)| *name).filter(|name| !installed.contains(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_there_only_when_dpkg_says_installed() {
        let answer = "runc installed\npodman config-files\ncrun not-installed\nstrace half-configured\n";
        let missing = packages_without(&read_dpkg(answer));
        assert!(!missing.contains(&"runc"));
        for name in ["podman", "crun", "strace", "kmod"] {
            assert!(missing.contains(&name), "{name}");
        }
        assert_eq!(missing.len(), PACKAGES.len() - 1);
    }
}
