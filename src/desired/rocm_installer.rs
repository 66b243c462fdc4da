//! ROCm by AMD's own installer, as ClusterBloom has it: its package, and what it is asked for.

use reconcile::{Action, Desired, Installer, Package};

use crate::config::{self, Config, DKMS};

/// What notes are about.
const ROCM: &str = "rocm";

const PACKAGE: &str = "amdgpu-install";
/// What the package brings.
const PROGRAM: &str = "/usr/bin/amdgpu-install";

/// `suite`: the folder of the release, `jammy` or `noble`.
pub(super) fn push(config: &Config, suite: &str, is_container: bool, desired: &mut Desired) {
    let file = &config.rocm.installer;
    let url = format!("{}/{suite}/{}", file.base_url.trim_end_matches('/'), file.package);
    let why_without = if is_container {
        Some("this is a container, whose kernel is the host's")
    } else if config.driver != config::Driver::Keep {
        Some("driver.install brings the kernel driver")
    } else {
        None
    };
    let is_left_out = |usecase: &&String| why_without.is_some() && *usecase == DKMS;
    if let Some(why) = why_without.filter(|_| config.rocm.usecases.iter().any(|it| is_left_out(&it))) {
        desired.note(ROCM, format!("amdgpu-install is not asked for {DKMS}: {why}"));
    }
    let kept = config.rocm.usecases.iter().filter(|usecase| !is_left_out(usecase));
    let usecases: Vec<&str> = kept.map(String::as_str).collect();
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
