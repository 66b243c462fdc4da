//! The installed driver as kmod sees it, held against what dkms has built.

use amdgpu::Module;
use reconcile::command::Programs;
use root::Root;

use super::dkms::State;
use super::{Attempt, Driver, Seen, Verdict, module, verify};

/// Asks modinfo and modprobe; changes nothing. `loaded`: the module that runs. `attempt`: the last reboot that was asked
/// for.
///
/// # Errors
/// What cannot be told, and why.
pub fn look(
    root: &Root,
    programs: &Programs,
    driver: &Driver,
    loaded: &Module,
    attempt: Option<&Attempt>,
) -> Result<Verdict, String> {
    let kernel = &driver.kernel.as_ref()?.release;
    let dkms = driver.dkms.as_ref()?;
    // Where dkms has nothing installed, it is said what is missing, whatever kmod finds.
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
