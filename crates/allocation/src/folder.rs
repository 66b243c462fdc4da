//! Folders of the host that every container gets, whether it has GPUs or not.

/// A folder, which a container gets at its own path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Absolute.
    pub path: String,
    pub writable: bool,
    /// Which of `nosuid`, `nodev` and `noexec` the folder's file system is mounted with: in a user namespace
    /// a mount that is made read-only must keep all of them.
    pub kept: Vec<&'static str>,
}

impl Folder {
    /// The folder of this name directly beneath a parent folder. `None`: the folder is hidden.
    ///
    /// The name decides whether the folder is writable, as it did for the Concourse charm's wrapper beneath
    /// `/srv`.
    #[must_use]
    pub fn beneath(parent: &str, name: &str) -> Option<Self> {
        let writable = ["_writable", "_rw"].iter().any(|mark| name.contains(mark));
        (!name.starts_with('.')).then(|| Self {
            path: [parent, "/", name].concat(),
            writable,
            kept: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Folder;

    #[test]
    fn a_folders_name_says_whether_it_may_be_written_to() {
        for (name, expected) in [
            ("models", Some(false)),
            ("cache_rw", Some(true)),
            ("a_rwx", Some(true)),
            ("cache_writable.old", Some(true)),
            ("writable", Some(false)),
            ("rw", Some(false)),
            ("cache_RW", Some(false)),
            ("größe _rw\"", Some(true)),
            (".hidden_rw", None),
            (".", None),
            ("..", None),
        ] {
            let expected =
                expected.map(|writable| Folder { path: format!("/srv/{name}"), writable, kept: vec![] });
            assert_eq!(Folder::beneath("/srv", name), expected, "{name}");
        }
    }
}
