//! rocworker's package on this machine, as it is copied to another.

use std::path::{Path, PathBuf};

use root::Root;

/// The limit for a package's bytes: far more than rocworker's has.
const LIMIT: usize = 512 << 20;

/// How a Debian package begins (deb(5), ar(5)).
const MAGIC: &[u8] = b"!<arch>\ndebian-binary";

/// A Debian package, with all its bytes.
#[derive(Debug)]
pub struct Package {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// Why no package was found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unreadable(#[from] root::Error),
    /// A user other than root and the caller may have written the file: its folder may be /tmp.
    #[error("{0}; or name the file with --package, which needs no trust in its folder")]
    Untrusted(root::Error),
    #[error("{} is not a Debian package: name one with --package", .0.display())]
    NotOne(PathBuf),
    #[error(
        "no package of rocworker {version} found: name the file with --package, or build it with `cargo xtask \
         dist`; looked for rocworker_{version}-*_amd64.deb in {}",
        folders.join(", ")
    )]
    None { version: &'static str, folders: Vec<String> },
}

impl Package {
    /// The file that is named, or else the first of this program's version in `folder`, its target/dist, and apt's
    /// archives. A file in these folders counts only if no user but root and the caller can have put it there.
    /// `machine`: this machine's Root.
    ///
    /// # Errors
    /// [`Error`] names each.
    pub fn find(machine: &Root, named: Option<&Path>, folder: &Path) -> Result<Self, Error> {
        if let Some(path) = named {
            return Self::of(path, machine.read(path, LIMIT)?);
        }
        let version = env!("CARGO_PKG_VERSION");
        let folders = [folder.to_owned(), folder.join("target/dist"), "/var/cache/apt/archives".into()];
        for folder in &folders {
            let names = root::if_there(machine.list(folder))?.into_iter().flatten();
            let mut candidates = names.filter(|name| name.to_str().is_some_and(|name| is_of(name, version)));
            if let Some(name) = candidates.next() {
                let path = folder.join(name);
                let believed = machine.check_folder_owner(folder);
                let bytes = believed.and_then(|()| machine.read_trusted(&path, LIMIT));
                return Self::of(&path, bytes.map_err(Error::Untrusted)?);
            }
        }
        let folders = folders.iter().map(|folder| folder.display().to_string()).collect();
        Err(Error::None { version, folders })
    }

    fn of(path: &Path, bytes: Vec<u8>) -> Result<Self, Error> {
        let is_one = bytes.starts_with(MAGIC);
        if is_one { Ok(Self { path: path.to_owned(), bytes }) } else { Err(Error::NotOne(path.to_owned())) }
    }
}

/// Whether a file has the name that dpkg gives to a package of this version.
fn is_of(name: &str, version: &str) -> bool {
    let rest = name.strip_prefix("rocworker_").and_then(|rest| rest.strip_suffix("_amd64.deb"));
    rest.and_then(|rest| rest.strip_prefix(version))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_a_package_of_this_version_is_found_and_the_nearest_one() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Root::open(Path::new("/")).unwrap();
        let none = Package::find(&machine, None, folder.path()).unwrap_err().to_string();
        assert!(none.contains("--package") && none.contains("cargo xtask dist"), "{none}");
        let name = format!("rocworker_{}-1_amd64.deb", env!("CARGO_PKG_VERSION"));
        let put = |path: &str, bytes: &[u8]| {
            let path = folder.path().join(path);
            machine.write(&path, bytes, root::Attributes { mode: 0o644, owner: None }).unwrap();
        };
        put("rocworker_0.0.1-1_amd64.deb", MAGIC);
        put(&format!("target/dist/{name}"), MAGIC);
        let found = Package::find(&machine, None, folder.path()).unwrap();
        assert_eq!(found.path, folder.path().join("target/dist").join(&name));
        put(&name, MAGIC);
        assert_eq!(Package::find(&machine, None, folder.path()).unwrap().path, folder.path().join(&name));
        // Where others can write, one of them may have put it there.
        for path in [folder.path().to_owned(), folder.path().join(&name)] {
            let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let mode = machine.stat(&path).unwrap().mode;
            set(0o777);
            let error = Package::find(&machine, None, folder.path()).unwrap_err().to_string();
            assert!(error.contains("can be written by others") && error.contains("--package"), "{error}");
            assert!(Package::find(&machine, Some(&folder.path().join(&name)), folder.path()).is_ok());
            set(mode);
        }
        put("some.txt", b"text");
        let named = folder.path().join("some.txt");
        let error = Package::find(&machine, Some(&named), folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("some.txt is not a Debian package: name one with --package"), "{error}");
    }

    #[test]
    fn a_name_says_the_version() {
        for (name, is) in [
            ("rocworker_0.1.0-1_amd64.deb", true),
            ("rocworker_0.1.0_amd64.deb", true),
            ("rocworker_0.1.01-1_amd64.deb", false),
            ("rocworker_0.1.0-1_arm64.deb", false),
            ("rocworker-tools_0.1.0-1_amd64.deb", false),
        ] {
            assert_eq!(is_of(name, "0.1.0"), is, "{name}");
        }
    }
}
