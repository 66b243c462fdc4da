//! `gpu_metrics` and `xcp_metrics`: what is read of captured files, of invented ones, and of bytes that are neither.

mod bad_attributes;
mod bad_bytes;
mod captured;
mod encoded;
mod real_driver;
mod real_header;

use amdgpu::{gpu_metrics::ATTRIBUTES, gpu_metrics::File, gpu_metrics::Format, gpu_metrics::GpuMetrics};

fn decode(file: File, bytes: &[u8]) -> inventory::Reading<GpuMetrics> {
    match file {
        File::Gpu => GpuMetrics::decode(bytes),
        File::Partition => GpuMetrics::decode_partition(bytes),
    }
}

fn encode(file: File, version: (u8, u8), values: &[(&str, u32, u64)]) -> Vec<u8> {
    match file {
        File::Gpu => layout::gpu_metrics(version, values),
        File::Partition => layout::partition_metrics(version, values),
    }
}

/// Every field of a version with its number of places. The writer chooses how many places an attribute has.
fn fields(file: File, version: (u8, u8)) -> Vec<(&'static str, u32)> {
    match file.format_of(version).unwrap() {
        Format::Structure(structure) => {
            let fields = structure.fields().into_iter().filter(|field| !field.is_padding());
            fields.map(|field| (field.name, field.count * field.structures)).collect()
        }
        Format::Attributes => ATTRIBUTES.iter().map(|(name, _)| (*name, 3)).collect(),
    }
}

fn all_values(metrics: &GpuMetrics) -> Vec<(&'static str, u32, u64)> {
    let of = |name| metrics.values(name).map(move |(place, value)| (name, place, value));
    metrics.names().flat_map(of).collect()
}
