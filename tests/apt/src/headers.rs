//! Debian's real dkms and the headers of one of its kernels, to be installed by a machine's own dpkg or apt.

use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::{Machine, SHARED};
use crate::repository::Repository;

/// The packages, all for one kernel: the one that tests/qemu boots of Debian 12.
#[derive(Clone, Debug)]
pub struct Headers {
    files: Vec<PathBuf>,
}

impl Headers {
    /// The packages that `cargo xtask test` left in a folder.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        Self { files }
    }

    /// The output of `uname -r` in the kernel that the headers are for.
    ///
    /// # Panics
    /// Where there is not one package of headers for amd64 machines.
    pub fn release(&self) -> &str {
        let names = self.files.iter().map(|file| file.file_name().unwrap().to_str().unwrap());
        let releases = names.filter_map(|name| name.strip_prefix("linux-headers-")?.split_once('_'));
        let mut releases = releases.map(|(release, _)| release).filter(|release| release.ends_with("-amd64"));
        releases.next().unwrap()
    }

    /// The package whose installation brings all of the headers along.
    pub fn package(&self) -> String {
        format!("linux-headers-{}", self.release())
    }

    /// Adds them to a repository, for apt to find.
    ///
    /// # Panics
    /// Where one is no package.
    pub fn offer_in(&self, repository: &mut Repository) {
        self.files.iter().for_each(|file| repository.add_file(file));
    }

    /// Installs all of them with dpkg.
    ///
    /// # Panics
    /// Where dpkg refuses.
    pub fn install(&self, machine: &Machine) {
        let mut argv = vec!["dpkg".to_owned(), "--install".to_owned()];
        for file in &self.files {
            let name = file.file_name().unwrap().to_str().unwrap();
            fs::copy(file, machine.shared().join(name)).unwrap();
            argv.push(format!("{SHARED}/{name}"));
        }
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        machine.call(&argv).well();
    }
}
