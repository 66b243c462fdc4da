//! `rocworker serve` beneath a Root: the real inotify, and a captured machine's nodes in its record.

mod after_undo;
mod config;
mod exporter;
mod gpus;
mod health;
mod real_cards;
mod real_features;
mod real_hanging_gpu;
mod real_partition_race;
mod real_partitions;
mod real_restarts;
mod real_unit;
mod repairs;
pub(crate) mod running;
mod shutdown;
mod socket;
mod unit;
