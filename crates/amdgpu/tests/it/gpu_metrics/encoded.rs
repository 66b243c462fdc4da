//! What an encoder writes, the decoder reads: each field by its name, alone and beside all others.

use amdgpu::{gpu_metrics::File, gpu_metrics::VERSIONS};

use super::{all_values, decode, encode, fields};

#[test]
fn each_place_of_each_field_has_its_own_value() {
    for (file, version, _) in VERSIONS {
        let places = fields(*file, *version).into_iter();
        let places = places.flat_map(|(name, count)| (0..count).map(move |place| (name, place)));
        // Small enough for a byte, and no two neighbours alike.
        let values: Vec<_> = places.zip(0..).map(|((name, place), nth)| (name, place, nth % 251)).collect();
        let metrics = decode(*file, &encode(*file, *version, &values)).unwrap();
        assert_eq!(metrics.version, *version);
        assert_eq!(all_values(&metrics), values, "{file:?} {version:?}");
        for value in &values {
            let metrics = decode(*file, &encode(*file, *version, &[*value])).unwrap();
            assert_eq!(all_values(&metrics), [*value], "{file:?} {version:?}");
        }
    }
}

#[test]
fn all_ones_of_a_fields_width_is_no_value_and_one_less_is_the_largest() {
    let values = |pairs: &[(&str, u32, u64)]| {
        let metrics = decode(File::Gpu, &encode(File::Gpu, (1, 0), pairs));
        all_values(&metrics.unwrap())
    };
    for (name, all_ones) in [
        ("pcie_link_speed", 0xff),
        ("temperature_edge", 0xffff),
        ("throttle_status", 0xffff_ffff),
        ("system_clock_counter", u64::MAX),
    ] {
        assert_eq!(values(&[(name, 0, all_ones)]), []);
        assert_eq!(values(&[(name, 0, all_ones - 1)]), [(name, 0, all_ones - 1)]);
    }
}
