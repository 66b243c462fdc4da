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
pub type ByPath<K, V> = HashMap<K, V, BuildHasherDefault<Fnv1a>>;

/// FNV-1a of 64 bits (the draft draft-eastlake-fnv).
#[derive(Debug)]
pub struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv1a {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the draft's appendix.
    #[test]
    fn hashes_as_the_draft_says() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut hasher = Fnv1a::default();
            hasher.write(text.as_bytes());
            assert_eq!(hasher.finish(), hash, "{text}");
        }
    }
}
