//! `task-check`: whether the container that this runs in can use AMD's GPUs. It needs nothing of the image but the
//! program itself: no ROCm, no shell, no library.
//!
//! [`nodes`] finds AMD's nodes in /dev by their numbers, [`open`] tries them, and [`verdict`] says what that means. Unlike
//! `doctor` it asks nothing about the machine: what a task cannot open it does not have, whatever sysfs shows.

pub mod nodes;
pub mod open;
pub mod verdict;

use root::Root;

pub use verdict::{Line, Verdict};

/// Looks at the container and tries what it finds.
#[must_use]
pub fn check(root: &Root) -> Verdict {
    let (renders, cards) = (nodes::look(root, nodes::Kind::Render), nodes::look(root, nodes::Kind::Card));
    let tried = renders.found.iter().map(|node| open::node(root, &node.path)).collect();
    verdict::of(&renders, &cards, tried, open::kfd(root))
}
