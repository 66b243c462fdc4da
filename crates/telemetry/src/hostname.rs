//! The machine's name.

use root::Root;

/// The machine's hostname, with its domain where it has one; `None` where no file holds a valid one.
#[must_use]
pub fn hostname(root: &Root) -> Option<String> {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"].iter();
    let texts = files.filter_map(|file| root.read_text(file, 4096).ok());
    texts.map(|text| text.trim().to_owned()).find(|name| is_hostname(name))
}

/// Whether `name` is valid by hostname(7).
fn is_hostname(name: &str) -> bool {
    let fits = (1..=64).contains(&name.len()) && !name.starts_with(['.', '-']);
    fits && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
}
