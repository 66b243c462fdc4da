//! What a report takes of containerd's configuration.

use config::CONTAINERD_CONFIG;

use crate::reported::RUNTIME_OPTIONS;
use crate::{Command, Format, Keys, Reported};

pub(super) const REPORTED: &[Reported] = &[
    Reported::file(CONTAINERD_CONFIG, Format::Toml(KEYS)),
    Reported::folder("/etc/containerd/conf.d", "toml", Format::Toml(KEYS)),
];

pub(super) const COMMAND: Command = ("containerd", OPTIONS, &[]);
const OPTIONS: &[&str] = &["config", "c", "log-level", "l", "address", "a", "root", "state"];

const RUNTIME: &[&str] = &[
    "runtime_type",
    "runtime_path",
    "runtime_root",
    "runtime_engine",
    "snapshotter",
    "sandbox_mode",
    "sandboxer",
    "base_runtime_spec",
    "pod_annotations",
    "container_annotations",
];
pub const KEYS: Keys<'_> = &[
    ("", &["version", "root", "state", "imports", "disabled_plugins", "required_plugins", "oom_score"]),
    ("grpc", &["address", "uid", "gid"]),
    ("ttrpc", &["address", "uid", "gid"]),
    ("debug", &["address", "uid", "gid", "level", "format"]),
    ("metrics", &["address"]),
    ("cgroup", &["path"]),
    ("proxy_plugins.*", &["type", "address"]),
    (
        "plugins.*",
        &["enable_cdi", "cdi_spec_dirs", "sandbox_image", "snapshotter", "shim", "runtime", "runtime_root"],
    ),
    ("plugins.*.pinned_images", &["sandbox"]),
    ("plugins.*.cni", &["bin_dir", "bin_dirs", "conf_dir", "max_conf_num"]),
    ("plugins.*.registry", &["config_path"]),
    ("plugins.*.registry.mirrors.*", &["endpoint"]),
    ("plugins.*.containerd", &["default_runtime_name", "snapshotter"]),
    ("plugins.*.containerd.default_runtime", RUNTIME),
    ("plugins.*.containerd.default_runtime.options", RUNTIME_OPTIONS),
    ("plugins.*.containerd.runtimes.*", RUNTIME),
    ("plugins.*.containerd.runtimes.*.options", RUNTIME_OPTIONS),
];
