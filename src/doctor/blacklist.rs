//! What keeps amdgpu from being loaded: [`packages::driver::Hindrances`].

use check::{About, Check};
use packages::driver::kmm::{self, LEAVE};
use packages::driver::{Hindrance, Hindrances};

use super::machine::Subject;

const NAME: &str = "blacklist";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let about = About::all(NAME);
    subject
        .needs_host(about.clone(), "a container's modprobe.d decides nothing: the host loads the driver")?;
    subject.needs_amd(about.clone(), "there is no AMD GPU that needs the driver")?;
    let hindrances = Hindrances::read(subject.root);
    let module = &subject.facts.inventory.amdgpu;
    let is_meant = kmm::loads(subject.root, module, &hindrances);
    let loaded = module.loaded == Ok(true);
    let Hindrances { found, unread } = hindrances;
    let mut checks: Vec<Check> =
        found.into_iter().map(|hindrance| check_of(hindrance, loaded, is_meant)).collect();
    checks.extend(unread.into_iter().map(|(path, error)| About::one(NAME, path).skipped(error.to_string())));
    if checks.is_empty() {
        checks.push(about.ok("neither modprobe.d nor the kernel's command line keeps amdgpu out"));
    }
    Ok(checks)
}

/// `is_meant`: the blacklist is right, because KMM loads the driver.
fn check_of(hindrance: Hindrance, loaded: bool, is_meant: bool) -> Check {
    let Hindrance { place, says, remedy } = hindrance;
    let about = About::one(NAME, place);
    if is_meant && loaded {
        about.ok(format!(
            "{says:?} keeps the kernel's own amdgpu out, and KMM has loaded another build: leave it"
        ))
    } else if is_meant {
        about.failed(format!("{says:?} keeps the kernel's own amdgpu out, and KMM has loaded none"), LEAVE)
    } else if loaded {
        // Loaded by hand or by another module: true until the next boot.
        about.warning(format!("{says:?} keeps amdgpu from being loaded at the next boot"), remedy)
    } else {
        about.failed(format!("{says:?} keeps amdgpu from being loaded"), remedy)
    }
}
