//! SHA-256, by which certificates and code objects are known.

use ring::digest::{SHA256, digest};

pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}
