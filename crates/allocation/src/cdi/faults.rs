//! What is wrong with a spec by the rules of CDI.

use std::fmt;

use super::Spec;

/// One thing that is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: `kind`, `devices[3]`, `containerEdits.hooks[0]`.
    pub at: String,
    /// What, and what is right instead.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.problem)
    }
}

impl Spec<'_> {
    /// Everything that is wrong with the spec by the grammar of CDI 1.1.0: names, versions, paths, doubles.
    /// Empty: a consumer that knows its `cdiVersion` takes it.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        todo!()
    }
}
