//! What a terminal shows of GPUs: [`top`] is the live table, [`topology`] the matrix of links.

pub mod top;
pub mod topology;
