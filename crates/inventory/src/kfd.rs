//! KFD, the driver that computing goes through.

use std::fmt;

use crate::{DeviceNode, Reading};

/// The node that every compute process opens.
#[derive(Debug)]
pub struct Kfd {
    /// Whether the kernel has a KFD; the reason when not.
    pub topology: Reading<()>,
    /// Why amdgpu started no KFD, where a parameter says it.
    pub parameter: Option<KfdParameter>,
    pub node: DeviceNode,
    /// KFD nodes that the device cgroup hides from this process.
    pub hidden_nodes: usize,
}

/// A parameter that is out of KFD's range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KfdParameter {
    pub name: &'static str,
    pub value: i64,
    /// The least value that KFD takes.
    pub least: i64,
    pub most: i64,
}

impl fmt::Display for KfdParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, least, most } = self;
        write!(f, "amdgpu's parameter {name} is {value}, and KFD takes {least} to {most}")
    }
}
