//! Attributes that a driver might write one day, and such as none would.

use amdgpu::{gpu_metrics::File, gpu_metrics::GpuMetrics};

use super::{all_values, decode};

const U16: u64 = 2;
const S16: u64 = 3;
const U64: u64 = 6;
const CELSIUS: u64 = 2;
/// Ids of the header.
const HOTSPOT: u64 = 0;
const MEMORY: u64 = 1;
const ENERGY: u64 = 7;

/// AMDGPU_METRICS_ENC_ATTR of the header.
fn encoding(unit: u64, integer: u64, id: u64, count: u64) -> [u8; 8] {
    (unit << 24 | integer << 20 | id << 10 | count).to_le_bytes()
}

/// A file of version 1.9 with this attr_count and what follows it.
fn read(count: i32, parts: &[&[u8]]) -> Result<Vec<(&'static str, u32, u64)>, String> {
    let rest = parts.concat();
    let size = u16::try_from(8 + rest.len()).unwrap();
    let header = [&size.to_le_bytes()[..], &[1, 9], &count.to_le_bytes()].concat();
    let metrics = decode(File::Gpu, &[header, rest].concat()).map_err(|reason| reason.to_string())?;
    Ok(all_values(&metrics))
}

#[test]
fn what_is_not_known_is_left_out_and_what_follows_it_is_read() {
    let memory = [&encoding(CELSIUS, U16, MEMORY, 1)[..], &[61, 0]].concat();
    let unknown_id = [&encoding(CELSIUS, U16, 1023, 3)[..], &[1, 2, 3, 4, 5, 6]].concat();
    let other_unit = [&encoding(11, U16, HOTSPOT, 1)[..], &[50, 0]].concat();
    let no_values = encoding(CELSIUS, U16, HOTSPOT, 0).to_vec();
    let not_there = [&encoding(CELSIUS, U16, HOTSPOT, 1)[..], &[0xff, 0xff]].concat();
    for first in [unknown_id, other_unit, no_values, not_there] {
        assert_eq!(read(2, &[&first, &memory]), Ok(vec![("temperature_mem", 0, 61)]));
    }
    assert_eq!(read(0, &[]), Ok(vec![]));
}

#[test]
fn a_type_of_another_width_and_a_unit_where_the_driver_gives_none_are_read() {
    let wide = [&encoding(CELSIUS, U64, HOTSPOT, 1)[..], &[50, 0, 0, 0, 0, 0, 0, 0]].concat();
    let energy = [&encoding(3, U16, ENERGY, 2)[..], &[1, 2, 0xff, 0xff]].concat();
    let expected = vec![("temperature_hotspot", 0, 50), ("energy_accumulator", 0, 0x0201)];
    assert_eq!(read(2, &[&wide, &energy]), Ok(expected));
}

#[test]
fn a_signed_attribute_is_read_and_below_zero_is_never_a_large_number() {
    for (raw, expected) in
        [(25_i16, Some(25)), (i16::MAX, Some(0x7fff)), (-5, None), (i16::MIN, None), (-1, None)]
    {
        let attribute = [&encoding(CELSIUS, S16, HOTSPOT, 1)[..], &raw.to_le_bytes()].concat();
        let expected: Vec<_> = expected.into_iter().map(|value| ("temperature_hotspot", 0, value)).collect();
        assert_eq!(read(1, &[&attribute]), Ok(expected), "{raw}");
    }
}

#[test]
fn attributes_that_cannot_be_read_are_an_error_that_says_which() {
    let one = [&encoding(CELSIUS, U16, HOTSPOT, 1)[..], &[50, 0]].concat();
    let unknown_type = encoding(CELSIUS, 8, HOTSPOT, 1);
    let many = encoding(CELSIUS, U64, HOTSPOT, 1023);
    for (count, parts, expected) in [
        (-1, &[&one[..]][..], "gpu_metrics 1.9: attr_count is -1"),
        (2, &[&one], "gpu_metrics 1.9: the structure ends within attribute 2 of 2"),
        (i32::MAX, &[&one], "gpu_metrics 1.9: the structure ends within attribute 2 of 2147483647"),
        (1, &[&one[..9]], "gpu_metrics 1.9: the structure ends within attribute 1 of 1"),
        (1, &[&many], "gpu_metrics 1.9: the structure ends within attribute 1 of 1"),
        (2, &[&one, &one], "gpu_metrics 1.9: temperature_hotspot is there twice"),
        (
            2,
            &[&unknown_type, &one],
            "gpu_metrics 1.9: attribute 1 of 2 has an unknown type, so nobody knows where it ends",
        ),
    ] {
        assert_eq!(read(count, parts).unwrap_err(), expected);
    }
    let without_count = [6, 0, 1, 9, 0, 0];
    let reason = GpuMetrics::decode(&without_count).unwrap_err().to_string();
    assert_eq!(reason, "gpu_metrics 1.9: the structure ends before attr_count");
}
