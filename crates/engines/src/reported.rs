//! What a report takes of an engine's configuration, and which words of it the report may quote.

#[derive(Debug)]
pub struct Reported {
    /// A file, or with an extension a folder.
    pub path: &'static str,
    pub extension: Option<&'static str>,
    pub format: Format,
}

impl Reported {
    pub(crate) const fn file(path: &'static str, format: Format) -> Self {
        Self { path, extension: None, format }
    }

    /// The files of a folder that end so.
    pub const fn folder(path: &'static str, extension: &'static str, format: Format) -> Self {
        Self { path, extension: Some(extension), format }
    }
}

/// How a configuration is written, and which keys of it are known.
#[derive(Debug, Clone, Copy)]
pub enum Format {
    Json(Keys<'static>),
    Yaml(Keys<'static>),
    Toml(Keys<'static>),
    /// An environment file.
    Env,
    Unit,
}

/// Keys of one program's files: the table that they are in, and the keys whose values stay where they are plain. Dots
/// part the steps; `*` is any one step. Lists are no steps.
pub type Keys<'a> = &'a [(&'a str, &'a [&'a str])];

/// A program by its name, its options whose values stay where they are plain, and its commands.
pub type Command = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Options of runc's shim, wherever an engine names them.
pub(crate) const RUNTIME_OPTIONS: &[&str] =
    &["BinaryName", "CriuPath", "CriuImagePath", "CriuWorkPath", "Root", "ShimCgroup", "IoUid", "IoGid"];
