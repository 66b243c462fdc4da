//! What the driver tells of a card in binary, read a second time with nothing but the fields' offsets.

use amdgpu::{
    gpu_metrics::ATTRIBUTES, gpu_metrics::File, gpu_metrics::Format, gpu_metrics::GpuMetrics,
    gpu_metrics::Integer,
};

use crate::assert_fit_for_a_log;

type Values = Vec<(&'static str, u32, u64)>;

/// The first byte chooses the file; what is behind it are the file's bytes.
pub fn check(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let file = if choice % 2 == 0 { File::Gpu } else { File::Partition };
    let read = decode(file, bytes);
    match (&read, expected(file, bytes)) {
        (Some(read), Some(expected)) => assert_eq!(*read, expected),
        (None, None) => {}
        (read, expected) => panic!("read as {read:?}, and should be {expected:?}"),
    }
    // What follows the structure, or does not, changes nothing.
    let Some(values) = read else { return };
    let size = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    for other in [bytes[..size].to_vec(), [&bytes[..size], &[7; 64]].concat()] {
        assert_eq!(decode(file, &other).as_ref(), Some(&values));
    }
}

fn decode(file: File, bytes: &[u8]) -> Option<Values> {
    let read = match file {
        File::Gpu => GpuMetrics::decode(bytes),
        File::Partition => GpuMetrics::decode_partition(bytes),
    };
    let metrics = read.inspect_err(|reason| assert_fit_for_a_log(&reason.to_string())).ok()?;
    assert_eq!(metrics.version, (bytes[2], bytes[3]));
    let of = |name| metrics.values(name).map(move |(place, value)| (name, place, value));
    Some(metrics.names().flat_map(of).collect())
}

fn expected(file: File, bytes: &[u8]) -> Option<Values> {
    let header: [u8; 4] = bytes.get(..4)?.try_into().expect("four bytes");
    let format = file.format_of((header[2], header[3]))?;
    let bytes = bytes.get(..usize::from(header[0]) + usize::from(header[1]) * 256)?;
    let Format::Structure(structure) = format else { return attributes(bytes) };
    let structure =
        [structure, structure.without_arrays()].into_iter().find(|it| it.size() == bytes.len())?;
    let mut values = Values::new();
    for field in structure.fields() {
        for place in 0..field.structures * field.count {
            let (nth, index) = ((place / field.count) as usize, (place % field.count) as usize);
            let offset = field.offset + nth * field.stride + index * field.integer.size();
            let value = number(field.integer, &bytes[offset..offset + field.integer.size()]);
            values.extend(value.filter(|_| !field.is_padding()).map(|value| (field.name, place, value)));
        }
    }
    Some(values)
}

fn attributes(bytes: &[u8]) -> Option<Values> {
    let count = bytes.get(4..8)?;
    // A negative int has its highest bit set.
    if count[3] >= 128 {
        return None;
    }
    let (mut values, mut at, mut known) = (Values::new(), 8, Vec::new());
    for _ in 0..number(Integer::U64, &[count, &[0; 4]].concat())? {
        let encoding = bytes.get(at..at + 8)?;
        at += 8;
        let bit = |nth: usize| u64::from(encoding[nth / 8] >> (nth % 8) & 1);
        let bits = |from: usize, to: usize| (from..=to).fold(0, |sum, nth| sum + (bit(nth) << (nth - from)));
        let integer = *Integer::ALL.get(bits(20, 23) as usize)?;
        let size = integer.size();
        let all = bytes.get(at..at + bits(0, 9) as usize * size)?;
        at += all.len();
        let Some((name, unit)) = ATTRIBUTES.get(bits(10, 19) as usize) else { continue };
        if *unit != 0 && u64::from(*unit) != bits(24, 31) {
            continue;
        }
        if known.contains(name) {
            return None;
        }
        known.push(*name);
        for place in 0..all.len() / size {
            let value = number(integer, &all[place * size..(place + 1) * size]);
            values.extend(value.map(|value| (*name, place as u32, value)));
        }
    }
    Some(values)
}

fn number(integer: Integer, bytes: &[u8]) -> Option<u64> {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let value = u64::from_le_bytes(wide);
    let bits = bytes.len() as u32 * 8;
    let is_signed = matches!(integer, Integer::S8 | Integer::S16 | Integer::S32 | Integer::S64);
    let is_negative = is_signed && value >> (bits - 1) == 1;
    (value.count_ones() != bits && !is_negative).then_some(value)
}
