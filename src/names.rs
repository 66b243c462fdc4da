//! What to call a GPU.

use amdgpu::Gpu;
use pci_ids::Device;

/// The driver's own name for the product, else the PCI id database's for the chip; `None` when neither
/// knows it.
#[must_use]
pub fn of(gpu: &Gpu) -> Option<String> {
    if let Ok(name) = &gpu.product_name {
        return Some(name.clone());
    }
    let device = Device::from_vid_pid(gpu.vendor_id?, gpu.device_id?)?;
    Some(device.name().to_owned())
}
