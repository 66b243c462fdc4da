//! Container engines that are here, and that rocworker does not configure: named with the file that would be, so that
//! nobody takes "not installed" for the answer.

use std::path::{Path, PathBuf};

use root::{Kind, Root};
use yaml_serde::Value;

/// A container engine that is here and that rocworker does not configure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    pub name: &'static str,
    /// The file in which the engine's runtime would be named.
    pub file: PathBuf,
    /// What the engine is, as the middle of a sentence.
    is: &'static str,
}

impl Unserved {
    /// A sentence that names the engine and its file.
    #[must_use]
    pub fn described(&self) -> String {
        format!("{} is here and {}; rocworker does not configure {}", self.name, self.is, self.file.display())
    }
}

const OWN_CONTAINERD: &str = "runs a containerd of its own";
const ROOTLESS: &str = "runs a dockerd of a user, in rootless mode";

/// Engines whose files are at equal places on every machine: name, paths that show that it is here, file, description.
const FIXED: [(&str, &[&str], &str, &str); 3] = [
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
    let rancher = ["k3s", "rke2"].into_iter().filter_map(|name| of_rancher(root, name));
    let is_here = |signs: &[&str]| signs.iter().any(|sign| root.exists(sign));
    let fixed = FIXED.into_iter().filter(|(_, signs, ..)| is_here(signs));
    let fixed = fixed.map(|(name, _, file, is)| Unserved { name, file: file.into(), is });
    rancher.chain(fixed).chain(rootless(root)).collect()
}

/// k3s and rke2 write containerd's configuration anew at each start, from a template where there is one. A containerd 2
/// prefers config-v3.toml.tmpl (docs.k3s.io, "Configuring containerd").
fn of_rancher(root: &Root, name: &'static str) -> Option<Unserved> {
    let data = Path::new("/var/lib/rancher").join(name);
    let programs =
        ["/usr/local/bin", "/usr/bin", &format!("/opt/{name}/bin")].map(|bin| Path::new(bin).join(name));
    if !programs.iter().chain([&data.join("agent")]).any(|sign| root.exists(sign)) {
        return None;
    }
    let folder = data_dir(root, name).unwrap_or(data).join("agent/etc/containerd");
    let [newer, older] = ["config-v3.toml.tmpl", "config.toml.tmpl"].map(|file| folder.join(file));
    let is_there = [&newer, &older].into_iter().find(|file| root.exists(file));
    let is_newer = || {
        let text = root.read_text(folder.join("config.toml"), 1 << 20).unwrap_or_default();
        text.lines().any(|line| line.replace(' ', "") == "version=3")
    };
    let file = is_there.cloned().unwrap_or_else(|| if is_newer() { newer } else { older });
    Some(Unserved { name, file, is: OWN_CONTAINERD })
}

/// The folder in which k3s or RKE2 keeps its data, where its configuration names one (docs.k3s.io, "Configuration
/// File").
fn data_dir(root: &Root, name: &str) -> Option<PathBuf> {
    let text = root.read_text(format!("/etc/rancher/{name}/config.yaml"), 1 << 20).ok()?;
    let document: Value = yaml_serde::from_str(&text).ok()?;
    let folder = PathBuf::from(document.get("data-dir")?.as_str()?);
    folder.is_absolute().then_some(folder)
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
    Some(Unserved { name: "docker-rootless", file: home.join(".config/docker/daemon.json"), is: ROOTLESS })
}
