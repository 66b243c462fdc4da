//! The containerd that k3s, RKE2 or MicroK8s brings and configures itself: whether it reads CDI specs, and what its
//! users write to have it do so.
//!
//! k3s and RKE2 have containerd 2 from v1.31.6 and v1.32.2 on, with a file of version 3 (docs.k3s.io and docs.rke2.io,
//! "Configuring containerd"). MicroK8s writes version 2 for each release (containerd-template.toml). CDI is off by
//! default in containerd 1.7, and on from 2.0; 1.6 has none.

use std::path::Path;

use edit::Format;
use root::Root;
use serde_json::Value;

use crate::unit::FOLDERS;

/// More than any of them makes.
const LIMIT: usize = 1 << 20;

/// The sections of versions 3 and 2 that hold the switch.
const SECTIONS: [&str; 2] = ["io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"];

/// An engine with a containerd of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnContainerd {
    pub name: &'static str,
    /// What the engine makes at each start, and its containerd reads.
    pub file: &'static str,
    pub program: &'static str,
    /// Made of what users write for containerd 1.7, and for containerd 2.
    templates: [&'static str; 2],
    /// Its units, of which a machine has one; none: its own program restarts it.
    units: &'static [&'static str],
}

/// The engines whose containerd is asked.
pub const ALL: [OwnContainerd; 3] = [
    OwnContainerd {
        name: "k3s",
        file: "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        program: "/var/lib/rancher/k3s/data/current/bin/containerd",
        templates: [
            "/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl",
            "/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.tmpl",
        ],
        units: &["k3s-agent", "k3s"],
    },
    OwnContainerd {
        name: "rke2",
        file: "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
        program: "/var/lib/rancher/rke2/bin/containerd",
        templates: [
            "/var/lib/rancher/rke2/agent/etc/containerd/config.toml.tmpl",
            "/var/lib/rancher/rke2/agent/etc/containerd/config-v3.toml.tmpl",
        ],
        units: &["rke2-agent", "rke2-server"],
    },
    OwnContainerd {
        name: "microk8s",
        file: "/var/snap/microk8s/current/args/containerd.toml",
        program: "/snap/microk8s/current/bin/containerd",
        templates: ["/var/snap/microk8s/current/args/containerd-template.toml"; 2],
        units: &[],
    },
];

/// Whether a containerd reads CDI specs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cdi {
    /// From these folders.
    On(Vec<String>),
    Off,
    /// The release has no CDI.
    Lacking,
    /// Off in containerd 1.7, on from 2.0: the files do not say which it is.
    ByRelease,
    Unknown(String),
}

impl OwnContainerd {
    /// The switch by the file that the engine made.
    #[must_use]
    pub fn by_file(&self, root: &Root) -> Cdi {
        let read = root.read_text(self.file, LIMIT).map_err(|error| error.to_string());
        let read = read.and_then(|text| {
            let parsed = Format::Toml.read(&text);
            parsed.map_err(|fault| format!("{}: {fault}", root.shown(self.file).display()))
        });
        let file = match read {
            Ok(file) => file,
            Err(why) => return Cdi::Unknown(why),
        };
        let [old, _] = self.templates;
        match switch(&file) {
            Some((true, folders)) => Cdi::On(folders),
            Some((false, _)) => Cdi::Off,
            None if version(&file) > 2 => Cdi::On(folders(&file)),
            // Without a template of version 2, k3s and RKE2 make such a file for containerd 1 alone.
            None if !self.units.is_empty() && !root.exists(old) => Cdi::Off,
            None => Cdi::ByRelease,
        }
    }

    /// The sentence about CDI that belongs to the engine's name; `None` where CDI is on, or nothing is known.
    #[must_use]
    pub fn remark(&self, root: &Root) -> Option<String> {
        let off = match self.by_file(root) {
            Cdi::Off => "CDI is off",
            Cdi::ByRelease => "CDI is off if this containerd is 1.7",
            Cdi::On(_) | Cdi::Lacking | Cdi::Unknown(_) => return None,
        };
        Some(format!("{off}; only a device plugin with --allocate=cdi needs it: {}", self.remedy(root)))
    }

