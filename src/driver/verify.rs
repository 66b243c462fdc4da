//! Whether the driver that runs is the one that dkms has built: built, installed and loaded are three things.

use std::path::Path;

use reconcile::{Effect, ModuleBuild, Receipt};

use super::Stop;
use super::dkms::{Dkms, State};
use super::module::{Modprobe, ModuleFile};
use super::stop::Reason;

/// A reboot that was asked for, so that one that did not help is not asked for again.
pub type Attempt = ModuleBuild;

/// The last one that was asked for.
#[must_use]
pub fn asked_for(receipt: &Receipt) -> Option<&Attempt> {
    receipt.pending.iter().find_map(|pending| match &pending.effect {
        Effect::Reboot { module, .. } => module.as_ref(),
        _ => None,
    })
}

/// What is known once the driver is installed. Kmod is asked for the files ([`super::module`]); the rest is read.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The running kernel.
    pub kernel: &'a str,
    pub dkms: &'a Dkms,
    /// What dkms has built for it.
    pub built: Option<&'a ModuleFile>,
    /// What modprobe finds.
    pub found: Option<&'a ModuleFile>,
    /// What `modprobe amdgpu` does; `None`: it finds no such module.
    pub modprobe: Option<&'a Modprobe>,
    pub is_loaded: bool,
    /// Of the loaded module.
    pub srcversion: Option<&'a str>,
    pub boot_id: &'a str,
    /// What was asked for last.
    pub attempt: Option<&'a Attempt>,
}

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: the driver that was built is loaded.
    Loaded,
    /// `modprobe amdgpu` loads it.
    Loadable,
    /// Another build of amdgpu is loaded, and it cannot be taken out from under what uses it. To be remembered.
    Reboot(Attempt),
    /// Something that neither loading nor a reboot puts right.
    Wrong(Stop),
}

/// Pure.
#[must_use]
pub fn verify(seen: &Seen<'_>) -> Verdict {
    decide(seen).unwrap_or_else(Verdict::Wrong)
}

fn decide(seen: &Seen<'_>) -> Result<Verdict, Stop> {
    let kernel = seen.kernel;
    let version = match seen.dkms.state(kernel) {
        State::Installed(version, _) => &version.name,
        State::Unknown => return Err(wrong("dkms has no amdgpu", "install amdgpu-dkms")),
        State::Added(version) => {
            let name = &version.name;
            return Err(wrong(
                format!("dkms has amdgpu {name}, and nothing is built of it for the running kernel {kernel}"),
                format!(
                    "dkms install amdgpu/{name} -k {kernel}; where that fails, read \
                     /var/lib/dkms/amdgpu/{name}/build/make.log"
                ),
            ));
        }
        State::Built(version, _) => {
            let name = &version.name;
            return Err(wrong(
                format!("amdgpu {name} is built for the running kernel {kernel}, and not installed"),
                format!("dkms install amdgpu/{name} -k {kernel}"),
            ));
        }
    };
    let ours = found(seen)?;
    if !seen.is_loaded {
        return match seen.modprobe {
            Some(Modprobe::Loads(path)) if *path == ours.path => Ok(Verdict::Loadable),
            Some(Modprobe::Runs(command)) => Err(wrong(
                format!("modprobe amdgpu runs {command:?} in place of loading it"),
                "remove the line `install amdgpu …` from modprobe.d (rocworker doctor names it)",
            )),
            _ => Err(wrong("modprobe finds no amdgpu", "depmod -a")),
        };
    }
    match (seen.srcversion, &ours.srcversion) {
        (Some(loaded), Some(built)) if loaded == built => Ok(Verdict::Loaded),
        // A module that shows none is not this one either.
        (_, Some(_)) => reboot(seen, version),
        (_, None) => Err(wrong(
            format!(
                "{} has no srcversion, so that it cannot be told whether it is loaded",
                ours.path.display()
            ),
            "reboot, and compare modinfo amdgpu with /sys/module/amdgpu",
        )),
    }
}

/// The file that modprobe takes, which has to be the one that dkms has built.
fn found<'a>(seen: &Seen<'a>) -> Result<&'a ModuleFile, Stop> {
    let Some(found) = seen.found else {
        return Err(wrong("dkms has installed amdgpu, and modinfo finds no such module", "depmod -a"));
    };
    let path = &found.path;
    // /lib may be a link to /usr/lib, and kmod may name either.
    let place = path.strip_prefix("/usr").or_else(|_| path.strip_prefix("/")).unwrap_or(path);
    if !place.starts_with(Path::new("lib/modules").join(seen.kernel).join("updates")) {
        return Err(wrong(
            format!("dkms has installed amdgpu, and modprobe takes {}", path.display()),
            "depmod -a; where that changes nothing, see what /etc/depmod.d says",
        ));
    }
    match seen.built.and_then(|built| built.srcversion.as_ref()) {
        Some(built) if Some(built) != found.srcversion.as_ref() => Err(wrong(
            format!("{} is not the module that dkms has built", path.display()),
            format!("dkms install --force amdgpu -k {}", seen.kernel),
        )),
        _ => Ok(found),
    }
}

/// Once for a driver and a kernel: where the machine has been booted since and still has another module, a second
/// reboot would be a loop.
fn reboot(seen: &Seen<'_>, version: &str) -> Result<Verdict, Stop> {
    let this = Attempt {
        version: version.to_owned(),
        kernel: seen.kernel.to_owned(),
        boot_id: seen.boot_id.to_owned(),
    };
    match seen.attempt {
        Some(last)
            if last.version == this.version && last.kernel == this.kernel && last.boot_id != this.boot_id =>
        {
            Err(wrong(
                format!(
                    "the machine was rebooted for amdgpu {version}, and another build of amdgpu is loaded still"
                ),
                format!(
                    "update-initramfs -u -k {}: the initramfs may hold the older module; then reboot",
                    seen.kernel
                ),
            ))
        }
        Some(last) if *last == this => Ok(Verdict::Reboot(last.clone())),
        _ => Ok(Verdict::Reboot(this)),
    }
}

fn wrong(why: impl Into<String>, remedy: impl Into<String>) -> Stop {
    Stop::new(Reason::NotLoaded, why, remedy)
}
