//! DRM minors in sysfs and `/dev` (drivers/gpu/drm/drm_sysfs.c), and the platform devices that
//! carry the minors of further partitions (amdgpu_xcp_drv.c).

use crate::tree::relative;
use crate::{Device, Entry, Error, Gpu, Tree};

/// DRM's major number (Documentation/admin-guide/devices.txt).
pub(crate) const MAJOR: u32 = 226;
/// Debian's and Ubuntu's static gid of video.
const VIDEO: u32 = 44;
/// A usual gid of render; it is given out dynamically, and differs from machine to machine.
pub(crate) const RENDER: u32 = 992;

/// The kernel's spelling of the platform devices of partitions: both are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum XcpNames {
    /// `amdgpu_xcp.0`
    Dot,
    /// `amdgpu_xcp_0`
    #[default]
    Underscore,
}

/// Adds the minors of a GPU and of its further partitions. `next_xcp` counts the partitions'
/// platform devices over the whole machine, as the driver does.
pub(crate) fn lay_out(
    gpu: &Gpu,
    folder: &str,
    names: XcpNames,
    next_xcp: &mut u32,
    tree: &mut Tree,
) -> Result<(), Error> {
    let has_minor = gpu.card.is_some() || gpu.render.is_some() || !gpu.partitions.is_empty();
    if has_minor && gpu.driver.is_none() {
        return Err(Error::MinorWithoutDriver { address: gpu.address.clone() });
    }
    if let Some(card) = gpu.card {
        minor(folder, &format!("card{card}"), card, VIDEO, tree)?;
    }
    if let Some(render) = gpu.render {
        minor(folder, &format!("renderD{render}"), render, RENDER, tree)?;
    }
    for (card, render) in &gpu.partitions {
        let name = match names {
            XcpNames::Dot => format!("amdgpu_xcp.{next_xcp}"),
            XcpNames::Underscore => format!("amdgpu_xcp_{next_xcp}"),
        };
        *next_xcp += 1;
        let folder = platform_device(&name, tree);
        minor(&folder, &format!("card{card}"), *card, VIDEO, tree)?;
        minor(&folder, &format!("renderD{render}"), *render, RENDER, tree)?;
    }
    Ok(())
}

fn platform_device(name: &str, tree: &mut Tree) -> String {
    let folder = format!("/sys/devices/platform/{name}");
    // platform_uevent() names what was registered, without the number that the dot form appends.
    let registered = name.split('.').next().unwrap_or(name);
    tree.put(&format!("{folder}/uevent"), format!("MODALIAS=platform:{registered}\n"));
    tree.put(&format!("{folder}/modalias"), format!("platform:{registered}\n"));
    let subsystem = format!("{folder}/subsystem");
    tree.put(&subsystem, Entry::Link(relative(&subsystem, "/sys/bus/platform")));
    let by_name = format!("/sys/bus/platform/devices/{name}");
    tree.put(&by_name, Entry::Link(relative(&by_name, &folder)));
    folder
}

fn minor(parent: &str, name: &str, minor: u32, gid: u32, tree: &mut Tree) -> Result<(), Error> {
    let folder = format!("{parent}/drm/{name}");
    let by_class = format!("/sys/class/drm/{name}");
    tree.claim(&by_class, Entry::Link(relative(&by_class, &folder)))?;
    tree.put(&format!("{folder}/dev"), format!("{MAJOR}:{minor}\n"));
    tree.put(
        &format!("{folder}/uevent"),
        format!("MAJOR={MAJOR}\nMINOR={minor}\nDEVNAME=dri/{name}\nDEVTYPE=drm_minor\n"),
    );
    // The kernel writes this one by its parent's name though "../.." would do.
    let parent_name = parent.rsplit('/').next().unwrap_or(parent);
    tree.put(&format!("{folder}/device"), Entry::Link(format!("../../../{parent_name}")));
    let subsystem = format!("{folder}/subsystem");
    tree.put(&subsystem, Entry::Link(relative(&subsystem, "/sys/class/drm")));
    let by_number = format!("/sys/dev/char/{MAJOR}:{minor}");
    tree.claim(&by_number, Entry::Link(relative(&by_number, &folder)))?;
    tree.put(&format!("/dev/dri/{name}"), Device::new(MAJOR, minor, gid));
    Ok(())
}
