//! What `rocworker remote` and the rocworker on the other machine (`rocworker exporter`) need for the exporter there.

pub mod exporter_config;
pub mod package;
pub mod scrape;
