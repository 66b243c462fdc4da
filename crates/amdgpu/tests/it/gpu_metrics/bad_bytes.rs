//! Bytes that are no such file, or one that is not known: a reason, never a panic, never what lies beyond the structure.

use amdgpu::{gpu_metrics::File, gpu_metrics::Format, gpu_metrics::VERSIONS};
use proptest::prelude::*;

use super::{all_values, decode, encode, fields};

/// A file with a value in each place.
fn full(file: File, version: (u8, u8)) -> Vec<u8> {
    let places = fields(file, version).into_iter();
    let places = places.flat_map(|(name, count)| (0..count).map(move |place| (name, place, 7)));
    encode(file, version, &places.collect::<Vec<_>>())
}

#[test]
fn a_file_that_is_cut_anywhere_is_an_error_that_says_so() {
    for (file, version, _) in VERSIONS {
        let bytes = full(*file, *version);
        for length in 0..bytes.len() {
            let reason = decode(*file, &bytes[..length]).unwrap_err().to_string();
            let expected = if length < 4 {
                format!("has {length} bytes")
            } else {
                format!("after {length} of {}", bytes.len())
            };
            assert!(reason.contains(&expected), "{file:?} {version:?}: {reason}");
        }
    }
}

#[test]
fn what_follows_the_structure_is_not_read() {
    for (file, version, _) in VERSIONS {
        let mut bytes = full(*file, *version);
        let expected = decode(*file, &bytes).unwrap();
        for filler in [0x00, 0x07, 0xff] {
            bytes.extend([filler; 100]);
            assert_eq!(decode(*file, &bytes).unwrap(), expected, "{file:?} {version:?}");
        }
    }
}

#[test]
fn a_version_that_is_not_known_is_named() {
    for (file, bytes, expected) in [
        (File::Gpu, [0x78, 0, 4, 12], "gpu_metrics has version 4.12, which rocworker does not know"),
        (File::Gpu, [0x78, 0, 0, 0], "gpu_metrics has version 0.0, which rocworker does not know"),
        (File::Partition, [0x78, 0, 1, 3], "xcp_metrics has version 1.3, which rocworker does not know"),
    ] {
        assert_eq!(decode(file, &bytes).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_structure_of_another_size_is_named_with_both_sizes() {
    for (file, version, format) in VERSIONS {
        let Format::Structure(structure) = format else { continue };
        for size in [0, 4, structure.size() - 1, structure.size() + 1, usize::from(u16::MAX)] {
            let mut bytes = vec![0; 1 << 16];
            bytes[..2].copy_from_slice(&u16::try_from(size).unwrap().to_le_bytes());
            bytes[2..4].copy_from_slice(&[version.0, version.1]);
            let reason = decode(*file, &bytes).unwrap_err().to_string();
            let [name, sizes] = [
                format!("{}.{} is a structure of {size} bytes", version.0, version.1),
                format!("the one of {}", structure.size()),
            ];
            assert!(reason.contains(&name) && reason.contains(&sizes), "{reason}");
        }
    }
}

/// A driver outside of Linux writes 1.6 with 312 bytes: that is where `xcp_stats` begins in the header's 1664.
#[test]
fn a_version_1_6_that_ends_before_its_partitions_has_all_of_its_card() {
    let mut bytes =
        layout::gpu_metrics((1, 6), &[("curr_socket_power", 0, 350), ("temperature_hotspot", 0, 61)]);
    assert_eq!(bytes.len(), 1664);
    let whole = decode(File::Gpu, &bytes).unwrap();
    bytes.truncate(312);
    bytes[..2].copy_from_slice(&312_u16.to_le_bytes());
    assert_eq!(decode(File::Gpu, &bytes).unwrap(), whole);
    assert_eq!(whole.value("curr_socket_power"), Some(350));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes with a known version and, mostly, its size; and wholly random ones.
    #[test]
    fn random_bytes_never_panic_and_give_what_the_structure_alone_gives(
        version in 0..VERSIONS.len() + 1,
        size_is_right in prop::bool::weighted(0.8),
        mut bytes in prop::collection::vec(any::<u8>(), 0..5000),
    ) {
        let known = VERSIONS.get(version);
        if let (Some((_, (format, content), layout)), true) = (known, bytes.len() >= 4) {
            bytes[2..4].copy_from_slice(&[*format, *content]);
            if let (Format::Structure(structure), true) = (layout, size_is_right) {
                bytes[..2].copy_from_slice(&u16::try_from(structure.size()).unwrap().to_le_bytes());
            }
        }
        for file in [File::Gpu, File::Partition] {
            let Ok(metrics) = decode(file, &bytes) else { continue };
            let size = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
            prop_assert_eq!(&decode(file, &bytes[..size]).unwrap(), &metrics);
            // No more values than the structure has bytes.
            prop_assert!(all_values(&metrics).len() <= size);
        }
    }

    /// A real file of which some bytes changed.
    #[test]
    fn changed_bytes_never_panic(
        version in 0..VERSIONS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let (file, version, _) = VERSIONS[version];
        let mut bytes = full(file, version);
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        for file in [File::Gpu, File::Partition] {
            let _ = decode(file, &bytes);
        }
    }
}
