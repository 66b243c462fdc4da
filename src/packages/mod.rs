//! What of apt's is there that AMD's packages have to do with.

mod sources;

use root::Root;

pub use sources::{Known, known};

use crate::driver::{Distribution, Unfit};

/// Read only where packages are wanted at all: a machine on which they are kept has nothing to do with apt.
#[derive(Debug)]
pub struct Packages {
    pub distribution: Result<Distribution, Unfit>,
    /// Repositories that are configured already, ours among them.
    pub sources: Vec<Known>,
}

impl Packages {
    #[must_use]
    pub fn read(root: &Root) -> Self {
        Self { distribution: Distribution::read(root), sources: known(root) }
    }
}
