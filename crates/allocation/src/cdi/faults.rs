//! Finds what is wrong with a spec by the rules of CDI.

use std::collections::HashMap;
use std::fmt;

use super::{Device, DeviceNode, Edits, HOOK_NAMES, Hook, Mount, Spec};
use crate::Quoted;

/// Every released version of CDI, in order.
const RELEASED: [&str; 10] =
    ["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"];

/// Edits that CDI knows and that are not read here.
const UNREAD_EDITS: [&str; 2] = ["netDevices", "intelRdt"];

/// A fault of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place in the spec: `kind`, `devices[3].containerEdits.deviceNodes[0]`.
    pub at: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.problem)
    }
}

impl Spec {
    /// Everything that is wrong with the spec by the grammar of CDI 1.1.0: names, versions, paths, doubles.
    /// Empty: a consumer that knows its `cdiVersion` takes it.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = Faults(Vec::new());
        self.version_faults(&mut faults);
        if let Some(problem) = kind_problem(&self.kind) {
            faults.add(&"kind", format!("{}: {problem}", Quoted(&self.kind)));
        }
        faults.unknown(&"the spec", &self.unknown.0);
        self.device_faults(&mut faults);
        edit_faults(&"containerEdits", &self.edits, &mut faults);
        faults.0
    }

    /// The lowest version whose consumers understand all that the spec has in it: the one to write, since a
    /// consumer refuses every version that it does not know (specs-go/version.go of CDI).
    ///
    /// Whether `intelRdt` needs 1.1.0 depends on what is in it, which is not read here: 0.7.0 is its lowest.
    #[must_use]
    pub fn minimum_version(&self) -> &'static str {
        let any_edits = |is: &dyn Fn(&Edits) -> bool| {
            is(&self.edits) || self.devices.iter().any(|device| is(&device.edits))
        };
        let any_device = |is: fn(&Device) -> bool| self.devices.iter().any(is);
        let has_other =
            |name: &'static str| any_edits(&|edits| edits.others.0.iter().any(|other| other == name));
        let needs = [
            ("1.1.0", has_other("netDevices")),
            ("0.7.0", any_edits(&|edits| !edits.additional_gids.is_empty()) || has_other("intelRdt")),
            ("0.6.0", self.kind.split_once('/').is_some_and(|(_, class)| class.contains('.'))),
            (
                "0.6.0",
                !self.annotations.0.is_empty() || any_device(|device| !device.annotations.0.is_empty()),
            ),
            ("0.5.0", any_device(|device| device.name.starts_with(|first: char| first.is_ascii_digit()))),
            ("0.5.0", any_edits(&|edits| edits.device_nodes.iter().any(|node| node.host_path.is_some()))),
            ("0.4.0", any_edits(&|edits| edits.mounts.iter().any(|mount| mount.kind.is_some()))),
        ];
        needs.into_iter().find(|(_, is_needed)| *is_needed).map_or("0.3.0", |(version, _)| version)
    }

    fn version_faults(&self, faults: &mut Faults) {
        let minimum = self.minimum_version();
        match released(&self.version) {
            None => faults.add(&"cdiVersion", format!("{} is no version of CDI", Quoted(&self.version))),
            Some(declared) if released(minimum) > Some(declared) => faults.add(
                &"cdiVersion",
                format!("{} is too low for what the spec has in it, which needs {minimum}", self.version),
            ),
            Some(_) => {}
        }
    }

    fn device_faults(&self, faults: &mut Faults) {
        if self.devices.is_empty() {
            faults.add(&"devices", "there must be at least one".into());
        }
        let mut firsts: HashMap<&str, usize> = HashMap::with_capacity(self.devices.len());
        for (index, device) in self.devices.iter().enumerate() {
            let at = &format_args!("devices[{index}]");
            if !is_device_name(&device.name) {
                let rule = "letters and digits, and between them also _, -, . and :";
                faults.add(at, format!("the name {} is not {rule}", Quoted(&device.name)));
            }
            let first = *firsts.entry(&device.name).or_insert(index);
            if first != index {
                let name = Quoted(&device.name);
                faults.add(
                    at,
                    format!("the name {name} is taken by devices[{first}], which voids the whole spec"),
                );
            }
            if device.edits.is_empty() {
                faults.add(at, "containerEdits must have something in it".into());
            }
            faults.unknown(at, &device.unknown.0);
            edit_faults(&format_args!("{at}.containerEdits"), &device.edits, faults);
        }
    }
}

struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, at: &dyn fmt::Display, problem: String) {
        self.0.push(Fault { at: at.to_string(), problem });
    }

    fn unknown<'k>(&mut self, at: &dyn fmt::Display, keys: impl IntoIterator<Item = &'k String>) {
        for key in keys {
            self.add(at, format!("CDI has no key {} here", Quoted(key)));
        }
    }

    fn absolute(&mut self, at: &dyn fmt::Display, what: &str, path: &str) {
        if !path.starts_with('/') {
            self.add(at, format!("the {what} {} is not an absolute path", Quoted(path)));
        }
    }

    fn env(&mut self, at: &dyn fmt::Display, env: &[String]) {
        for entry in env.iter().filter(|entry| !is_env(entry)) {
            self.add(at, format!("the environment {} is not KEY=VALUE", Quoted(entry)));
        }
    }
}

