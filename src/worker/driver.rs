//! AMD's own kernel driver, where the configuration asks for it: its packages, or why it cannot be installed.

use reconcile::{Action, Desired, Package};

use super::selection::is_off;
use crate::config::{self, Config};
use crate::driver::{Bring, Driver, Offered, Pairing, Stop, pairing, preflight};
use crate::facts::Facts;

/// What notes are about, and the concern.
pub const ABOUT: &str = "driver";

/// What decides about the driver, read where the configuration asks for one.
#[derive(Debug)]
pub struct Ground {
    pub driver: Driver,
    /// What apt has of the packages that are missing; `None`: it was not asked. Else why it does not tell.
    pub offered: Result<Option<Offered>, String>,
}

/// The driver's packages. What cannot end well is said, and nothing is changed: what is there of an earlier apply stays.
#[must_use]
pub fn actions(config: &Config, facts: &Facts, ground: Option<&Ground>) -> Desired {
    let mut desired = Desired::default();
    let (config::Driver::AmdgpuDkms(wanted), Some(ground)) = (&config.driver, ground) else { return desired };
    if is_off(config) || facts.amd().next().is_none() {
        return desired;
    }
    let answer = match &ground.offered {
        Ok(offered) => preflight(wanted, facts.virtualization.as_ref(), &ground.driver, offered.as_ref()),
        Err(why) => Err(Stop::apt(why)),
    };
    match answer {
        Ok(bring) => bring.into_iter().for_each(|bring| desired.push(action(bring))),
        Err(stop) => {
            desired.problem(ABOUT, format!("the driver {wanted} is not installed: {stop}"));
            desired.undecided.push(ABOUT.to_owned());
            return desired;
        }
    }
    match &ground.driver.rocm {
        Some(rocm) => desired.note(ABOUT, Pairing::of(wanted, rocm).to_string()),
        None => desired.note(ABOUT, pairing::alone(wanted)),
    }
    desired
}

fn action(bring: Bring) -> Action {
    let Bring { package, version, why } = bring;
    let package = match version {
        Some(version) => Package::exactly(package, version),
        None => Package::present(package),
    };
    Action::package(package, why)
}
