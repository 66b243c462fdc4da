//! The GPUs that can be given, and the choice among them.

use super::{Gpu, Refusal};
use crate::{cdi::Spec, policy::Policy, request::Request};

/// The GPUs that a policy gives away on a machine that a CDI spec describes.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// What the spec has, in the order of the indexes, each with its place in `spec.devices`.
    machine: Vec<(Gpu, usize)>,
    /// What the policy allows, with the spec's device for it, if it has one.
    allowed: Vec<(Gpu, Option<usize>)>,
}

/// A GPU that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen<'i> {
    pub gpu: &'i Gpu,
    /// Its place in [`Spec::devices`].
    pub device: usize,
}

impl Inventory {
    /// Brings the policy's GPUs and the spec's devices together.
    #[must_use]
    pub fn new(policy: &Policy, spec: &Spec<'_>) -> Self {
        let _ = (policy, spec);
        todo!()
    }

    /// The GPUs that may be had, in the order of their indexes, whether they are there or not.
    pub fn gpus(&self) -> impl Iterator<Item = &Gpu> {
        self.allowed.iter().map(|(gpu, _)| gpu)
    }

    /// The GPUs that this request gets, in the order of their indexes. `uses` says how many containers have
    /// a GPU now; only a count looks at it.
    ///
    /// # Errors
    /// The request cannot be met in full.
    pub fn select(
        &self,
        request: &Request,
        uses: impl Fn(&Gpu) -> usize,
    ) -> Result<Vec<Chosen<'_>>, Refusal> {
        let _ = (request, uses, &self.machine);
        todo!()
    }

    /// What the default gives: all that is there, and a refusal for each that is not, to be said as a warning.
    #[must_use]
    pub fn all_that_is_there(&self) -> (Vec<Chosen<'_>>, Vec<Refusal>) {
        todo!()
    }
}
