//! The binary files `gpu_metrics` and `xcp_metrics` with invented values.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that asks for what no version has is wrong")]

use amdgpu::{
    gpu_metrics::ATTRIBUTES, gpu_metrics::Field, gpu_metrics::File, gpu_metrics::Format,
    gpu_metrics::HEADER_SIZE, gpu_metrics::Integer,
};

/// A value by its field's name and its place in the field's array, as `amdgpu::gpu_metrics` names them.
type Said<'a> = (&'a str, u32, u64);

/// A card's `gpu_metrics`. Fields without a value are all-ones, as the driver leaves them.
///
/// # Panics
/// Where the version is unknown or has no such field or place, or the value has too many bits for the field.
#[must_use]
pub fn gpu_metrics(version: (u8, u8), values: &[Said]) -> Vec<u8> {
    encode(File::Gpu, version, values)
}

/// A partition's `xcp_metrics`, likewise.
///
/// # Panics
/// Where [`gpu_metrics`] panics.
#[must_use]
pub fn partition_metrics(version: (u8, u8), values: &[Said]) -> Vec<u8> {
    encode(File::Partition, version, values)
}

fn encode(file: File, version: (u8, u8), values: &[Said]) -> Vec<u8> {
    let mut bytes = match file.format_of(version) {
        Some(Format::Structure(structure)) => in_structure(&structure.fields(), structure.size(), values),
        Some(Format::Attributes) => as_attributes(values),
        None => panic!("{file:?} {version:?} is no version"),
    };
    let size = u16::try_from(bytes.len()).unwrap();
    bytes[..2].copy_from_slice(&size.to_le_bytes());
    bytes[2..HEADER_SIZE].copy_from_slice(&[version.0, version.1]);
    bytes
}

fn in_structure(fields: &[Field], size: usize, values: &[Said]) -> Vec<u8> {
    let mut bytes = vec![u8::MAX; size];
    for (name, place, value) in values {
        let field = fields.iter().find(|field| field.name == *name);
        let field = field.unwrap_or_else(|| panic!("this version has no {name}"));
        let (_, offset) = field.places().find(|(known, _)| known == place).unwrap_or_else(|| {
            panic!("{name} has no place {place}");
        });
        put(&mut bytes[offset..], field.integer, *value);
    }
    bytes
}

/// Encodes attributes in the order of their ids, with the units of the structures' fields; each value has 64
/// bits.
fn as_attributes(values: &[Said]) -> Vec<u8> {
    let unknown = values.iter().find(|(name, ..)| ATTRIBUTES.iter().all(|(known, _)| known != name));
    assert_eq!(unknown, None, "no attribute has this name");
    let mut bytes = vec![u8::MAX; HEADER_SIZE + 4];
    let mut count = 0_i32;
    for (id, (name, unit)) in (0_u64..).zip(ATTRIBUTES) {
        let of_it: Vec<_> = values.iter().filter(|(said, ..)| said == name).collect();
        let Some(last) = of_it.iter().map(|(_, place, _)| *place).max() else { continue };
        let integer = Integer::U64;
        let code = Integer::ALL.iter().position(|known| *known == integer).unwrap();
        let encoding = u64::from(*unit) << 24 | (code as u64) << 20 | id << 10 | u64::from(last + 1);
        bytes.extend(encoding.to_le_bytes());
        let start = bytes.len();
        bytes.resize(start + (last as usize + 1) * integer.size(), u8::MAX);
        for (_, place, value) in of_it {
            put(&mut bytes[start + *place as usize * integer.size()..], integer, *value);
        }
        count += 1;
    }
    bytes[HEADER_SIZE..HEADER_SIZE + 4].copy_from_slice(&count.to_le_bytes());
    bytes
}

fn put(bytes: &mut [u8], integer: Integer, value: u64) {
    let (value, beyond) = (value.to_le_bytes(), integer.size());
    assert!(value[beyond..].iter().all(|byte| *byte == 0), "{value:?} does not fit into {integer:?}");
    bytes[..beyond].copy_from_slice(&value[..beyond]);
}
