//! The binary file `gpu_metrics` (kgd_pp_interface.h), by name instead of by version.

use crate::attribute::{Reading, Unknown};

/// What a `gpu_metrics` or `xcp_metrics` file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuMetrics {
    /// `format_revision` and `content_revision` of the header.
    pub version: (u8, u8),
    values: Vec<(&'static str, u32, u64)>,
}

impl GpuMetrics {
    /// Decodes it. All-ones of a field's width is no value.
    ///
    /// # Errors
    /// The version is unknown, or the structure is not as long as that version's.
    pub fn decode(_bytes: &[u8]) -> Reading<Self> {
        Err(Unknown::because("not decoded yet"))
    }

    /// The values of a field by the kernel's name, each with its place in the field's array (0 for a plain field), as the
    /// file has them: in the kernel's units.
    pub fn values(&self, field: &str) -> impl Iterator<Item = (u32, u64)> {
        self.values
            .iter()
            .filter(move |(name, _, _)| *name == field)
            .map(|(_, place, value)| (*place, *value))
    }

    /// A plain field, or an array's first value.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<u64> {
        self.values(field).find(|(place, _)| *place == 0).map(|(_, value)| value)
    }
}
