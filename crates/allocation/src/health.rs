//! What the wrapper takes from the daemon's judgement of the GPUs.

pub mod withheld;

use inventory::health::{Health, SCHEMA_VERSION};

use crate::document::Document;

impl Document for Health {
    const SCHEMA_VERSION: u32 = SCHEMA_VERSION;
    const NAME: &'static str = "health file";
}
