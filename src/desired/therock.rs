//! ROCm as one archive: its folder, and the link by which programs find it.

use std::path::PathBuf;

use reconcile::{Action, Content, Desired, Kind, Stage, Unpacked};

use crate::component::Component;
use crate::config::Config;

/// Where ROCm's own programs look for ROCm.
const LINK: &str = "/opt/rocm";

/// What every release of ROCm has.
const HOLDS: [&str; 3] = ["bin", "lib", "include"];

/// What should be so of ROCm's archive.
#[must_use]
pub fn actions(config: &Config) -> Desired {
    let mut desired = Desired::default();
    let Some(archive) = &config.rocm.therock else { return desired };
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
