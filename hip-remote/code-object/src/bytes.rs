//! Numbers at an offset, little endian.

fn at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    at(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    at(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    at(bytes, offset).map(u64::from_le_bytes)
}

/// The part of the bytes that a file's own header names.
pub(crate) fn part(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let begin = usize::try_from(offset).ok()?;
    bytes.get(begin..begin.checked_add(usize::try_from(size).ok()?)?)
}
