//! Recognizes compressed and binary logs by their first bytes, and names the program that makes text of them.

struct Format {
    name: &'static str,
    /// The offset of `magic` in the file.
    at: usize,
    magic: &'static [u8],
    text_by: &'static str,
}

/// The magic numbers are those of file(1). bzip2's stands behind the letters "BZh" and the block's size.
const FORMATS: [Format; 5] = [
    Format { name: "gzip", at: 0, magic: b"\x1f\x8b", text_by: "zcat FILE" },
    Format { name: "xz", at: 0, magic: b"\xfd7zXZ\0", text_by: "xzcat FILE" },
    Format { name: "zstd", at: 0, magic: b"\x28\xb5\x2f\xfd", text_by: "zstdcat FILE" },
    Format { name: "bzip2", at: 4, magic: b"1AY&SY", text_by: "bzcat FILE" },
    // HEADER_SIGNATURE of systemd's journal-def.h.
    Format {
        name: "a file of journald's",
        at: 0,
        magic: b"LPKSHHRH",
        text_by: "journalctl --file=FILE -k --output=short-iso",
    },
];

/// How to make text of a log that begins with `start`; `None`: it may be text.
#[must_use]
pub fn no_text(start: &[u8]) -> Option<String> {
    let is = |format: &&Format| start.get(format.at..).is_some_and(|start| start.starts_with(format.magic));
    let Format { name, text_by, .. } = FORMATS.iter().find(is)?;
    Some(format!("stdin is {name}, not text: run {text_by} | rocworker explain -"))
}
