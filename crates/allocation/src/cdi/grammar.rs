//! The names of CDI (SPEC.md, "Kind" and "CDI Devices").

/// Why a kind is none, if it is none: `vendor/class`, each beginning with a letter and ending with a
/// letter or digit.
pub(super) fn kind_problem(kind: &str) -> Option<&'static str> {
    match kind.split_once('/') {
        None => Some("it is not of the form vendor/class"),
        Some((vendor, _)) if !is_name(vendor, false, "_-.") => Some(
            "the vendor must begin with a letter, end with a letter or digit, and have only those, _, - and .",
        ),
        Some((_, class)) if !is_name(class, false, "_-.") => Some(
            "the class must begin with a letter, end with a letter or digit, and have only those, _, - and .",
        ),
        Some(_) => None,
    }
}

/// Whether this can be a device's name: letters and digits, between them also `_`, `-`, `.` and `:`.
pub(super) fn is_device_name(name: &str) -> bool {
    is_name(name, true, "_-.:")
}

fn is_name(name: &str, may_begin_with_digit: bool, between: &str) -> bool {
    let (Some(first), Some(last)) = (name.as_bytes().first(), name.as_bytes().last()) else { return false };
    (first.is_ascii_alphabetic() || may_begin_with_digit && first.is_ascii_digit())
        && last.is_ascii_alphanumeric()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || between.as_bytes().contains(&b))
}

/// Whether this is `KEY=VALUE`.
pub(super) fn is_env(entry: &str) -> bool {
    entry.find('=').is_some_and(|at| at > 0)
}

/// Whether these are permissions of the device cgroup: some of `rwm`, or `none`.
pub(super) fn is_permissions(permissions: &str) -> bool {
    permissions == "none" || permissions.chars().all(|c| "rwm".contains(c))
}
