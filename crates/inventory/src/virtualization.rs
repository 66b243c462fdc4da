/// What is around this machine, in the words of systemd-detect-virt(1), and `lxd` and `incus` where their guest
/// API distinguishes them from plain LXC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Around {
    /// No kernel module can be loaded from inside, and /dev has only the nodes that were passed in.
    Container(String),
    VirtualMachine(String),
}

impl Around {
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Container(name) | Self::VirtualMachine(name) => name,
        }
    }
}
