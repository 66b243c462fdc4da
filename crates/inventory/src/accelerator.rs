//! AMD's accelerators as AMD sells them: names, sizes and peak rates, which no file of the driver says.
//!
//! Sources: device ids from the PCI id database, those of virtual functions and of HF cards from the AMD GPU Operator's
//! NodeFeatureRule; compute units and memory of Instinct from ROCm 10.2's page "AMD GPU specifications" (2026); rates
//! from what each row names. A rate is operations a clock and compute unit, times compute units, times the peak clock.

use crate::Gpu;

/// A product. Its figures are those of one whole PCI device: an MI250 or MI250X is two.
#[derive(Debug, PartialEq)]
pub struct Model {
    /// The market name, as in `AMD Instinct MI300X`.
    pub name: &'static str,
    /// The peak rate in FP16, in 10¹² operations a second: dense matrices, or vectors where the chip has no matrix cores.
    /// `None` where AMD publishes none.
    pub fp16_tflops: Option<f64>,
    pub compute_units: u32,
    /// What the driver reports comes first: some MI50 have twice as much, and one of eight virtual functions an eighth.
    pub memory_bytes: u64,
    /// AMD's PCI device ids of it, virtual functions' among them.
    pub device_ids: &'static [u16],
}

const fn row(
    name: &'static str,
    device_ids: &'static [u16],
    fp16_tflops: Option<f64>,
    compute_units: u32,
    memory_gib: u64,
) -> Model {
    Model { name, fp16_tflops, compute_units, memory_bytes: memory_gib << 30, device_ids }
}

static MODELS: [Model; 18] = [
    // AMD's announcement of 2018-11-06 says 26.8, the data sheet of 2019 26.5.
    row("AMD Instinct MI50", &[0x66a0, 0x66a1], Some(26.5), 60, 16),
    // AMD's announcement of 2018-11-06.
    row("AMD Instinct MI60", &[0x66a0, 0x66a1], Some(29.5), 64, 32),
    // AMD's product page of 2020: 1.7 GHz.
    row("AMD Radeon Pro VII", &[0x66a0, 0x66a1], Some(26.1), 60, 16),
    // AMD's announcement of 2020-11-16.
    row("AMD Instinct MI100", &[0x738c, 0x738e], Some(184.6), 120, 32),
    // Data sheet of 2022.
    row("AMD Instinct MI210", &[0x740f, 0x7410], Some(181.0), 104, 64),
    // AMD's announcement of 2021-11-08: the card has 362.1, 208 and 128 GB, on two dies of a PCI device each.
    row("AMD Instinct MI250", &[0x740c], Some(181.0), 104, 64),
    // AMD's announcement of 2021-11-08: the card has 383.0, 220 and 128 GB, on two dies of a PCI device each.
    row("AMD Instinct MI250X", &[0x7408, 0x740c], Some(191.5), 110, 64),
    // Data sheet of 2023-12.
    row("AMD Instinct MI300A", &[0x74a0, 0x74b4], Some(980.6), 228, 128),
    // Data sheet of 2023-12. AMD publishes nothing about HF cards.
    row("AMD Instinct MI300X", &[0x74a1, 0x74a9, 0x74b5, 0x74bd], Some(1307.4), 304, 192),
    // AMD publishes no rate; the figures that people pass on contradict each other (115 to 1,524).
    row("AMD Instinct MI308X", &[0x74a2, 0x74a8, 0x74b6, 0x74bc], None, 80, 192),
    // Data sheet of 2024-10.
    row("AMD Instinct MI325X", &[0x74a5, 0x74b9], Some(1307.4), 304, 256),
    // Data sheets of 2025-06.
    row("AMD Instinct MI350X", &[0x75a0, 0x75b0], Some(2306.9), 256, 288),
    row("AMD Instinct MI355X", &[0x75a3, 0x75b3], Some(2516.6), 256, 288),
    // AMD's product pages of 2020-11.
    row("AMD Radeon RX 6800", &[0x73bf], Some(32.3), 60, 16),
    row("AMD Radeon RX 6800 XT", &[0x73bf], Some(41.5), 72, 16),
    row("AMD Radeon RX 6900 XT", &[0x73af, 0x73bf], Some(46.1), 80, 16),
    // AMD's product pages of 2022-12.
    row("AMD Radeon RX 7900 XT", &[0x744c], Some(103.2), 84, 20),
    row("AMD Radeon RX 7900 XTX", &[0x744c], Some(122.9), 96, 24),
];

