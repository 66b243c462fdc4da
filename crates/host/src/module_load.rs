//! The file that has the driver loaded at boot, where rocworker does not manage that file.

use root::Root;

/// The path that documents of ROCm use. systemd-modules-load(8) reads it at boot.
pub const PATH: &str = "/etc/modules-load.d/amdgpu.conf";

/// How a managed file begins.
const HEADER: &str = "# Written by rocworker";

/// The longest file that is read, in bytes: more than any list of modules has.
const LIMIT: usize = 64 << 10;

/// An unmanaged file at [`PATH`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModuleLoad {
    /// No such file is there, or rocworker manages it.
    #[default]
    Free,
    /// The file has amdgpu loaded.
    Loads,
    /// The file says something else, or cannot be read.
    SaysElse,
    /// Kubernetes' Kernel Module Management loads amdgpu: see `packages::driver::kmm`.
    Operators,
}

impl ModuleLoad {
    /// Finds out which file is at [`PATH`] beneath `root`.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        if root.lstat(PATH).is_err_and(|error| error.is_not_found()) {
            return Self::Free;
        }
        match root.read_text(PATH, LIMIT) {
            Ok(text) if text.starts_with(HEADER) => Self::Free,
            Ok(text) if loads(&text) => Self::Loads,
            Ok(_) | Err(_) => Self::SaysElse,
        }
    }
}

/// The text of a managed file, which its first line marks: an operator's template may have no such line.
#[must_use]
pub fn headed(text: &str) -> String {
    if text.starts_with(HEADER) { text.to_owned() } else { format!("{HEADER}.\n{text}") }
}

/// A name a line; `#` and `;` begin comments (modules-load.d(5)).
fn loads(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "amdgpu")
}
