//! `detect --output json`: the contract that others rely on. Documented in docs/json.md.

use host::facts::Facts;
use host::remarks::remarks;
use inventory::Inventory;
use serde::Serialize;

/// What `detect` prints as JSON.
#[derive(Debug, Serialize)]
pub struct Detection<'f> {
    #[serde(flatten)]
    pub inventory: &'f Inventory,
    /// What a person should know before containers use the GPUs, and is no fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl<'f> Detection<'f> {
    #[must_use]
    pub fn new(facts: &'f Facts) -> Self {
        let notes = remarks(facts).into_iter().map(|remark| remark.text).collect();
        Self { inventory: &facts.inventory, notes }
    }
}
