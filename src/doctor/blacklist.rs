//! What keeps amdgpu from being loaded: [`crate::driver::Hindrances`].

use super::machine::Subject;
use crate::check::{About, Check};
use crate::driver::{Hindrance, Hindrances};

const NAME: &str = "blacklist";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let about = About::all(NAME);
    subject
        .needs_host(about.clone(), "a container's modprobe.d decides nothing: the host loads the driver")?;
    subject.needs_amd(about.clone(), "there is no AMD GPU that needs the driver")?;
    let Hindrances { found, unread } = Hindrances::read(subject.root);
    let loaded = subject.facts.machine.amdgpu.loaded == Ok(true);
    let mut checks: Vec<Check> = found.into_iter().map(|hindrance| check_of(hindrance, loaded)).collect();
    checks.extend(unread.into_iter().map(|(path, error)| About::one(NAME, path).skipped(error.to_string())));
    if checks.is_empty() {
        checks.push(about.ok("neither modprobe.d nor the kernel's command line keeps amdgpu out"));
    }
    Ok(checks)
}

fn check_of(hindrance: Hindrance, loaded: bool) -> Check {
    let Hindrance { place, says, remedy } = hindrance;
    let about = About::one(NAME, place);
    if loaded {
        // Loaded by hand or by another module: true until the next boot.
        about.warning(format!("{says:?} keeps amdgpu from being loaded at the next boot"), remedy)
    } else {
        about.failed(format!("{says:?} keeps amdgpu from being loaded"), remedy)
    }
}
