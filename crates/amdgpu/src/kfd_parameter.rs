//! Parameters of amdgpu with which KFD does not start (`kfd_init` in drivers/gpu/drm/amd/amdkfd/kfd_module.c).

use std::path::Path;

use inventory::KfdParameter;
use root::Root;

use crate::attribute;

/// Parameters of amdgpu with the least and the most that KFD takes: `enum kfd_sched_policy` and
/// `KFD_MAX_NUM_OF_QUEUES_PER_DEVICE` in kfd_priv.h, 512 processes of 1,024 queues.
const RANGES: [(&str, i64, i64); 2] =
    [("sched_policy", 0, 2), ("max_num_of_queues_per_device", 1, 512 * 1024)];

/// The first that the loaded driver has; one that cannot be read is none.
pub(crate) fn refused(root: &Root) -> Option<KfdParameter> {
    let folder = Path::new("/sys/module/amdgpu/parameters");
    RANGES.into_iter().find_map(|(name, least, most)| {
        let value = attribute::number(root, &folder.join(name)).ok()?;
        (!(least..=most).contains(&value)).then_some(KfdParameter { name, value, least, most })
    })
}
