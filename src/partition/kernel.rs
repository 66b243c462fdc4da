//! What earlier kernels do otherwise.

use root::Root;

/// Whether the running kernel is this release or a later one, by its first two numbers; `None`: it is not known.
pub(super) fn is_since(root: &Root, release: (u32, u32)) -> Option<bool> {
    let text = root.read_text("/proc/sys/kernel/osrelease", 256).ok()?;
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return None };
    Some((major, minor) >= release)
}

#[cfg(test)]
mod tests {
    use root::Attributes;

    use super::*;

    #[test]
    fn a_kernel_is_compared_by_its_first_two_numbers() {
        for (text, expected) in [
            ("6.12.48+deb13-amd64\n", Some(true)),
            ("6.1.0-37-amd64\n", Some(false)),
            ("7.3\n", Some(true)),
            ("10.0.1\n", Some(true)),
            ("kernel\n", None),
            ("", None),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let root = Root::open(dir.path()).unwrap();
            let attributes = Attributes { mode: 0o644, owner: None };
            root.write("/proc/sys/kernel/osrelease", text.as_bytes(), attributes).unwrap();
            assert_eq!(is_since(&root, (6, 12)), expected, "{text:?}");
        }
    }
}
