//! ROCm beside apt's packages: by AMD's own installer, and as one archive, with the link by which programs find it.

use std::path::PathBuf;

use reconcile::{Action, Content, Desired, Installer, Kind, Package, Stage, Unpacked};

use crate::component::Component;
use crate::config::{Config, DKMS, RocmFrom};

/// What notes are about.
const ROCM: &str = "rocm";

const PACKAGE: &str = "amdgpu-install";
/// What the package brings.
const PROGRAM: &str = "/usr/bin/amdgpu-install";

/// ROCm by AMD's own installer, as ClusterBloom has it: its package, and what it is asked for. `suite`: the folder of the
/// release, `jammy` or `noble`.
pub(super) fn by_installer(config: &Config, suite: &str, is_container: bool, desired: &mut Desired) {
    let file = &config.rocm.installer;
    let url = format!("{}/{suite}/{}", file.base_url.trim_end_matches('/'), file.package);
    let why_without = if is_container {
        Some("this is a container, whose kernel is the host's")
    } else if config.driver.is_some() {
        Some("driver.install brings the kernel driver")
    } else {
        None
    };
    let mut usecases: Vec<&str> = config.rocm.usecases.iter().map(String::as_str).collect();
    if let Some(why) = why_without.filter(|_| usecases.contains(&DKMS)) {
        usecases.retain(|usecase| *usecase != DKMS);
        desired.note(ROCM, format!("amdgpu-install is not asked for {DKMS}: {why}"));
    }
    if usecases.is_empty() {
        desired.note(ROCM, "amdgpu-install is asked for nothing, and does not come");
        return;
    }
    let usecases = usecases.join(",");
    let reason = match file.sha256 {
        Some(_) => format!("ROCm by AMD's installer, for {usecases}"),
        None => format!(
            "ROCm by AMD's installer, for {usecases}; {url} is trusted for its server alone, and rocm.sha256 would check it"
        ),
    };
    let argv = vec![PROGRAM.to_owned(), format!("--usecase={usecases}"), "--yes".to_owned()];
    let installer = Installer { url, sha256: file.sha256.clone(), argv };
    desired.push(Action::package(Package::present(PACKAGE).by(installer), &reason));
}

/// Where ROCm's own programs look for ROCm.
const LINK: &str = "/opt/rocm";

/// What every release of ROCm has.
const HOLDS: [&str; 3] = ["bin", "lib", "include"];

/// What should be so of ROCm's archive.
pub(super) fn archive(config: &Config) -> Desired {
    let mut desired = Desired::default();
    let RocmFrom::TheRock(archive) = &config.rocm.install else { return desired };
    let path = archive.path();
    let unpacked = Unpacked {
        url: archive.url(),
        sha256: archive.sha256.clone(),
        holds: HOLDS.map(PathBuf::from).to_vec(),
    };
    desired.push(Action::unpacked(&path, unpacked, "ROCm's user space"));
    let link = Kind::Owned(Content::Link { target: PathBuf::from(&path) });
    desired.push(Action::new(Stage::Shape, LINK, link, "programs find ROCm here").after(path));
    desired.of(Component::Packages)
}
