//! Maps by path.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map by path, for the few hundred paths of a spec or bundle.
///
/// The paths of render nodes differ only in their last digits, which makes a map that compares them slow
/// (musl compares byte by byte), and std's own hasher asks the kernel for random keys. Who could make
/// these hashes collide is root, or the engine that writes the bundle, to its own container's loss.
pub type ByPath<K, V> = HashMap<K, V, BuildHasherDefault<PathHasher>>;

/// Eight bytes at a time are folded in by rotating, exclusive or and multiplying, as rustc's own maps do it
/// (rustc-hash 1).
#[derive(Debug, Default)]
pub struct PathHasher(u64);

impl PathHasher {
    fn fold(&mut self, word: u64) {
        const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for PathHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.fold(u64::from_le_bytes(*word)));
        match bytes.last_chunk::<8>() {
            _ if rest.is_empty() => {}
            // Some of these bytes were in the word before, which does no harm. The last ones, in which paths differ,
            // are to be the lowest: a product spreads what it has upwards.
            Some(last) => self.fold(u64::from_be_bytes(*last)),
            None => self.fold(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
        }
    }

    /// What a string ends with.
    fn write_u8(&mut self, byte: u8) {
        self.fold(byte.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.fold(number.into());
    }

    fn finish(&self) -> u64 {
        // A map takes its places from the lowest bits and its marks from the highest: all of them should matter.
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher as _, BuildHasherDefault};

    use super::PathHasher;

    #[test]
    fn the_nodes_of_a_large_machine_are_spread_over_a_map() {
        let hasher = BuildHasherDefault::<PathHasher>::default();
        let nodes =
            (0..128).flat_map(|n| [format!("/dev/dri/card{n}"), format!("/dev/dri/renderD{}", 128 + n)]);
        let hashes: BTreeSet<u64> = nodes.map(|path| hasher.hash_one(&*path)).collect();
        assert_eq!(hashes.len(), 256);
        // Thrown by chance into 512 places, 256 would take about 201.
        let places: BTreeSet<u64> = hashes.iter().map(|hash| hash % 512).collect();
        assert!(places.len() > 180, "{}", places.len());
        let marks: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert!(marks.len() > 90, "{}", marks.len());
    }
}
