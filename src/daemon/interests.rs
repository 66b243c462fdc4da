//! Which names in which folders matter. A file that is replaced is another file: so its folder is watched, and events of
//! other names in it do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The name that means every name in a folder.
const ALL: &str = "*";

/// By folder, beneath a Root: the names that matter there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interests(BTreeMap<PathBuf, BTreeSet<OsString>>);

impl Interests {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, path: &Path) {
        if let (Some(folder), Some(name)) = (path.parent().filter(|it| it.is_absolute()), path.file_name()) {
            self.0.entry(folder.to_owned()).or_default().insert(name.to_owned());
        }
    }

    /// Everything in this folder, and the folder itself.
    pub fn add_folder(&mut self, folder: &Path) {
        self.add(folder);
        self.add(&folder.join(ALL));
    }

    /// The folders that can be watched for them: in the place of one that is not there, the nearest above it, in which
    /// the next on the way down matters.
    pub fn watchable(&self, is_folder: impl Fn(&Path) -> bool) -> BTreeMap<PathBuf, BTreeSet<OsString>> {
        let mut found = BTreeMap::<PathBuf, BTreeSet<OsString>>::new();
        for (folder, names) in &self.0 {
            let mut below: Option<&OsStr> = None;
            for at in folder.ancestors() {
                if is_folder(at) {
                    let names = below.map_or_else(|| names.clone(), |it| [it.to_owned()].into());
                    found.entry(at.to_owned()).or_default().extend(names);
                    break;
                }
                below = at.file_name();
            }
        }
        found
    }
}

/// Whether an event in a folder matters: of a name in it, or without one of the folder itself.
pub fn matters(names: &BTreeSet<OsString>, name: Option<&OsStr>) -> bool {
    name.is_none_or(|name| names.contains(name) || names.contains(OsStr::new(ALL)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn these(names: &[&str]) -> BTreeSet<OsString> {
        names.iter().map(OsString::from).collect()
    }

    fn watchable(files: &[&str], folders: &[&str], there: &[&str]) -> Vec<(String, BTreeSet<OsString>)> {
        let mut interests = Interests::default();
        files.iter().for_each(|path| interests.add(Path::new(path)));
        folders.iter().for_each(|path| interests.add_folder(Path::new(path)));
        let found = interests.watchable(|folder| there.iter().any(|it| Path::new(it) == folder));
        found.into_iter().map(|(folder, names)| (folder.display().to_string(), names)).collect()
    }

    #[test]
    fn files_are_names_in_their_folders() {
        assert_eq!(
            watchable(&["/etc/group", "/etc/cdi/amd.json", "/etc/passwd"], &[], &["/", "/etc", "/etc/cdi"]),
            [("/etc".to_owned(), these(&["group", "passwd"])), ("/etc/cdi".to_owned(), these(&["amd.json"]))]
        );
    }

    #[test]
    fn of_a_folder_everything_matters_and_whether_it_is_there() {
        assert_eq!(
            watchable(&["/dev/kfd", "/dev/dri/card0"], &["/dev/dri"], &["/", "/dev", "/dev/dri"]),
            [("/dev".to_owned(), these(&["dri", "kfd"])), ("/dev/dri".to_owned(), these(&["*", "card0"]))]
        );
    }

    #[test]
    fn for_what_is_not_there_the_nearest_folder_above_is_watched() {
        assert_eq!(
            watchable(&["/etc/docker/conf/daemon.json", "/etc/group"], &["/opt/a/b"], &["/", "/etc"]),
            [("/".to_owned(), these(&["opt"])), ("/etc".to_owned(), these(&["docker", "group"]))]
        );
    }

    #[test]
    fn paths_that_are_none_are_passed_over() {
        assert_eq!(watchable(&["package:rocm", "/", "relative/file"], &["relative"], &["/"]), []);
    }

    #[test]
    fn what_happens_to_other_names_is_nothing() {
        for (names, name, expected) in [
            (these(&["a"]), Some("a"), true),
            (these(&["a"]), Some("b"), false),
            (these(&["a"]), None, true),
            (these(&[ALL]), Some("b"), true),
        ] {
            assert_eq!(super::matters(&names, name.map(OsStr::new)), expected, "{names:?} {name:?}");
        }
    }
}
