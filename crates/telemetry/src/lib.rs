//! Metrics of a machine's GPUs for Prometheus.
//!
//! Data flows one way: [`exporter`] reads an [`inventory::Snapshot`], [`samples`] makes samples of it,
//! [`exposition`] writes them. [`metrics`] is the one table of metrics. The program `rocworker-exporter`
//! serves the text; `rocworker metrics` prints it once.

pub mod accounting;
mod card;
pub mod container;
pub mod daemon_file;
pub mod exporter;
pub mod exposition;
mod format;
pub mod health;
mod hip_worker;
pub mod hostname;
mod identity;
mod links;
pub mod metric;
pub mod metrics;
pub mod printable;
pub mod processes;
mod published;
pub mod sample;
pub mod samples;