fn edit_faults(at: &dyn fmt::Display, edits: &Edits, faults: &mut Faults) {
    faults.env(at, &edits.env);
    for (index, node) in edits.device_nodes.iter().enumerate() {
        node_faults(&format_args!("{at}.deviceNodes[{index}]"), node, faults);
    }
    for (index, mount) in edits.mounts.iter().enumerate() {
        mount_faults(&format_args!("{at}.mounts[{index}]"), mount, faults);
    }
    for (index, hook) in edits.hooks.iter().enumerate() {
        hook_faults(&format_args!("{at}.hooks[{index}]"), hook, faults);
    }
    let unknown = edits.others.0.iter().filter(|name| !UNREAD_EDITS.contains(&name.as_str()));
    faults.unknown(at, unknown);
}

fn node_faults(at: &dyn fmt::Display, node: &DeviceNode, faults: &mut Faults) {
    faults.absolute(at, "path", &node.path);
    if let Some(path) = &node.host_path {
        faults.absolute(at, "hostPath", path);
    }
    if let Some(kind) = node.kind.as_deref().filter(|kind| !["b", "c", "u", "p"].contains(kind)) {
        faults.add(at, format!("the type {} is none of b, c, u and p", Quoted(kind)));
    }
    for (what, number) in [("major", node.major), ("minor", node.minor)] {
        if let Some(number) = number.filter(|number| *number < 0) {
            faults.add(at, format!("the {what} {number} is negative"));
        }
    }
    if let Some(permissions) = node.permissions.as_deref().filter(|set| !is_permissions(set)) {
        faults.add(at, format!("the permissions {} are not some of rwm", Quoted(permissions)));
    }
    faults.unknown(at, &node.unknown.0);
}

fn mount_faults(at: &dyn fmt::Display, mount: &Mount, faults: &mut Faults) {
    faults.absolute(at, "containerPath", &mount.container_path);
    // The source of a tmpfs or another filesystem without a device is a mere name.
    if mount.kind.as_deref().is_none_or(|kind| kind.is_empty() || kind == "bind") {
        faults.absolute(at, "hostPath", &mount.host_path);
    } else if mount.host_path.is_empty() {
        faults.add(at, "the hostPath is empty".into());
    }
    faults.unknown(at, &mount.unknown.0);
}

fn hook_faults(at: &dyn fmt::Display, hook: &Hook, faults: &mut Faults) {
    if !HOOK_NAMES.contains(&hook.name.as_str()) {
        faults.add(at, format!("the hookName {} is none of {}", Quoted(&hook.name), HOOK_NAMES.join(", ")));
    }
    faults.absolute(at, "path", &hook.path);
    faults.env(at, &hook.env);
    if let Some(timeout) = hook.timeout.filter(|seconds| *seconds <= 0) {
        faults.add(at, format!("the timeout {timeout} is not above 0"));
    }
    faults.unknown(at, &hook.unknown.0);
}

/// The place of a version among the released ones, by which they compare; None if there is none such.
/// Consumers let a `v` before it pass.
fn released(version: &str) -> Option<usize> {
    let version = version.strip_prefix('v').unwrap_or(version);
    RELEASED.iter().position(|released| *released == version)
}

// The names of CDI (SPEC.md, "Kind" and "CDI Devices").

/// Why a kind is none, if it is none: `vendor/class`, each beginning with a letter and ending with a
/// letter or digit.
fn kind_problem(kind: &str) -> Option<String> {
    let Some((vendor, class)) = kind.split_once('/') else {
        return Some("it is not of the form vendor/class".to_owned());
    };
    let parts = [("vendor", vendor), ("class", class)];
    let (part, _) = parts.iter().find(|(_, name)| !is_name(name, false, "_-."))?;
    let rule = "must begin with a letter, end with a letter or digit, and have only those, _, - and .";
    Some(format!("the {part} {rule}"))
}

/// Whether `name` can name a device: letters and digits, between them also `_`, `-`, `.` and `:`.
fn is_device_name(name: &str) -> bool {
    is_name(name, true, "_-.:")
}

fn is_name(name: &str, may_begin_with_digit: bool, between: &str) -> bool {
    let (Some(first), Some(last)) = (name.as_bytes().first(), name.as_bytes().last()) else { return false };
    (first.is_ascii_alphabetic() || may_begin_with_digit && first.is_ascii_digit())
        && last.is_ascii_alphanumeric()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || between.as_bytes().contains(&b))
}

/// Whether this is `KEY=VALUE`.
fn is_env(entry: &str) -> bool {
    entry.find('=').is_some_and(|at| at > 0)
}

/// Whether these are permissions of the device cgroup: some of `rwm`, or `none`.
fn is_permissions(permissions: &str) -> bool {
    permissions == "none" || permissions.chars().all(|c| "rwm".contains(c))
}
