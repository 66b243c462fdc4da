//! What the kernel says of AMD GPUs.

use std::sync::LazyLock;

use kernel_log::knowledge::{Knowledge, Message};

/// The known messages: read once, for there are many.
pub(crate) static MESSAGES: LazyLock<Vec<Message>> = LazyLock::new(|| {
    let knowledge = Knowledge::built_in();
    knowledge.map_or_else(|_| Vec::new(), |knowledge| knowledge.messages().to_vec())
});
