//! What a report takes of CRI-O's configuration.

use config::CRIO_CONFIG;

use crate::{Command, Format, Keys, Reported};

pub(super) const REPORTED: &[Reported] = &[
    Reported::file(CRIO_CONFIG, Format::Toml(KEYS)),
    Reported::folder(super::FOLDER, "conf", Format::Toml(KEYS)),
    Reported::folder(super::FOLDER, "toml", Format::Toml(KEYS)),
];

pub(super) const COMMAND: Command = ("crio", OPTIONS, &[]);
const OPTIONS: &[&str] = &["config", "c", "config-dir", "d", "log-level", "l"];

const KEYS: Keys<'_> = &[
    ("crio", &["root", "runroot", "storage_driver", "log_dir"]),
    ("crio.api", &["listen"]),
    ("crio.image", &["pause_image", "signature_policy"]),
    ("crio.network", &["network_dir", "plugin_dirs"]),
    (
        "crio.runtime",
        &[
            "default_runtime",
            "cdi_spec_dirs",
            "cgroup_manager",
            "conmon",
            "conmon_cgroup",
            "hooks_dir",
            "log_level",
        ],
    ),
    (
        "crio.runtime.runtimes.*",
        &[
            "runtime_path",
            "runtime_type",
            "runtime_root",
            "runtime_config_path",
            "monitor_path",
            "monitor_cgroup",
            "allowed_annotations",
        ],
    ),
];
