//! The GPUs as the hypervisor lists them.

use inventory::{Gpu, model, names, snapshot};
use root::Root;

use crate::offered::{Offered, left_out, numa_node, offered};

/// A GPU; what is unknown is empty, 0 or -1.
#[derive(Debug, Clone, Default)]
pub(crate) struct Device {
    pub(crate) uuid: String,
    pub(crate) model: String,
    pub(crate) driver_version: String,
    pub(crate) firmware_version: String,
    /// The render node: /dev/dri/renderD128.
    pub(crate) device_node: String,
    pub(crate) numa_node: i32,
    pub(crate) memory_bytes: u64,
    pub(crate) compute_units: u64,
    /// Dense FP16, in 10¹² operations a second.
    pub(crate) tflops: f64,
    pub(crate) pcie_generation: u32,
    pub(crate) pcie_width: u32,
    pub(crate) properties: Vec<(&'static str, String)>,
}

/// Reads the devices, and sentences on what is missing. `node`: the name of the Kubernetes node.
pub(crate) fn devices(root: &Root, node: Option<&str>) -> (Vec<Device>, Vec<String>) {
    let inventory = amdgpu::read(root);
    let driver_version = inventory.amdgpu.version.clone().unwrap_or_default();
    let cards = inventory.cards();
    let gpus = offered(&cards, &amdgpu::partitioning(root, &inventory), node);
    let mut sentences = left_out(&inventory, &gpus);
    let read: Vec<snapshot::Card> = cards.iter().map(|card| amdgpu::snapshot::card(root, card)).collect();
    let mut devices = Vec::new();
    for it in &gpus {
        let Some(card) = read.get(it.card) else { continue };
        let device = Device { driver_version: driver_version.clone(), ..device(it, card) };
        if device.tflops == 0.0 {
            sentences.push(format!(
                "the rate of {} is not known: set fp16TFlops for this model in the ProviderConfig",
                device.model
            ));
        }
        devices.push(device);
    }
    (devices, sentences)
}

fn device(offered: &Offered<'_>, card: &snapshot::Card) -> Device {
    let gpu = offered.gpu;
    let readings = &card.readings;
    Device {
        uuid: offered.uuid.clone(),
        model: name(offered),
        driver_version: String::new(),
        firmware_version: readings.vbios_version.clone().unwrap_or_default(),
        device_node: gpu.render.as_ref().map(|node| node.path.display().to_string()).unwrap_or_default(),
        numa_node: numa_node(&gpu.numa_node),
        memory_bytes: memory_bytes(offered, card).unwrap_or_default(),
        compute_units: compute_units(offered).unwrap_or_default().into(),
        tflops: tflops(offered).unwrap_or_default(),
        pcie_generation: readings.pcie.max_speed.and_then(generation).unwrap_or_default(),
        pcie_width: readings.pcie.max_width.unwrap_or_default(),
        properties: properties(offered),
    }
}

/// The market name. A partition has its mode behind it: TensorFusion takes a rate from the ProviderConfig by this name, and a
/// partition's is not its card's.
fn name(offered: &Offered<'_>) -> String {
    let gpu = offered.gpu;
    let name = model(gpu).map(|model| model.name.to_owned()).or_else(|| names::of(gpu)).unwrap_or_default();
    match offered.part.and_then(|part| part.mode) {
        Some(mode) => format!("{name} {}", mode.name()),
        None => name,
    }
}

/// The memory that the GPU works in. Of a suspended card it is the model's.
pub(crate) fn memory_bytes(offered: &Offered<'_>, card: &snapshot::Card) -> Option<u64> {
    if let Some(part) = offered.part {
        return part.memory_bytes;
    }
    let of_gpu = || offered.gpu.vram_bytes.as_ref().ok().copied();
    let of_card = card.readings.own_memory().and_then(|memory| memory.total_bytes);
    of_card.or_else(of_gpu).or_else(|| model(offered.gpu).map(|model| model.memory_bytes))
}

pub(crate) fn compute_units(offered: &Offered<'_>) -> Option<u32> {
    let of_model = || model(offered.gpu).filter(|_| offered.part.is_none()).map(|model| model.compute_units);
    offered.gpu.compute_units.or_else(of_model)
}

/// A partition has the share of its card's rate that it has of the compute units.
fn tflops(offered: &Offered<'_>) -> Option<f64> {
    let model = model(offered.gpu)?;
    let whole = model.fp16_tflops?;
    if offered.part.is_none() {
        return Some(whole);
    }
    Some(whole * f64::from(offered.gpu.compute_units?) / f64::from(model.compute_units))
}

/// PCI Express Base Specification: the generation with this speed, in transfers a second.
fn generation(speed: f64) -> Option<u32> {
    const SPEEDS: [f64; 6] = [2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9];
    (1..).zip(SPEEDS).find_map(|(generation, at)| ((speed - at).abs() < 1e8).then_some(generation))
}

fn properties(offered: &Offered<'_>) -> Vec<(&'static str, String)> {
    let gpu: &Gpu = offered.gpu;
    let partition = gpu.partition.as_ref();
    let of_part = partition.filter(|_| offered.part.is_some());
    let mode = match offered.part {
        Some(part) => part.mode.map(|mode| mode.name().to_owned()),
        None => partition.and_then(|partition| partition.compute.clone().ok()),
    };
    let path = |node: &inventory::DeviceNode| node.path.display().to_string();
    let known = [
        ("pciAddress", gpu.pci.map(|address| address.to_string())),
        ("deviceId", gpu.device_id.map(|id| format!("{id:04x}"))),
        ("productName", gpu.product_name.clone().ok()),
        ("gfx", gpu.gfx.as_ref().ok().map(ToString::to_string)),
        ("index", gpu.index.map(|index| index.to_string())),
        ("cardNode", gpu.card.as_ref().map(path)),
        ("renderNode", gpu.render.as_ref().map(path)),
        ("kfdNode", gpu.kfd_node.map(|node| node.to_string())),
        ("hive", gpu.hive_id.map(inventory::topology::hive_name)),
        ("cardUuid", gpu.card_uuid.map(|uuid| uuid.to_string())),
        ("partition", of_part.map(|partition| partition.id.to_string())),
        ("computePartition", mode),
        ("memoryPartition", partition.and_then(|partition| partition.memory.clone().ok())),
    ];
    known.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_speed_of_a_link_has_its_generation() {
        for (speed, expected) in
            [(2.5e9, Some(1)), (8e9, Some(3)), (16e9, Some(4)), (32e9, Some(5)), (64e9, Some(6)), (1e9, None)]
        {
            assert_eq!(generation(speed), expected, "{speed}");
        }
    }
}
