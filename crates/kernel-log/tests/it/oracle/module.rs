//! The format strings of a module: what stands between two NUL bytes.

/// The byte with which printk's level begins (KERN_SOH in include/linux/kern_levels.h); the level is the byte
/// behind it.
const LEVEL_BEGINS: u8 = 1;

/// Each string as it is printed: without printk's level, and with `%` for `%%`.
pub(super) fn strings(module: &[u8]) -> Vec<Vec<u8>> {
    module.split(|byte| *byte == 0).filter(|string| !string.is_empty()).map(printed).collect()
}

fn printed(string: &[u8]) -> Vec<u8> {
    let mut printed = Vec::with_capacity(string.len());
    let mut bytes = string.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (LEVEL_BEGINS, Some(b'0'..=b'7' | b'c')) => {
                bytes.next();
            }
            (b'%', Some(b'%')) => {
                bytes.next();
                printed.push(b'%');
            }
            _ => printed.push(byte),
        }
    }
    printed
}

#[test]
fn strings_end_at_a_nul_and_have_neither_a_level_nor_two_percent_signs() {
    let module = b"\x7fELF\0\0\x013[drm] *ERROR* ring %s\n\0%u exceeds 90%% of %d\0\x01c...\0\x019\0last";
    let expected = ["\x7fELF", "[drm] *ERROR* ring %s\n", "%u exceeds 90% of %d", "...", "\x019", "last"]
        .map(str::as_bytes);
    assert_eq!(strings(module), expected);
}
