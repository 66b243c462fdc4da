//! AMD's own kernel driver, where the configuration asks for it: its packages, or why it cannot be installed.

use config::{Build, Component, Config, Managed, Release};
use host::facts::Facts;
use inventory::Around;
use reconcile::{Action, Desired, Package, Want};

use super::apt::knows_driver;
use super::rocm::{self, ROCM};
use crate::Packages;
use crate::driver::{Bring, Ground, PACKAGE, Stop, ingredients, pairing, preflight};

/// The subject of this module's notes.
pub const ABOUT: &str = "driver";

/// What to bring for the driver of the release `wanted` on this machine, by [`preflight`].
///
/// # Errors
/// Why the driver cannot be installed.
pub fn packages(
    config: &Config,
    facts: &Facts,
    ground: &Ground,
    found: &Packages,
    wanted: &Release,
) -> Result<Vec<Bring>, Stop> {
    let distribution = ground.driver.distribution.as_ref();
    let has_repository = distribution.is_ok_and(|distribution| knows_driver(config, found, distribution));
    preflight(wanted, facts.inventory.virtualization.as_ref(), ground, has_repository)
}

/// The driver's packages, for [`super::apt`], which brings all of AMD's packages by one key. The second value has the
/// notes, and loads the module; where the driver cannot be installed, it keeps what an earlier apply installed. `None`:
/// amdgpu-install is not to be run.
#[must_use]
pub fn part(
    config: &Config,
    facts: &Facts,
    ground: Option<&Ground>,
    found: &Packages,
) -> (Option<Vec<Bring>>, Desired) {
    let mut desired = Desired::default();
    let wanted = match &config.driver {
        Managed::Off(_) => return (Some(Vec::new()), desired),
        Managed::On(Build::Installer) => return by_installer(facts, ground),
        Managed::On(Build::Release(wanted)) => wanted,
    };
    let Some(ground) = ground else {
        // Nobody looked at the packages, as before engines start.
        desired.leave(Component::Packages);
        return (Some(Vec::new()), desired);
    };
    let bring = match packages(config, facts, ground, found, wanted) {
        Ok(bring) => bring,
        Err(stop) => {
            desired.problem(ABOUT, format!("the driver {wanted} is not installed: {stop}"));
            desired.leave(Component::Packages);
            return (Some(Vec::new()), desired);
        }
    };
    if bring.iter().any(|bring| bring.waits) {
        let text = format!(
            "the driver {wanted} is not installed yet: apt has another release from another repository; apply has it read \
             AMD's of {wanted}, and installs from there once it has"
        );
        desired.problem(ABOUT, text);
        desired.leave(Component::Packages);
    } else {
        // Every boot loads the module by itself (modules-load.d). A loaded module stays, whichever build it is.
        let load = Action::module("amdgpu", "the driver runs");
        desired.push(load.after(Package::present(PACKAGE).resource()));
    }
    let mut desired = desired.of(Component::Packages);
    let (Ok(pair) | Err(pair)) = pairing(wanted, ground.driver.rocm.as_ref());
    desired.note(ABOUT, pair);
    if let Some(release) = ground.driver.release().filter(|release| release != wanted)
        && bring.iter().all(|bring| bring.package.want == Want::Present { version: None })
    {
        let text = format!(
            "the driver {release} is there, and apt has not read AMD's repository of {wanted} yet: apply has it read that, \
             and installs from there once it has"
        );
        desired.problem(ABOUT, text);
    }
    (Some(bring), desired)
}

/// What brings the driver by amdgpu-install: what dkms needs comes before it, and modprobe after it.
fn by_installer(facts: &Facts, ground: Option<&Ground>) -> (Option<Vec<Bring>>, Desired) {
    let mut desired = Desired::default();
    if matches!(facts.inventory.virtualization, Some(Around::Container(_))) {
        return (Some(Vec::new()), desired);
    }
    let bring = ground.map(|ground| ingredients(&Build::Installer, ground));
    if let Some(Err(stop)) = &bring {
        desired.problem(ROCM, format!("amdgpu-install is not run: {stop}"));
    }
    let Some(Ok(bring)) = bring else {
        desired.leave(Component::Packages);
        return (None, desired);
    };
    let load = Action::module("amdgpu", "the driver runs");
    desired.push(load.after(Package::present(rocm::PACKAGE).resource()));
    (Some(bring), desired.of(Component::Packages))
}
