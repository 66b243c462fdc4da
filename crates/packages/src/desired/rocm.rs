//! ROCm beside apt's packages: by AMD's own installer, and as one archive, with the link by which programs find it.

use std::path::PathBuf;

use config::{Component, Config, DKMS, InstallerFile, Managed, Rocm, TheRock};
use reconcile::{Action, Content, Desired, Installer, Kind, Package, Resource, Stage, Unpacked};

use crate::driver::Bring;

/// The subject of this module's notes.
pub const ROCM: &str = "rocm";

pub(super) const PACKAGE: &str = "amdgpu-install";
/// The program of the package amdgpu-install.
const PROGRAM: &str = "/usr/bin/amdgpu-install";

/// ROCm by AMD's own installer, as ClusterBloom has it: its package, and what it is asked for. `suite`: the folder of the
/// release, `jammy` or `noble`.
pub(super) fn by_installer(
    config: &Config,
    (file, usecases): (&InstallerFile, &[String]),
    suite: &str,
    driver: &[Bring],
    is_container: bool,
    desired: &mut Desired,
) {
    let url = format!("{}/{suite}/{}", file.base_url.trim_end_matches('/'), file.package);
    let why_without = if is_container {
        Some("this is a container, whose kernel is the host's")
    } else if config.driver_release().is_some() {
        Some("driver.install brings the kernel driver")
    } else {
        None
    };
    let mut usecases: Vec<&str> = usecases.iter().map(String::as_str).collect();
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
    // Without the kernel's headers dkms builds nothing, and the driver's package is installed all the same.
    let action = Action::package(Package::present(PACKAGE).by(installer), &reason);
    desired.push(headers(driver).fold(action, Action::after));
}

/// The packages of the kernel's headers among these.
pub(super) fn headers(driver: &[Bring]) -> impl Iterator<Item = Resource> {
    let is_it = |bring: &&Bring| bring.package.name.starts_with("linux-headers-");
    driver.iter().filter(is_it).map(|bring| bring.package.resource())
}

/// The link at which ROCm's own programs look for ROCm.
pub const LINK: &str = "/opt/rocm";

/// The desired state of ROCm's archive.
pub fn archive(config: &Config) -> Desired {
    let mut desired = Desired::default();
    let Managed::On(Rocm::Archive(archive @ TheRock { sha256: Some(sha256), .. })) = &config.rocm else {
        return desired;
    };
    let path = archive.path();
    let unpacked = Unpacked { url: archive.url(), sha256: sha256.clone(), holds: TheRock::holds() };
    desired.push(Action::unpacked(&path, unpacked, "ROCm's user space"));
    let link = Kind::Owned(Content::Link { target: PathBuf::from(&path) });
    desired.push(Action::new(Stage::Shape, LINK, link, "programs find ROCm here").after(path));
    desired.of(Component::Packages)
}
