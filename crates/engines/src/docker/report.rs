//! What a report takes of docker's configuration.

use config::DOCKER_CONFIG;

use crate::reported::RUNTIME_OPTIONS;
use crate::{Command, Format, Keys, Reported};

pub(super) const REPORTED: &[Reported] = &[Reported::file(DOCKER_CONFIG, Format::Json(KEYS))];

pub(super) const COMMAND: Command = ("dockerd", OPTIONS, &[]);

const KEYS: Keys<'_> = &[
    (
        "",
        &[
            "default-runtime",
            "cdi-spec-dirs",
            "data-root",
            "exec-root",
            "exec-opts",
            "log-driver",
            "log-level",
            "storage-driver",
            "userns-remap",
            "cgroup-parent",
            "registry-mirrors",
            "insecure-registries",
            "http-proxy",
            "https-proxy",
            "no-proxy",
            "group",
            "hosts",
            "containerd",
        ],
    ),
    ("features", &[]),
    ("proxies", &["http-proxy", "https-proxy", "no-proxy"]),
    ("runtimes.*", &["path", "runtimeType"]),
    ("runtimes.*.options", RUNTIME_OPTIONS),
];

const OPTIONS: &[&str] = &[
    "config-file",
    "log-level",
    "l",
    "default-runtime",
    "add-runtime",
    "feature",
    "data-root",
    "exec-root",
    "containerd",
    "H",
    "host",
    "cdi-spec-dir",
    "storage-driver",
    "log-driver",
];
