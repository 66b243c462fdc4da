//! Attributes of sysfs and procfs as text, numbers and lists of names.

use std::ffi::OsString;
use std::path::Path;
use std::str::FromStr;

use inventory::{Reading, Unknown};
use root::Root;

/// Why a read or list that failed gave no value.
pub(crate) fn failed(error: &root::Error) -> Unknown {
    if error.is_not_found() || error.is_unsupported() {
        Unknown::absent(error.to_string())
    } else if error.is_not_permitted() {
        Unknown::hidden(error.to_string())
    } else {
        Unknown::because(error.to_string())
    }
}

/// A limit above the size of every attribute that is read here (one page, fs/sysfs/file.c), with room for
/// captures that pad.
const LIMIT: usize = 64 << 10;

/// The text of an attribute without the white space and the NULs that captures pad with; never empty.
pub(crate) fn text(root: &Root, path: &Path) -> Reading<String> {
    let bytes = root.read(path, LIMIT).map_err(|error| unreadable(root, path, &error))?;
    text_of(bytes, &root.shown(path))
}

/// The text in an attribute's bytes; `shown` is its path for a person.
pub(crate) fn text_of(bytes: Vec<u8>, shown: &Path) -> Reading<String> {
    let not_text = || Unknown::because(format!("{} is not text", shown.display()));
    let text = String::from_utf8(bytes).map_err(|_| not_text())?;
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    if text.is_empty() {
        return Err(Unknown::because(format!("{} is empty", shown.display())));
    }
    if text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Err(not_text());
    }
    Ok(text.to_owned())
}

/// A decimal attribute.
pub(crate) fn number<T: FromStr>(root: &Root, path: &Path) -> Reading<T> {
    parsed(root, path, "number", |text| text.parse().ok())
}

/// A hexadecimal attribute, with or without `0x`.
pub(crate) fn hexadecimal(root: &Root, path: &Path) -> Reading<u64> {
    parsed(root, path, "hexadecimal number", |text| {
        u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    })
}

/// A device number as the kernel prints it in `dev` files: `226:128`.
pub(crate) fn device_number(root: &Root, path: &Path) -> Reading<(u64, u64)> {
    parsed(root, path, "device number", |text| {
        let (major, minor) = text.split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    })
}

/// The names in a folder of sysfs.
pub(crate) fn names(root: &Root, folder: &Path) -> Reading<Vec<OsString>> {
    root.list(folder).map_err(|error| unreadable(root, folder, &error))
}

fn unreadable(root: &Root, path: &Path, error: &root::Error) -> Unknown {
    if error.is_not_found() {
        Unknown::absent(format!("{} is not there", root.shown(path).display()))
    } else {
        failed(error)
    }
}

fn parsed<T>(root: &Root, path: &Path, what: &str, parse: impl Fn(&str) -> Option<T>) -> Reading<T> {
    let text = text(root, path)?;
    parse(&text).ok_or_else(|| not_a(what, &text, &root.shown(path)))
}

/// Why a text is not what belongs there.
pub(crate) fn not_a(what: &str, text: &str, shown: &Path) -> Unknown {
    let found: String = text.chars().take(40).collect();
    Unknown::because(format!("{} holds {found:?}, not a {what}", shown.display()))
}
