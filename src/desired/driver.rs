//! AMD's own kernel driver, where the configuration asks for it: its packages, or why it cannot be installed.

use reconcile::{Action, Desired, Package};

use super::packages::knows_driver;
use crate::component::Component;
use crate::config::{self, Config};
pub use crate::driver::Ground;
use crate::driver::{Apt, Bring, PACKAGE, Pairing, Stop, pairing, preflight};
use crate::facts::Facts;
use crate::packages::Packages;

/// What notes are about.
pub const ABOUT: &str = "driver";

/// The driver's part of what should be.
#[derive(Debug, Default)]
pub struct Part {
    /// Packages, for [`super::packages`]: they come through the same key and repositories as AMD's others.
    pub bring: Vec<Bring>,
    /// What is said, and where the driver cannot be installed, that what is there of packages stays.
    pub said: Desired,
}

/// The driver's packages. What cannot end well is said, and nothing is changed: what is there of an earlier apply stays.
#[must_use]
pub fn part(config: &Config, facts: &Facts, ground: Option<&Ground>, found: &Packages) -> Part {
    let mut part = Part::default();
    let config::Driver::AmdgpuDkms(wanted) = &config.driver else { return part };
    let Some(Ground { driver, offered }) = ground else {
        // Nobody has looked, as before engines start.
        part.said.undecided.push(Component::Packages.as_ref().to_owned());
        return part;
    };
    let answer = match offered {
        Ok(offered) => {
            let has_repository = driver
                .distribution
                .as_ref()
                .is_ok_and(|distribution| knows_driver(config, found, *distribution));
            let apt = Apt { offered: offered.as_ref(), has_repository };
            preflight(wanted, facts.virtualization.as_ref(), driver, apt)
        }
        Err(why) => Err(Stop::apt(why)),
    };
    match answer {
        Ok(bring) => {
            part.bring = bring;
            if part.bring.iter().any(|bring| bring.waits) {
                let text = format!(
                    "the driver {wanted} is not installed yet: apt has another release from another repository; apply has \
                     it read AMD's of {wanted}, and installs from there once it has"
                );
                part.said.problem(ABOUT, text);
                part.said.undecided.push(Component::Packages.as_ref().to_owned());
            } else {
                // Every boot does by itself (modules-load.d). One that is loaded stays, whichever build it is.
                let load = Action::module("amdgpu", "the driver runs");
                part.said.push(load.after(Package::present(PACKAGE).resource()));
            }
            part.said = part.said.of(Component::Packages);
        }
        Err(stop) => {
            part.said.problem(ABOUT, format!("the driver {wanted} is not installed: {stop}"));
            part.said.undecided.push(Component::Packages.as_ref().to_owned());
            return part;
        }
    }
    part.said.note(
        ABOUT,
        match &driver.rocm {
            Some(rocm) => Pairing::of(wanted, rocm).to_string(),
            None => pairing::alone(wanted),
        },
    );
    if let Some(release) = driver.release().filter(|release| release != wanted)
        && part.bring.iter().all(|bring| bring.version.is_none())
    {
        let text = format!(
            "the driver {release} is there, and apt has not read AMD's repository of {wanted} yet: apply has it read that, \
             and installs from there once it has"
        );
        part.said.problem(ABOUT, text);
    }
    part
}
