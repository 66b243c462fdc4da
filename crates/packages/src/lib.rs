//! What AMD publishes for a machine: its kernel [`driver`], ROCm and the tools, of which [`smi`] is asked.
//! [`desired`] says what should be there.

pub mod desired;
pub mod driver;
pub mod smi;

use reconcile::sources::{Known, known};
use root::Root;

use crate::driver::Distribution;

/// What apt knows that AMD's packages depend on. Read only where packages are wanted at all: a machine on which they are kept has nothing to do with apt.
#[derive(Debug)]
pub struct Packages {
    pub distribution: Result<&'static Distribution, String>,
    /// Repositories that are configured already, rocworker's among them: apt refuses a repository that is configured
    /// twice with different `Signed-By`, and then does nothing at all.
    pub sources: Vec<Known>,
}

impl Packages {
    #[must_use]
    pub fn read(root: &Root) -> Self {
        Self { distribution: Distribution::read(root), sources: known(root) }
    }
}
