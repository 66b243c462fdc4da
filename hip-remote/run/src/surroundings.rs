//! What the program finds around it: variables, by which the loader takes our libraries.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hip_abi::release::Release;

use crate::arguments::{Arguments, Failure};

/// The folder with `bin` and `lib`, as `cargo xtask hip-remote` makes it.
#[derive(Debug)]
pub(crate) struct Surroundings {
    folder: PathBuf,
}

impl Surroundings {
    pub(crate) fn beside(executable: &Path) -> Result<Self, String> {
        let folder = executable.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned();
        // LD_PRELOAD and LD_LIBRARY_PATH have no way to quote them.
        if let Some(byte) = folder.as_os_str().as_encoded_bytes().iter().find(|byte| b" :;$".contains(byte)) {
            return Err(format!(
                "{} has {:?} in its name, where the loader splits or changes a path: move bin and lib to another folder",
                folder.display(),
                char::from(*byte)
            ));
        }
        let names = ["libamdhip64.so".to_owned()].into_iter().chain(Release::ALL.map(Release::soname));
        // Without ours the loader would take another library of this name.
        if let Some(missing) = names.map(|name| folder.join("lib").join(name)).find(|path| !path.exists()) {
            return Err(format!(
                "{} is missing: keep bin and lib as cargo xtask hip-remote makes them",
                missing.display()
            ));
        }
        Ok(Self { folder })
    }

    /// The variables that differ from the inherited ones.
    ///
    /// - LD_LIBRARY_PATH serves most programs.
    /// - LD_PRELOAD serves one that is linked with the library itself: a DT_RPATH counts before LD_LIBRARY_PATH, and nothing
    ///   counts before a library that is loaded under its SONAME.
    /// - ROCM_PATH serves hip-python, which prefers `$ROCM_PATH/lib` and /opt/rocm/lib to the loader's folders.
    pub(crate) fn variables(
        &self,
        arguments: &Arguments,
        release: Option<Release>,
        inherited: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<(&'static str, OsString)>, Failure> {
        let libraries = self.folder.join("lib");
        let mut variables = vec![
            ("ROCWORKER_HIP_REMOTE", arguments.connect.to_string().into()),
            ("LD_LIBRARY_PATH", before(libraries.as_os_str(), inherited("LD_LIBRARY_PATH"))),
            ("ROCM_PATH", self.folder.clone().into()),
        ];
        if let Some(key) = arguments.key_path()? {
            variables.push(("ROCWORKER_HIP_KEY", key.into()));
        }
        if let Some(release) = release {
            let library = libraries.join(release.soname());
            variables.push(("LD_PRELOAD", before(library.as_os_str(), inherited("LD_PRELOAD"))));
        }
        Ok(variables)
    }
}

fn before(first: &OsStr, rest: Option<OsString>) -> OsString {
    let mut all = first.to_owned();
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        all.push(":");
        all.push(rest);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[test]
    fn our_libraries_come_before_those_of_the_user() {
        let ours = Surroundings { folder: "/ours".into() };
        let arguments =
            Arguments::parse_from(["run", "--connect", "gpu,unix:/s", "--key", "/client.key", "--", "vadd"]);
        let inherited = |name: &str| (name == "LD_LIBRARY_PATH").then(|| "/theirs".into());
        let variables = ours.variables(&arguments, Some(Release::Rocm6), inherited).unwrap();
        let wanted = [
            ("ROCWORKER_HIP_REMOTE", "gpu:50051,unix:/s"),
            ("LD_LIBRARY_PATH", "/ours/lib:/theirs"),
            ("ROCM_PATH", "/ours"),
            ("ROCWORKER_HIP_KEY", "/client.key"),
            ("LD_PRELOAD", "/ours/lib/libamdhip64.so.6"),
        ];
        assert_eq!(variables, wanted.map(|(name, value)| (name, OsString::from(value))));
    }

    #[test]
    fn a_folder_that_the_loader_would_split_is_refused() {
        for folder in ["/a b", "/a:b", "/a;b", "/$LIB"] {
            let sentence = Surroundings::beside(&Path::new(folder).join("bin/run")).unwrap_err();
            assert!(sentence.contains(folder) && sentence.contains("the loader splits"), "{sentence}");
        }
    }

    #[test]
    fn a_folder_without_libraries_is_refused_by_the_missing_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        for name in ["libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"] {
            let sentence = Surroundings::beside(&folder.path().join("bin/run")).unwrap_err();
            assert!(sentence.contains(&format!("lib/{name} is missing")), "{sentence}");
            std::fs::write(folder.path().join("lib").join(name), "").unwrap();
        }
        assert!(Surroundings::beside(&folder.path().join("bin/run")).is_ok());
    }
}
