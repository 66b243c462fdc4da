//! The binary files `gpu_metrics` and `xcp_metrics` (kgd_pp_interface.h), by name instead of by version.

mod apu;
mod attributes;
mod discrete;
mod instinct;
mod integer;
mod structure;

use integer::Values;
use inventory::{Reading, Unknown};

pub use attributes::ATTRIBUTES;
pub use integer::Integer;
pub use structure::{Field, HEADER_SIZE, Structure};

/// The values of a `gpu_metrics` or `xcp_metrics` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuMetrics {
    /// `format_revision` and `content_revision` of the header.
    pub version: (u8, u8),
    /// The fields that have a value in at least one place.
    fields: Vec<Values>,
}

/// The files with this header. Their versions are counted apart, so the caller says which one it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// `gpu_metrics` of a card.
    Gpu,
    /// `xcp/xcp_metrics` of a partition.
    Partition,
}

/// How a version lays its values out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A C structure.
    Structure(Structure),
    /// A list of values, each with its name, type and unit: see [`ATTRIBUTES`].
    Attributes,
}

/// Every published version: Linux 7.3, drivers/gpu/drm/amd/include/kgd_pp_interface.h. Linux 6.1 and 6.12 have fewer,
/// laid out alike.
pub const VERSIONS: &[(File, (u8, u8), Format)] = &[
    (File::Gpu, (1, 0), Format::Structure(discrete::V1_0)),
    (File::Gpu, (1, 1), Format::Structure(discrete::V1_1)),
    (File::Gpu, (1, 2), Format::Structure(discrete::V1_2)),
    (File::Gpu, (1, 3), Format::Structure(discrete::V1_3)),
    (File::Gpu, (1, 4), Format::Structure(instinct::V1_4)),
    (File::Gpu, (1, 5), Format::Structure(instinct::V1_5)),
    (File::Gpu, (1, 6), Format::Structure(instinct::V1_6)),
    (File::Gpu, (1, 7), Format::Structure(instinct::V1_7)),
    (File::Gpu, (1, 8), Format::Structure(instinct::V1_8)),
    (File::Gpu, (1, 9), Format::Attributes),
    (File::Gpu, (2, 0), Format::Structure(apu::V2_0)),
    (File::Gpu, (2, 1), Format::Structure(apu::V2_1)),
    (File::Gpu, (2, 2), Format::Structure(apu::V2_2)),
    (File::Gpu, (2, 3), Format::Structure(apu::V2_3)),
    (File::Gpu, (2, 4), Format::Structure(apu::V2_4)),
    (File::Gpu, (3, 0), Format::Structure(apu::V3_0)),
    (File::Partition, (1, 0), Format::Structure(instinct::PARTITION_V1_0)),
    (File::Partition, (1, 1), Format::Attributes),
];

impl File {
    /// The layout of a version of this file.
    #[must_use]
    pub fn format_of(self, version: (u8, u8)) -> Option<Format> {
        VERSIONS
            .iter()
            .find(|(file, known, _)| (*file, *known) == (self, version))
            .map(|(_, _, format)| *format)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu_metrics",
            Self::Partition => "xcp_metrics",
        }
    }
}

impl GpuMetrics {
    /// Decodes a card's `gpu_metrics`. All-ones of a field's width is no value.
    ///
    /// # Errors
    /// The version is unknown, the structure is not as long as that version's, or the file is shorter than it.
    pub fn decode(bytes: &[u8]) -> Reading<Self> {
        decode(File::Gpu, bytes)
    }

    /// Decodes a partition's `xcp_metrics`, as [`Self::decode`] does a card's file.
    ///
    /// # Errors
    /// Fails where [`Self::decode`] fails.
    pub fn decode_partition(bytes: &[u8]) -> Reading<Self> {
        decode(File::Partition, bytes)
    }

    /// The values of a field by the kernel's name, each with its place in the field's array (0 for a plain field), as the
    /// file has them: in the kernel's units.
    ///
    /// A field of the structures in `xcp_stats` is named `xcp_stats.gfx_busy_inst`. Its place counts through all
    /// partitions: of 8 values a partition, partition 2's first has place 16.
    pub fn values(&self, field: &str) -> impl Iterator<Item = (u32, u64)> {
        let values = self.fields.iter().find(|(name, _)| *name == field);
        values.into_iter().flat_map(|(_, values)| values.iter().copied())
    }

    /// A plain field, or an array's first value.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<u64> {
        self.values(field).find(|(place, _)| *place == 0).map(|(_, value)| value)
    }

    /// The names of the fields that have a value.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|(name, _)| *name)
    }
}

fn decode(file: File, bytes: &[u8]) -> Reading<GpuMetrics> {
    let name = file.name();
    let [low, high, format, content, ..] = *bytes else {
        let reason = format!("{name} has {} bytes, and its header alone has {HEADER_SIZE}", bytes.len());
        return Err(Unknown::because(reason));
    };
    let version = (format, content);
    let known = file.format_of(version);
    let known = known.ok_or_else(|| {
        Unknown::because(format!("{name} has version {format}.{content}, which rocworker does not know"))
    })?;
    // The file may be longer: a capture pads it to a page.
    let size = usize::from(u16::from_le_bytes([low, high]));
    let known = match known {
        Format::Structure(whole) => {
            let of_size = [whole, whole.without_arrays()].into_iter().find(|known| known.size() == size);
            let expected = whole.size();
            Format::Structure(of_size.ok_or_else(|| {
                Unknown::because(format!(
                    "{name} {format}.{content} is a structure of {size} bytes here, and rocworker knows the one of \
                     {expected}"
                ))
            })?)
        }
        Format::Attributes => Format::Attributes,
    };
    let structure_bytes = bytes.get(..size).ok_or_else(|| {
        let there = bytes.len();
        Unknown::because(format!("{name} {format}.{content} ends after {there} of {size} bytes"))
    })?;
    let fields = match known {
        Format::Structure(structure) => structure.decode(structure_bytes),
        Format::Attributes => attributes::decode(structure_bytes)
            .map_err(|fault| Unknown::because(format!("{name} {format}.{content}: {fault}")))?,
    };
    Ok(GpuMetrics { version, fields })
}
