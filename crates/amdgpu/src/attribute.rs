use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use root::Root;

/// A value, or why there is none.
pub type Reading<T> = Result<T, Unknown>;

/// Why a value is not known, in words for a person: absent, unsupported, unreadable, or not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    reason: String,
    hidden: bool,
    absent: bool,
}

impl Unknown {
    /// For a reason in one sentence, which names the file.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hidden: false, absent: false }
    }

    /// The reason as a part of another sentence.
    pub(crate) fn within(self, sentence: impl FnOnce(&str) -> String) -> Self {
        Self { reason: sentence(&self.reason), ..self }
    }

    /// From a failed read or list.
    pub(crate) fn from_error(error: &root::Error) -> Self {
        let absent = error.is_not_found() || error.is_unsupported();
        Self { reason: error.to_string(), hidden: error.is_not_permitted(), absent }
    }

    /// Whether nothing failed: the file is not there, or its device went.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.absent
    }

    /// Whether what is there gave nothing that can be used: the file may say something, and did before. Of a device that a
    /// cgroup hides the kernel has said all.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        !self.absent && !self.hidden
    }

    /// Whether KFD refused the read: it does for a GPU that the device cgroup hides.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Larger than any attribute that is read here (one page, fs/sysfs/file.c), with room for captures that pad.
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
        let reason = format!("{} is not there", root.shown(path).display());
        Unknown { absent: true, ..Unknown::because(reason) }
    } else {
        Unknown::from_error(error)
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