/// All models.
#[must_use]
pub fn models() -> &'static [Model] {
    &MODELS
}

/// The model of a GPU, if its ids leave no doubt. Where models share a device id, the driver's name for the product
/// decides, or else the number of compute units.
#[must_use]
pub fn model(gpu: &Gpu) -> Option<&'static Model> {
    let id = gpu.device_id.filter(|_| gpu.vendor_id == Some(0x1002))?;
    let product = gpu.product_name.as_deref().unwrap_or_default();
    let named = || only(Model::with(id).filter(|it| it.is_named_in(product)));
    let sized = || only(Model::with(id).filter(|it| gpu.compute_units == Some(it.compute_units)));
    Model::of(id).or_else(named).or_else(sized)
}

impl Model {
    /// The model with this PCI device id of AMD's; `None` where several have it.
    #[must_use]
    pub fn of(device_id: u16) -> Option<&'static Self> {
        only(Self::with(device_id))
    }

    #[must_use]
    pub fn without_vendor(&self) -> &'static str {
        self.name.trim_start_matches("AMD ")
    }

    fn with(device_id: u16) -> impl Iterator<Item = &'static Self> {
        MODELS.iter().filter(move |it| it.device_ids.contains(&device_id))
    }

    /// Whether all words of the name are in the driver's, as in `AMD INSTINCT MI250 (MCM) OAM AC MBA`.
    fn is_named_in(&self, product: &str) -> bool {
        let has = |word: &str| product.split_whitespace().any(|other| other.eq_ignore_ascii_case(word));
        self.without_vendor().split(' ').all(has)
    }
}

fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Vendor, names};

    fn amd(device_id: u16) -> Gpu {
        Gpu { vendor_id: Some(0x1002), device_id: Some(device_id), ..Gpu::unread(Vendor::Amd, "a test") }
    }

    #[test]
    fn a_device_id_names_the_product_that_the_pci_id_database_names() {
        for model in &MODELS {
            for id in model.device_ids {
                let name = names::of_chip(&amd(*id)).unwrap_or_default();
                // The database lacks several virtual functions and HF cards, and the MI60.
                let is_there = !matches!(
                    id,
                    0x66a0 | 0x66a1 | 0x7410 | 0x74a8 | 0x74b4 | 0x74b6 | 0x74bc | 0x75b0 | 0x75b3
                );
                let number = model.name.split(' ').find(|word| word.chars().any(|it| it.is_ascii_digit()));
                assert!(
                    !is_there || number.is_some_and(|number| name.contains(number)),
                    "{id:04x} {model:?} {name}"
                );
            }
        }
    }

    #[test]
    fn ids_distinguish_models_of_one_chip() {
        for (id, name) in [
            (0x74a1, "AMD Instinct MI300X"),
            (0x74b5, "AMD Instinct MI300X"),
            (0x74a9, "AMD Instinct MI300X"),
            (0x74bd, "AMD Instinct MI300X"),
            (0x74a5, "AMD Instinct MI325X"),
            (0x74b9, "AMD Instinct MI325X"),
            (0x74a2, "AMD Instinct MI308X"),
            (0x74b6, "AMD Instinct MI308X"),
            (0x7408, "AMD Instinct MI250X"),
            (0x7410, "AMD Instinct MI210"),
            (0x75b3, "AMD Instinct MI355X"),
            (0x73af, "AMD Radeon RX 6900 XT"),
        ] {
            assert_eq!(model(&amd(id)).map(|it| it.name), Some(name), "{id:04x}");
        }
        for unknown in [0x0000, 0x15bf, 0x747e, 0x75a8] {
            assert_eq!(model(&amd(unknown)), None, "{unknown:04x}");
        }
        assert_eq!(model(&Gpu { vendor_id: Some(0x10de), ..amd(0x74a1) }), None, "another vendor's id");
        assert_eq!(model(&Gpu { device_id: None, ..amd(0x74a1) }), None);
    }

    #[test]
    fn the_product_decides_between_models_of_one_id_and_the_size_where_it_does_not() {
        for (id, product, compute_units, name) in [
            (0x740c, "AMD INSTINCT MI250 (MCM) OAM AC MBA", None, Some("AMD Instinct MI250")),
            (0x740c, "AMD INSTINCT MI250X (MCM) OAM LC MBA", Some(104), Some("AMD Instinct MI250X")),
            (0x740c, "", Some(110), Some("AMD Instinct MI250X")),
            (0x740c, "", Some(104), Some("AMD Instinct MI250")),
            (0x740c, "", None, None),
            (0x740c, "AMD INSTINCT MI2500", None, None),
            (0x66a1, "Radeon Instinct MI50", None, Some("AMD Instinct MI50")),
            (0x66a1, "", Some(64), Some("AMD Instinct MI60")),
            (0x66a1, "", Some(60), None),
            (0x73bf, "", Some(60), Some("AMD Radeon RX 6800")),
            (0x73bf, "Radeon RX 6800 XT", Some(72), Some("AMD Radeon RX 6800 XT")),
            (0x73bf, "", Some(80), Some("AMD Radeon RX 6900 XT")),
            (0x744c, "", Some(96), Some("AMD Radeon RX 7900 XTX")),
            (0x744c, "", Some(80), None),
            (0x74a1, "AMD Instinct MI325X", Some(38), Some("AMD Instinct MI300X")),
        ] {
            let gpu = Gpu { product_name: Ok(product.to_owned()), compute_units, ..amd(id) };
            assert_eq!(model(&gpu).map(|it| it.name), name, "{id:04x} {product} {compute_units:?}");
        }
    }

    /// Operations a clock and compute unit as in AMD's white papers on GCN, CDNA 1 to 4 and RDNA 2 and 3; clocks as in the
    /// data sheets.
    #[test]
    fn each_rate_follows_from_the_clock() {
        for (name, operations, mhz) in [
            ("AMD Instinct MI50", 256, 1725),
            ("AMD Instinct MI60", 256, 1800),
            ("AMD Radeon Pro VII", 256, 1700),
            ("AMD Instinct MI100", 1024, 1502),
            ("AMD Instinct MI210", 1024, 1700),
            ("AMD Instinct MI250", 1024, 1700),
            ("AMD Instinct MI250X", 1024, 1700),
            ("AMD Instinct MI300A", 2048, 2100),
            ("AMD Instinct MI300X", 2048, 2100),
            ("AMD Instinct MI325X", 2048, 2100),
            ("AMD Instinct MI350X", 4096, 2200),
            ("AMD Instinct MI355X", 4096, 2400),
            ("AMD Radeon RX 6800", 256, 2105),
            ("AMD Radeon RX 6800 XT", 256, 2250),
            ("AMD Radeon RX 6900 XT", 256, 2250),
            ("AMD Radeon RX 7900 XT", 512, 2400),
            ("AMD Radeon RX 7900 XTX", 512, 2500),
        ] {
            let model = MODELS.iter().find(|it| it.name == name).unwrap();
            let tflops = f64::from(model.compute_units * operations * mhz) / 1e6;
            let published = model.fp16_tflops.unwrap();
            assert!((published - tflops).abs() < 0.1, "{name}: {published}, {tflops}");
        }
    }
}
