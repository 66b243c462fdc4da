//! Compares the exporter's values with those that other projects' programs read from the captured machines.

mod machines;
mod ours;
mod real_amd_smi;
mod real_node_exporter;
mod real_rocm_smi;
