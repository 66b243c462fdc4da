//! The classes and messages of the kernel that rules can name.

use std::sync::LazyLock;

use kernel_log::knowledge::{Class, Knowledge};

/// The ids of the known messages, with their classes: read once, for there are many.
pub(crate) static IDS: LazyLock<Vec<(Class, String)>> = LazyLock::new(|| {
    let id = |message: &kernel_log::knowledge::Message| (message.class, message.id.clone());
    let ids = |knowledge: Knowledge| knowledge.messages().iter().map(id).collect();
    Knowledge::built_in().map_or_else(|_| Vec::new(), ids)
});
