//! The exporter's values beside those that programs of other projects read from the same machine.

mod machines;
mod ours;
mod real_amd_smi;
mod real_node_exporter;
mod real_rocm_smi;
