//! Counts each GPU's XGMI links. A partitioned machine has thousands of files for them, which change only
//! with KFD's topology: they are read once for each generation of the topology.

use std::collections::BTreeMap;

use amdgpu::{topology_generation, xgmi_links};
use inventory::Reading;
use root::Root;

#[derive(Debug, Clone, Default)]
pub(crate) struct Links {
    generation: Option<u64>,
    /// Links by KFD node. What could not be read is tried again at the next scrape.
    counts: BTreeMap<u32, u32>,
}

impl Links {
    /// Begins a scrape.
    pub(crate) fn begin_scrape(&mut self, root: &Root) {
        let generation = topology_generation(root).ok();
        // Without a generation nothing shows that the topology is unchanged.
        if generation.is_none() || generation != self.generation {
            *self = Self { generation, counts: BTreeMap::new() };
        }
    }

    pub(crate) fn of(&mut self, root: &Root, kfd_node: u32) -> Reading<u32> {
        if let Some(count) = self.counts.get(&kfd_node) {
            return Ok(*count);
        }
        let count = xgmi_links(root, kfd_node)?;
        self.counts.insert(kfd_node, count);
        Ok(count)
    }
}
