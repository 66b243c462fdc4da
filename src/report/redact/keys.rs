//! The words of configurations that are known: for each program's files a table of its own. What a word means in one
//! program's file, it does not mean in another's.

/// Keys of one program's files.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The table that keys stand in, and the keys whose values stay where they are plain. Steps are parted by dots; `*` is
    /// any one step, `**` alone any table. Lists are no steps.
    pub(super) tables: &'static [(&'static str, &'static [&'static str])],
    /// Whether a key of these may sound secret: `repositories.rocm.key` names a file of AMD's.
    pub(super) may_sound_secret: bool,
}

const fn keys(tables: &'static [(&'static str, &'static [&'static str])]) -> Keys {
    Keys { tables, may_sound_secret: false }
}

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
const RUNTIME_OPTIONS: &[&str] =
    &["BinaryName", "CriuPath", "CriuImagePath", "CriuWorkPath", "Root", "ShimCgroup", "IoUid", "IoGid"];

pub(super) const CONTAINERD: Keys = keys(&[
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
]);

pub(super) const DOCKER: Keys = keys(&[
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
    ("proxies", &["http-proxy", "https-proxy", "no-proxy"]),
    ("runtimes.*", &["path", "runtimeType"]),
    ("runtimes.*.options", RUNTIME_OPTIONS),
]);

const NODE: &[&str] =
    &["path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"];
const MOUNT: &[&str] = &["hostPath", "containerPath", "options", "type"];
const HOOK: &[&str] = &["hookName", "path", "timeout"];

pub(super) const CDI: Keys = keys(&[
    ("", &["cdiVersion", "kind"]),
    ("devices", &["name"]),
    ("containerEdits", &["additionalGids"]),
    ("containerEdits.deviceNodes", NODE),
    ("containerEdits.mounts", MOUNT),
    ("containerEdits.hooks", HOOK),
    ("devices.containerEdits", &["additionalGids"]),
    ("devices.containerEdits.deviceNodes", NODE),
    ("devices.containerEdits.mounts", MOUNT),
    ("devices.containerEdits.hooks", HOOK),
]);

/// rocworker's configuration, and the wrapper's policy: only of files in /etc/rocworker.
pub(super) const ROCWORKER: Keys = Keys {
    tables: &[(
        "**",
        &[
            "schema_version",
            "compute-runtime",
            "gpu-device-ids",
            "tag",
            "names",
            "requests",
            "default",
            "sharing",
            "gpus",
            "index",
            "pci",
            "render",
            "uuid",
            "card",
            "hive",
            "wait_limit_s",
            "idle_grace_s",
            "wait-limit-s",
            "idle-grace-s",
            "folders",
            "shm_bytes",
            "memlock_bytes",
            "gfx_override",
            "shm-size",
            "memlock",
            "configure",
            "config",
            "existing",
            "install",
            "restart",
            "wait-s",
            "interval-s",
            "settle-s",
            "container-toolkit",
            "rocm-smi",
            "packages",
            "usecases",
            "fingerprints",
            "origin",
            "url",
            "key",
            "proxy",
            "suite",
            "component",
            "family",
            "release",
            "ROCM_BASE_URL",
            "ROCM_DEB_PACKAGE",
            "version",
            "runtime",
            "path",
            "name",
            "kind",
            "type",
            "group",
            "uid",
            "gid",
            "permissions",
            "options",
            "root",
            "major",
            "minor",
            "hostPath",
            "containerPath",
            "fileMode",
            "folder",
            "package",
            "interval",
            "settle",
        ],
    )],
    may_sound_secret: true,
};

pub(super) const UNIT: Keys = keys(&[(
    "",
    &[
        "After",
        "Before",
        "Wants",
        "Requires",
        "Requisite",
        "BindsTo",
        "PartOf",
        "Conflicts",
        "WantedBy",
        "RequiredBy",
        "Type",
        "NotifyAccess",
        "Restart",
        "RestartSec",
        "KillMode",
        "KillSignal",
        "Slice",
        "EnvironmentFile",
        "WorkingDirectory",
        "RuntimeDirectory",
        "StateDirectory",
        "LimitNOFILE",
        "LimitNPROC",
        "LimitCORE",
        "LimitMEMLOCK",
        "TasksMax",
        "TimeoutStartSec",
        "TimeoutStopSec",
        "WatchdogSec",
        "OOMScoreAdjust",
        "DevicePolicy",
        "DeviceAllow",
        "ProtectSystem",
        "ReadWritePaths",
        "ReadOnlyPaths",
        "CapabilityBoundingSet",
        "SystemCallFilter",
        "UMask",
        "ConditionPathExists",
        "ConditionFileIsExecutable",
        "SupplementaryGroups",
    ],
)]);

/// Variables, wherever one is set. Of those in small letters programs read the proxies.
pub(super) const ENVIRONMENT: Keys = keys(&[(
    "",
    &[
        "CONCOURSE_TAG",
        "CONCOURSE_RUNTIME",
        "CONCOURSE_WORK_DIR",
        "CONCOURSE_NAME",
        "CONCOURSE_CONTAINERD_BIN",
        "CONCOURSE_CONTAINERD_CONFIG",
        "CONCOURSE_CONTAINERD_INIT_BIN",
        "CONCOURSE_CONTAINERD_CNI_PLUGINS_DIR",
        "CONCOURSE_CONTAINERD_SECCOMP_PROFILE",
        "CONCOURSE_CONTAINERD_OCI_HOOKS_DIR",
        "CONCOURSE_CONTAINERD_REQUEST_TIMEOUT",
        "CONCOURSE_CONTAINERD_MAX_CONTAINERS",
        "CONCOURSE_CONTAINERD_PRIVILEGED_MODE",
        "CONCOURSE_CONTAINERD_ALLOWED_DEVICE",
        "CONCOURSE_BAGGAGECLAIM_DRIVER",
        "PATH",
        "AMD_VISIBLE_DEVICES",
        "AMD_GPU_COUNT",
        "AMD_GPU_WAIT",
        "NVIDIA_VISIBLE_DEVICES",
        "HSA_OVERRIDE_GFX_VERSION",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    ],
)]);

/// A program by its name, its options whose values stay where they are plain, and its commands.
pub(super) const PROGRAMS: &[(&str, &[&str], &[&str])] = &[
    ("containerd", OF_CONTAINERD, &[]),
    ("dockerd", OF_DOCKERD, &[]),
    ("concourse", OF_CONCOURSE, &["worker", "web", "quickstart", "land-worker", "retire-worker"]),
    ("rocworker", &["config"], &["serve", "boot", "apply"]),
    ("modprobe", &[], &["overlay"]),
    ("kill", &["s"], &[]),
];

pub(super) const OF_CONTAINERD: &[&str] = &["config", "c", "log-level", "l", "address", "a", "root", "state"];

pub(super) const OF_DOCKERD: &[&str] = &[
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

pub(super) const OF_CONCOURSE: &[&str] =
    &["work-dir", "runtime", "tag", "containerd-config", "containerd-bin", "baggageclaim-driver"];

/// Folders of AMD's repositories; a mirror has the same.
pub(super) const FOLDERS: &[&str] = &[
    "rocm",
    "apt",
    "amdgpu",
    "amdgpu-install",
    "amd-container-toolkit",
    "ubuntu",
    "debian",
    "graphics",
    "repo",
    "VERSION",
    "latest",
    "rocm.gpg.key",
    "tarball",
    "dists",
    "main",
];
