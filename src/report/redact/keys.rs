//! The keys of configurations that are known: for each program's files a table of its own. What a word means in one
//! program's file, it does not mean in another's.

use engines::Keys;

const NODE: &[&str] =
    &["path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"];
const MOUNT: &[&str] = &["hostPath", "containerPath", "options", "type"];
const HOOK: &[&str] = &["hookName", "path", "timeout"];

pub(crate) const CDI: Keys<'_> = &[
    ("", &["cdiVersion", "kind"]),
    ("annotations", &[]),
    ("devices", &["name"]),
    ("devices.annotations", &[]),
    ("containerEdits", &["additionalGids"]),
    ("containerEdits.deviceNodes", NODE),
    ("containerEdits.mounts", MOUNT),
    ("containerEdits.hooks", HOOK),
    ("devices.containerEdits", &["additionalGids"]),
    ("devices.containerEdits.deviceNodes", NODE),
    ("devices.containerEdits.mounts", MOUNT),
    ("devices.containerEdits.hooks", HOOK),
];

/// The wrapper's policy.
pub(crate) const POLICY: Keys<'_> = &[
    ("", &["schema_version", "runtime", "requests", "default", "pods", "sharing", "folders"]),
    ("", &["wait_limit_s", "idle_grace_s", "quarantine"]),
    ("gpus", &["index", "pci", "render", "uuid", "card_uuid", "card", "hive", "integrated"]),
    ("edits", &["shm_bytes", "memlock_bytes"]),
];

/// Settings of systemd that decide whether and with which devices a unit runs.
pub(super) const UNIT: Keys<'_> = &[
    ("", &["After", "Before", "Wants", "Requires", "BindsTo", "WantedBy", "ConditionPathExists"]),
    ("", &["Type", "Restart", "KillMode", "LimitMEMLOCK", "SupplementaryGroups"]),
    ("", &["EnvironmentFile", "WorkingDirectory", "RuntimeDirectory", "ReadWritePaths"]),
    ("", &["DevicePolicy", "DeviceAllow", "ProtectSystem"]),
];

/// Variables, wherever one is set. Of those in small letters programs read the proxies.
pub(super) const ENVIRONMENT: Keys<'_> = &[
    ("", &["CONCOURSE_TAG", "CONCOURSE_RUNTIME", "CONCOURSE_WORK_DIR", "CONCOURSE_NAME"]),
    ("", &["CONCOURSE_CONTAINERD_BIN", "CONCOURSE_CONTAINERD_CONFIG", "CONCOURSE_BAGGAGECLAIM_DRIVER"]),
    ("", &["PATH", "AMD_VISIBLE_DEVICES", "AMD_GPU_COUNT", "AMD_GPU_WAIT", "NVIDIA_VISIBLE_DEVICES"]),
    ("", &["HSA_OVERRIDE_GFX_VERSION", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]),
    ("", &["http_proxy", "https_proxy", "no_proxy"]),
];
