//! What a terminal shows of GPUs: [`top`] is the live table.

pub mod top;
