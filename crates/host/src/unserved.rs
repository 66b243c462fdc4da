//! Container engines that are here, and that rocworker does not configure: named with the file that would be, so that
//! nobody takes "not installed" for the answer.

use std::path::{Path, PathBuf};

use root::{Kind, Root};

use crate::own_containerd;

/// A container engine that is here and that rocworker does not configure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    pub name: &'static str,
    /// The file in which the engine's runtime would be named.
    pub file: PathBuf,
    /// What the engine is, as the middle of a sentence.
    is: &'static str,
    /// What its containerd lacks to read CDI specs, as a sentence.
    cdi: Option<String>,
}

impl Unserved {
    /// A sentence that names the engine and its file.
    #[must_use]
    pub fn described(&self) -> String {
        let cdi = self.cdi.as_ref().map_or_else(String::new, |cdi| format!(". {cdi}"));
        format!(
            "{} is here and {}; rocworker does not configure {}{cdi}",
            self.name,
            self.is,
            self.file.display()
        )
    }
}

const OWN_CONTAINERD: &str = "runs a containerd of its own";
const ROOTLESS: &str = "runs a dockerd of a user, in rootless mode";

/// Engines whose files are at equal places on every machine: name, paths that show that it is here, file, description.
const FIXED: [(&str, &[&str], &str, &str); 5] = [
    // They make containerd's configuration at each start from a template in this folder (docs.k3s.io, "Configuring
    // containerd"): config-v3.toml.tmpl for containerd 2, config.toml.tmpl for earlier ones.
    (
        "k3s",
        &["/usr/local/bin/k3s", "/usr/bin/k3s", "/opt/k3s/bin/k3s", "/var/lib/rancher/k3s/agent"],
        "/var/lib/rancher/k3s/agent/etc/containerd/",
        OWN_CONTAINERD,
    ),
    (
        "rke2",
        &["/usr/local/bin/rke2", "/usr/bin/rke2", "/opt/rke2/bin/rke2", "/var/lib/rancher/rke2/agent"],
        "/var/lib/rancher/rke2/agent/etc/containerd/",
        OWN_CONTAINERD,
    ),
    (
        "microk8s",
        &["/snap/bin/microk8s", "/snap/microk8s/current", "/var/snap/microk8s/current"],
        "/var/snap/microk8s/current/args/containerd-template.toml",
        OWN_CONTAINERD,
    ),
    // k0s' configuration imports the files of this folder (docs.k0sproject.io, "Container runtime").
    ("k0s", &["/usr/local/bin/k0s", "/usr/bin/k0s", "/etc/k0s"], "/etc/k0s/containerd.d/", OWN_CONTAINERD),
    (
        "docker-desktop",
        &["/opt/docker-desktop/bin/com.docker.backend", "/opt/docker-desktop"],
        "~/.docker/daemon.json",
        "runs containers in a virtual machine, which has no GPU of this host",
    ),
];

/// The engines beneath `root` that rocworker does not configure.
#[must_use]
pub fn unserved(root: &Root) -> Vec<Unserved> {
    let is_here = |signs: &[&str]| signs.iter().any(|sign| root.exists(sign));
    let fixed = FIXED.into_iter().filter(|(_, signs, ..)| is_here(signs));
    let cdi = |name| own_containerd::ALL.iter().find(|it| it.name == name)?.remark(root);
    let fixed = fixed.map(|(name, _, file, is)| Unserved { name, file: file.into(), is, cdi: cdi(name) });
    fixed.chain(rootless(root)).collect()
}

/// Folders of users' homes. On ostree's systems the first is a link to the second.
const HOMES: [&str; 2] = ["/home", "/var/home"];

/// dockerd-rootless-setuptool.sh writes the unit into the user's own folder. Homes that may never answer are not looked at:
/// those behind a network, autofs or a link.
fn rootless(root: &Root) -> Option<Unserved> {
    let is_folder = |path: &Path| root.lstat(path).is_ok_and(|meta| meta.kind == Kind::Directory);
    let homes_in = |folder: &'static str| {
        let is_asked = root.is_local(folder) && is_folder(Path::new(folder));
        let users = if is_asked { root.list(folder).unwrap_or_default() } else { Vec::new() };
        users.into_iter().map(move |user| Path::new(folder).join(user))
    };
    let home = HOMES
        .into_iter()
        .flat_map(homes_in)
        .find(|home| is_folder(home) && root.exists(home.join(".config/systemd/user/docker.service")))?;
    Some(Unserved {
        name: "docker-rootless",
        file: home.join(".config/docker/daemon.json"),
        is: ROOTLESS,
        cdi: None,
    })
}