    /// What switches CDI on.
    #[must_use]
    pub fn remedy(&self, root: &Root) -> String {
        self.remedy_by(root, "enable_cdi = true")
    }

    /// What has containerd read specs from these folders.
    #[must_use]
    pub fn remedy_of_folders(&self, root: &Root, folders: &[String]) -> String {
        self.remedy_by(root, &format!("cdi_spec_dirs = {folders:?}"))
    }

    fn remedy_by(&self, root: &Root, line: &str) -> String {
        let text = |path: &str| root.read_text(path, LIMIT).ok();
        let file = text(self.file).and_then(|text| Format::Toml.read(&text).ok()).unwrap_or_default();
        let (is_new, is_written) = (version(&file) > 2, switch(&file).is_some());
        let [old, new] = self.templates;
        let (template, section) = if is_new { (new, SECTIONS[0]) } else { (old, SECTIONS[1]) };
        let then = self.restart(root);
        if is_new && !is_written {
            // Newer releases import the files of this folder (k3s-io/k3s#13680).
            return format!(
                "set {line} in the file of {}.d that has it otherwise, then {then}",
                new.trim_end_matches(".tmpl")
            );
        }
        let set = format!("set {line} below [plugins.\"{section}\"] in {template}, then {then}");
        if is_written || self.units.is_empty() || text(template).is_some_and(|text| !is_on_base(&text)) {
            return set;
        }
        // k3s-io/k3s#10551: `duplicated tables`, and the node does not start.
        format!(
            "update {} to v1.31.6, v1.32.2 or later, which has CDI on. Otherwise write the whole template of its release, \
             and {set}. On top of {{{{ template \"base\" . }}}} that table is there twice, and containerd does not start",
            self.name
        )
    }

    /// The command that has the engine make its file again.
    #[must_use]
    pub fn restart(&self, root: &Root) -> String {
        match self.unit(root) {
            Some(unit) => format!("systemctl restart {unit}"),
            None => "microk8s stop && microk8s start".to_owned(),
        }
    }

    /// The unit of systemd that starts the engine.
    #[must_use]
    pub fn unit(&self, root: &Root) -> Option<&'static str> {
        let is_here = |unit: &str| {
            FOLDERS.iter().any(|folder| root.exists(Path::new(folder).join(unit.to_owned() + ".service")))
        };
        self.units.iter().find(|unit| is_here(unit)).or(self.units.last()).copied()
    }
}

/// The switch by containerd's own `config dump`, which has every key that this release knows.
#[must_use]
pub fn by_dump(dump: &Value) -> Cdi {
    match switch(dump) {
        Some((true, folders)) => Cdi::On(folders),
        Some((false, _)) => Cdi::Off,
        None => Cdi::Lacking,
    }
}

fn sections(file: &Value) -> impl Iterator<Item = &Value> {
    SECTIONS.iter().filter_map(|section| file.get("plugins")?.get(section))
}

fn switch(file: &Value) -> Option<(bool, Vec<String>)> {
    let is_on = sections(file).find_map(|section| section.get("enable_cdi")?.as_bool())?;
    Some((is_on, folders(file)))
}

/// The folders of specs; those by default are the same in each release (`DefaultConfig` of its CRI plugin).
fn folders(file: &Value) -> Vec<String> {
    let named = sections(file).find_map(|section| section.get("cdi_spec_dirs")?.as_array());
    match named {
        Some(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => ["/etc/cdi", "/var/run/cdi"].map(str::to_owned).into(),
    }
}

fn version(file: &Value) -> i64 {
    file.get("version").and_then(Value::as_i64).unwrap_or(1)
}

/// Whether a template takes in the engine's own.
fn is_on_base(template: &str) -> bool {
    template.contains("template \"base\"") || template.contains("template `base`")
}
