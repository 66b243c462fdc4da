//! What stood in a file before the first edit.

use super::tree::{Step, Tree};
use crate::{Fault, Moved};

/// A text as it was, in which a table may have had another name.
pub(super) struct Before<'t> {
    tree: Tree<'t>,
    moved: Option<&'t Moved>,
}

impl<'t> Before<'t> {
    pub(super) fn new(text: &'t str, moved: Option<&'t Moved>) -> Result<Self, Fault> {
        Ok(Self { tree: Tree::parse(text)?, moved })
    }

    pub(super) fn tree(&self) -> &Tree<'t> {
        &self.tree
    }

    pub(super) fn is_moved(&self) -> bool {
        self.moved.is_some()
    }

    /// What a path named, or its name before the move.
    pub(super) fn find(&self, path: &[String]) -> Option<Step<'_>> {
        let older = || self.tree.find(&self.moved?.older(path)?);
        self.tree.find(path).or_else(older)
    }
}
