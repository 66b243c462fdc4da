//! Whether the driver that runs is the one that dkms has built: built, installed and loaded are three things.

use std::path::Path;

use inventory::Module;
use reconcile::command::Programs;
use reconcile::{Effect, ModuleBuild, Receipt};
use root::Root;

use super::dkms::{Dkms, State};
use super::module::{self, Modprobe, ModuleFile};
use super::{Driver, Stop};

/// The reboot that an earlier run asked for. A run does not ask again for a reboot that did not help.
pub type Attempt = ModuleBuild;

/// The last reboot that a run asked for.
#[must_use]
pub fn asked_for(receipt: &Receipt) -> Option<&Attempt> {
    receipt.pending.iter().find_map(|pending| match &pending.effect {
        Effect::Reboot { module, .. } => module.as_ref(),
        _ => None,
    })
}

/// What is known once the driver is installed. kmod names the module's files ([`super::module`]); rocworker reads the
/// rest from the machine.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The release of the running kernel.
    pub kernel: &'a str,
    pub dkms: &'a Dkms,
    /// What dkms has built for the running kernel.
    pub built: Option<&'a ModuleFile>,
    /// The file that modprobe finds for amdgpu.
    pub found: Option<&'a ModuleFile>,
    /// What `modprobe amdgpu` does; `None`: modprobe finds no such module.
    pub modprobe: Option<&'a Modprobe>,
    pub is_loaded: bool,
    /// The loaded module's srcversion.
    pub srcversion: Option<&'a str>,
    pub boot_id: &'a str,
    /// The last reboot that was asked for.
    pub attempt: Option<&'a Attempt>,
}

/// Whether the installed driver runs, and what brings it to run otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The driver that was built is loaded, and there is nothing to do.
    Loaded,
    /// The driver is built and not loaded: `modprobe amdgpu` loads it.
    Loadable,
    /// Another build of amdgpu is loaded, and cannot be unloaded while programs use it. The attempt is to be
    /// remembered.
    Reboot(Attempt),
    /// Something that neither loading nor a reboot puts right.
    Wrong(Stop),
}

/// Asks modinfo and modprobe; changes nothing. `loaded`: the module that runs. `attempt`: the last reboot that was asked
/// for.
///
/// # Errors
/// What cannot be read, and why.
pub fn look(
    root: &Root,
    programs: &Programs,
    driver: &Driver,
    loaded: &Module,
    attempt: Option<&Attempt>,
) -> Result<Verdict, String> {
    let kernel = &driver.kernel.as_ref()?.release;
    let dkms = driver.dkms.as_ref()?;
    // Kmod is not asked where dkms has nothing installed: that alone is the fault then.
    let (built, found) = match dkms.state(kernel) {
        State::Installed(_, build) => {
            (module::in_file(programs, &build.file)?, module::of_kernel(programs, kernel)?)
        }
        _ => (None, None),
    };
    let is_loaded = *loaded.loaded.as_ref().map_err(ToString::to_string)?;
    let leads = match &found {
        Some(_) if !is_loaded => Some(module::modprobe(programs, kernel)?),
        _ => None,
    };
    let boot_id = root.read_text("/proc/sys/kernel/random/boot_id", 64).map_err(|error| error.to_string())?;
    Ok(verify(&Seen {
        kernel,
        dkms,
        built: built.as_ref(),
        found: found.as_ref(),
        modprobe: leads.as_ref(),
        is_loaded,
        srcversion: loaded.srcversion.as_deref().ok(),
        boot_id: boot_id.trim(),
        attempt,
    }))
}

/// Judges from what was read whether the driver that was installed runs. Pure.
#[must_use]
pub fn verify(seen: &Seen<'_>) -> Verdict {
    decide(seen).unwrap_or_else(Verdict::Wrong)
}

