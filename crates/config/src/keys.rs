//! What a report shows of a configuration.

/// Each table of the configuration, and the keys in it whose values a report shows. Dots part the steps to a table.
pub const KEYS: &[(&str, &[&str])] = &[
    ("", &["schema_version", "compute-runtime", "gpu-device-ids", "tag", "permissions", "restart"]),
    ("", &["enable-gpu", "GPU_NODE", "ROCM_BASE_URL", "ROCM_DEB_PACKAGE"]),
    ("cdi", &["path", "names"]),
    ("module-options", &[]),
    // Names of machines and users: no report needs them.
    ("inventory", &[]),
    ("wrapper", &["runtime", "requests", "default", "pods", "sharing", "folders"]),
    ("wrapper", &["wait-limit-s", "idle-grace-s", "quarantine"]),
    ("wrapper.edits", &["shm-size", "memlock"]),
    ("wrapper.edits.hsa-override-gfx-version", &[]),
    ("driver", &["install", "version"]),
    ("containerd", &["configure", "config", "runtime"]),
    ("docker", &["configure", "config", "runtime"]),
    ("crio", &["configure", "config", "runtime"]),
    ("concourse", &["configure", "existing", "tags"]),
    ("boot", &["unit", "wait-s"]),
    ("daemon", &["unit", "enforce", "restart", "interval-s", "settle-s"]),
    ("exporter", &["unit", "listen", "web-config", "pcie_bw", "existing"]),
    ("packages", &["container-toolkit", "rocm-smi", "proxy"]),
    ("rocm", &["install", "version", "packages", "usecases", "sha256"]),
    ("rocm.therock", &["version", "family", "release", "sha256", "url"]),
    ("repositories", &["key", "fingerprints", "origin"]),
    ("repositories.container-toolkit", &["url", "suite", "component"]),
    ("repositories.rocm", &["url", "suite", "component"]),
    ("repositories.amdgpu", &["url", "suite", "component"]),
];
