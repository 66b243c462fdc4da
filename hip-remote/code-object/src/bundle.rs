//! Code objects one after the other, by clang-offload-bundler.

use std::io::Read;

use crate::{Refused, malformed};

pub(crate) const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";

/// More targets, or a longer name, than any compiler writes.
const MAX_ENTRIES: u64 = 1024;
const MAX_ID: u64 = 1024;

pub(crate) struct Entry {
    /// Such as `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`.
    pub(crate) id: String,
    /// From the beginning of the bundle.
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Entry {
    pub(crate) fn end(&self) -> Result<u64, Refused> {
        let end = self.offset.checked_add(self.size);
        end.ok_or_else(|| malformed(format!("the bundle's entry {} ends behind all addresses", self.id)))
    }
}

/// Reads a bundle's table, and says how many bytes that took.
pub(crate) fn entries(bundle: &mut impl Read) -> Result<(Vec<Entry>, u64), Refused> {
    let mut magic = *MAGIC;
    fill(bundle, &mut magic)?;
    if &magic != MAGIC {
        return Err(malformed("the bundle of code objects begins with other bytes than a bundle's"));
    }
    let count = number(bundle)?;
    if count > MAX_ENTRIES {
        return Err(malformed(format!(
            "the bundle announces {count} entries, and {MAX_ENTRIES} are the most"
        )));
    }
    let mut entries = Vec::new();
    let mut read = 32;
    for _ in 0..count {
        let [offset, size, length] = [number(bundle)?, number(bundle)?, number(bundle)?];
        if length > MAX_ID {
            return Err(malformed(format!("a bundle's entry has a name of {length} bytes")));
        }
        let mut id = vec![0; usize::try_from(length).unwrap_or_default()];
        fill(bundle, &mut id)?;
        read += 24 + length;
        entries.push(Entry { id: String::from_utf8_lossy(&id).into_owned(), offset, size });
    }
    Ok((entries, read))
}

fn number(bundle: &mut impl Read) -> Result<u64, Refused> {
    let mut bytes = [0; 8];
    fill(bundle, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn fill(bundle: &mut impl Read, into: &mut [u8]) -> Result<(), Refused> {
    bundle.read_exact(into).map_err(|error| malformed(format!("the bundle's table ends too early: {error}")))
}