/// The version that dkms has built and installed for this kernel; else how far dkms has come, and what to do.
///
/// # Errors
/// When dkms has installed none.
pub fn installed<'a>(dkms: &'a Dkms, kernel: &str) -> Result<&'a str, Stop> {
    let install = |name| format!("dkms install amdgpu/{name} -k {kernel}");
    match dkms.state(kernel) {
        State::Installed(version, _) => Ok(&version.name),
        State::Unknown => Err(Stop::new("dkms has no amdgpu", "install amdgpu-dkms")),
        // dkms reads dkms.conf in the source of what it has built, also to remove it (dkms 3.0.10: read_conf).
        State::SourceGone(version) => {
            let name = &version.name;
            let remove = if version.builds.is_empty() {
                format!("dkms remove amdgpu/{name} --all")
            } else {
                format!("rm -r /var/lib/dkms/amdgpu/{name}, for dkms remove needs the source")
            };
            Err(Stop::new(
                format!(
                    "dkms has amdgpu {name}, and its source is gone: it can be neither built nor installed"
                ),
                format!("{remove}; to have that driver, install amdgpu-dkms anew"),
            ))
        }
        State::Added(version) => {
            let (name, install) = (&version.name, install(&version.name));
            Err(Stop::new(
                format!("dkms has amdgpu {name}, and has not built it for the running kernel {kernel}"),
                format!("{install}; where that fails, read /var/lib/dkms/amdgpu/{name}/build/make.log"),
            ))
        }
        State::Built(version, _) => Err(Stop::new(
            format!("amdgpu {} is built for the running kernel {kernel}, and not installed", version.name),
            install(&version.name),
        )),
    }
}

fn decide(seen: &Seen<'_>) -> Result<Verdict, Stop> {
    let version = installed(seen.dkms, seen.kernel)?;
    let expected = found(seen)?;
    if !seen.is_loaded {
        return match seen.modprobe {
            Some(Modprobe::Loads(path)) if *path == expected.path => Ok(Verdict::Loadable),
            Some(Modprobe::Runs(command)) => Err(Stop::new(
                format!("modprobe amdgpu runs {command:?} in place of loading it"),
                "remove the line `install amdgpu …` from modprobe.d (rocworker doctor names it)",
            )),
            _ => Err(Stop::new("modprobe finds no amdgpu", "depmod -a")),
        };
    }
    match (seen.srcversion, &expected.srcversion) {
        (Some(loaded), Some(built)) if loaded == built => Ok(Verdict::Loaded),
        // A loaded module without a srcversion is not this build either.
        (_, Some(_)) => reboot(seen, version),
        (_, None) => Err(Stop::new(
            format!(
                "{} has no srcversion, so rocworker cannot tell whether it is the module that runs",
                expected.path.display()
            ),
            "reboot, and compare modinfo amdgpu with /sys/module/amdgpu",
        )),
    }
}

/// The file that modprobe takes, which has to be the one that dkms has built.
fn found<'a>(seen: &Seen<'a>) -> Result<&'a ModuleFile, Stop> {
    let Some(found) = seen.found else {
        return Err(Stop::new("dkms has installed amdgpu, and modinfo finds no such module", "depmod -a"));
    };
    let path = &found.path;
    // /lib may be a link to /usr/lib, and kmod may name either.
    let place = path.strip_prefix("/usr").or_else(|_| path.strip_prefix("/")).unwrap_or(path);
    if !place.starts_with(Path::new("lib/modules").join(seen.kernel).join("updates")) {
        return Err(Stop::new(
            format!("dkms has installed amdgpu, and modprobe takes {}", path.display()),
            "depmod -a; where that changes nothing, see what /etc/depmod.d says",
        ));
    }
    match seen.built.and_then(|built| built.srcversion.as_ref()) {
        Some(built) if Some(built) != found.srcversion.as_ref() => Err(Stop::new(
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
    let was_asked =
        seen.attempt.is_some_and(|last| last.version == this.version && last.kernel == this.kernel);
    if was_asked && seen.attempt.is_some_and(|last| last.boot_id != this.boot_id) {
        return Err(Stop::new(
            format!(
                "the machine was rebooted for amdgpu {version}, and another build of amdgpu is loaded still"
            ),
            format!(
                "update-initramfs -u -k {}: the initramfs may hold the older module; then reboot",
                seen.kernel
            ),
        ));
    }
    Ok(Verdict::Reboot(this))
}
