//! Which names in which folders matter. A file that is replaced is another file: so its folder is watched, and what
//! happens to other names in it is nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    All,
    These(BTreeSet<OsString>),
}

impl Names {
    /// Whether something that happened matters: to a name in the folder, or without one to the folder itself.
    pub fn have(&self, name: Option<&OsStr>) -> bool {
        match (self, name) {
            (Self::All, _) | (_, None) => true,
            (Self::These(names), Some(name)) => names.contains(name),
        }
    }

    fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::These(names), Self::These(more)) => names.extend(more),
            (Self::All, _) => {}
            (_, Self::All) => *self = Self::All,
        }
    }
}

/// By folder, beneath a Root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interests(BTreeMap<PathBuf, Names>);

impl Interests {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, path: &Path) {
        if let (Some(folder), Some(name)) = (path.parent().filter(|it| it.is_absolute()), path.file_name()) {
            self.insert(folder, Names::These([name.to_owned()].into()));
        }
    }

    /// Everything in this folder, and the folder itself.
    pub fn add_folder(&mut self, folder: &Path) {
        if folder.is_absolute() {
            self.add(folder);
            self.insert(folder, Names::All);
        }
    }

    fn insert(&mut self, folder: &Path, names: Names) {
        match self.0.get_mut(folder) {
            Some(known) => known.add(names),
            None => drop(self.0.insert(folder.to_owned(), names)),
        }
    }

    /// The folders that can be watched for them: in the place of one that is not there, the nearest above it, in which
    /// the next on the way down matters.
    pub fn watchable(&self, is_folder: impl Fn(&Path) -> bool) -> BTreeMap<PathBuf, Names> {
        let mut found = Self::default();
        for (folder, names) in &self.0 {
            let mut below: Option<&OsStr> = None;
            for at in folder.ancestors() {
                if is_folder(at) {
                    let names = below.map_or_else(|| names.clone(), |it| Names::These([it.into()].into()));
                    found.insert(at, names);
                    break;
                }
                below = at.file_name();
            }
        }
        found.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn these(names: &[&str]) -> Names {
        Names::These(names.iter().map(OsString::from).collect())
    }

    fn watchable(files: &[&str], folders: &[&str], there: &[&str]) -> Vec<(String, Names)> {
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
            [("/dev".to_owned(), these(&["dri", "kfd"])), ("/dev/dri".to_owned(), Names::All)]
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
        for (names, name, matters) in [
            (these(&["a"]), Some("a"), true),
            (these(&["a"]), Some("b"), false),
            (these(&["a"]), None, true),
            (Names::All, Some("b"), true),
        ] {
            assert_eq!(names.have(name.map(OsStr::new)), matters, "{names:?} {name:?}");
        }
    }
}
