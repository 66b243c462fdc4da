//! One look at the machine's cards and at who uses them.

use inventory::partitioning::Card;
use inventory::{Inventory, PciAddress};
use packages::driver::{Hindrances, kmm};
use root::Root;

use super::{Holder, holders, kernel};
use crate::lease::{self, Held};

/// How many minors the DRM of earlier kernels gives out to cards.
pub(super) const MINORS: usize = 64;

/// The cards with their modes, and the processes on them.
#[derive(Debug)]
pub struct Look {
    pub inventory: Inventory,
    pub cards: Vec<Card>,
    /// The compute processes, or why they are not known.
    pub holders: Result<Vec<Holder>, String>,
    /// Containers that were given the cards' devices, whether they compute now or not; or why they are not known.
    pub leases: Result<Vec<(PciAddress, String)>, String>,
    /// Whether KMM loads this node's driver, which is then not rocworker's to load again.
    pub is_loaded_by_kmm: bool,
    /// Whether the kernel gives no further primary node (`cardN`), or one at most.
    pub(super) lacks_minors: bool,
}

impl Look {
    #[must_use]
    pub fn at(root: &Root) -> Self {
        let inventory = amdgpu::read(root);
        let cards = amdgpu::partitioning(root, &inventory);
        let holders = holders(root, &inventory);
        let names = root.list("/sys/class/drm").unwrap_or_default();
        let number = |name: &str| name.strip_prefix("card").map(|it| it.parse::<u32>());
        let minors = names.iter().filter(|it| matches!(it.to_str().and_then(number), Some(Ok(_)))).count();
        // Linux 6.12 has more minors (drm_drv.c, `drm_minor_alloc`).
        let has_few_minors = kernel::is_since(root, (6, 12)) != Some(true);
        let is_loaded_by_kmm = kmm::loads(root, &inventory.amdgpu, &Hindrances::read(root));
        let leases = leases(root);
        Self {
            inventory,
            cards,
            holders,
            leases,
            is_loaded_by_kmm,
            lacks_minors: has_few_minors && minors + 1 >= MINORS,
        }
    }
}

fn leases(root: &Root) -> Result<Vec<(PciAddress, String)>, String> {
    let (held, _) = lease::list(root).map_err(|error| format!("{error:#}"))?;
    let held = held.into_iter().filter(Held::is_taken);
    Ok(held.filter_map(|held| Some((held.gpu?.pci?, held.id?))).collect())
}
