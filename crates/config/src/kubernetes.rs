//! What a Kubernetes node says of its GPUs.

use std::collections::BTreeSet;

use inventory::labels::Property;
use serde::{Deserialize, Serialize};

/// The labels of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubernetes {
    /// The properties that have labels. Labels such as `gpu=true` need none.
    pub labels: BTreeSet<Property>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KubernetesDocument {
    labels: Option<BTreeSet<Property>>,
}

impl KubernetesDocument {
    pub(super) fn resolve(self) -> Kubernetes {
        Kubernetes { labels: self.labels.unwrap_or_else(|| BTreeSet::from(Property::USUAL)) }
    }
}
