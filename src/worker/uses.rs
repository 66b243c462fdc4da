//! Settings of engines that would name nothing if our runtime went: an engine with such a default does not start.

use std::path::Path;

use edit::Format;
use reconcile::Use;

/// Where docker names the runtime of containers that name none.
pub(super) fn of_docker(file: &Path, runtime: &str) -> Vec<Use> {
    vec![Use {
        file: file.to_owned(),
        format: Format::Json,
        key: vec!["default-runtime".to_owned()],
        value: runtime.to_owned(),
    }]
}

/// The sections in which the versions of containerd's file name the runtime of pods that name none.
const SECTIONS: [&[&str]; 3] = [
    &["plugins", "cri", "containerd", "default_runtime_name"],
    &["plugins", "io.containerd.grpc.v1.cri", "containerd", "default_runtime_name"],
    &["plugins", "io.containerd.cri.v1.runtime", "containerd", "default_runtime_name"],
];

/// Where containerd does, in each of its files.
pub(super) fn of_containerd<'a>(files: impl Iterator<Item = &'a Path>, runtime: &str) -> Vec<Use> {
    let of_file = |file: &'a Path| {
        SECTIONS.map(|key| Use {
            file: file.to_owned(),
            format: Format::Toml,
            key: key.iter().map(|part| (*part).to_owned()).collect(),
            value: runtime.to_owned(),
        })
    };
    files.flat_map(of_file).collect()
}
