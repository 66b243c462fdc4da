//! The machine's name.

use root::Root;

/// What this machine calls itself, with its domain where it has one; `None` where nothing says so that can be a name.
#[must_use]
pub fn hostname(root: &Root) -> Option<String> {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"].iter();
    let texts = files.filter_map(|file| root.read_text(file, 4096).ok());
    texts.map(|text| text.trim().to_owned()).find(|name| is_hostname(name))
}

/// As hostname(7) has it.
fn is_hostname(name: &str) -> bool {
    let fits = (1..=64).contains(&name.len()) && !name.starts_with(['.', '-']);
    fits && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
}
