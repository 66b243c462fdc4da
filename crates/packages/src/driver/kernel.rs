//! The running kernel, and what there is to build a module for it.

use std::path::Path;

use root::{Error, Root, if_there};

use super::dkms::list;

const MODULES: &str = "/lib/modules";

/// The kernel that runs, and that a driver has to be built for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// Whether the kernel's headers are there, by the folder that dkms looks for (`_check_kernel_dir` in its
    /// common.postinst).
    pub has_headers: bool,
    /// The package of the compiler that built the kernel, `gcc-12`: a module should be built with it too. `None`: the
    /// compiler's name is not one of Debian's or Ubuntu's.
    pub compiler: Option<String>,
    /// The other kernels that are installed, by release: the machine may be started into each.
    pub others: Vec<String>,
}

impl Kernel {
    /// # Errors
    /// When the files that say which kernel runs, and whether its headers are there, cannot be read.
    pub fn read(root: &Root) -> Result<Self, Error> {
        let release = root.read_text("/proc/sys/kernel/osrelease", 256)?.trim().to_owned();
        let headers = if_there(root.stat(format!("/lib/modules/{release}/build/include")))?;
        // A driver is built also where the kernel's compiler is unknown.
        let version = if_there(root.read_text("/proc/version", 4096))?.unwrap_or_default();
        let others = others(root, &release)?;
        Ok(Self { release, has_headers: headers.is_some(), compiler: compiler(&version), others })
    }

    /// The package with the kernel's headers, on Debian and on Ubuntu.
    #[must_use]
    pub fn headers_package(&self) -> String {
        let [headers, _] = self.packages();
        headers
    }

    /// The packages of its headers and, on Ubuntu, of most drivers; some of Ubuntu's kernels have none of the second.
    #[must_use]
    pub fn packages(&self) -> [String; 2] {
        packages_of(&self.release)
    }

    /// The packages of the other kernels that a driver needs there.
    #[must_use]
    pub fn packages_of_others(&self) -> Vec<String> {
        self.others.iter().flat_map(|release| packages_of(release)).collect()
    }
}

fn packages_of(release: &str) -> [String; 2] {
    [format!("linux-headers-{release}"), format!("linux-modules-extra-{release}")]
}

/// `modules.builtin` comes with a kernel's own package (linux-image on Debian, linux-modules on Ubuntu). The folder alone
/// says nothing: its headers and what dkms has built are in it too.
fn others(root: &Root, running: &str) -> Result<Vec<String>, Error> {
    let names = list(root, Path::new(MODULES))?.into_iter();
    let names = names.filter_map(|name| name.into_string().ok()).filter(|name| name != running);
    Ok(names.filter(|name| root.exists(format!("{MODULES}/{name}/modules.builtin"))).collect())
}

/// `Linux version 6.8.0-45-generic (buildd@…) (x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0-…) 13.2.0, GNU ld …`: the program
/// is named behind a bracket, with the machine's architecture in front of it on Ubuntu.
fn compiler(version: &str) -> Option<String> {
    let at = version.match_indices("gcc-").find(|(at, _)| {
        let before = &version[..*at];
        before.ends_with('(') || before.ends_with("-linux-gnu-")
    })?;
    let digits = &version[at.0 + "gcc-".len()..];
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    (end > 0).then(|| format!("gcc-{}", &digits[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_named_in_the_kernels_version() {
        for (version, expected) in [
            // Debian 12's and Ubuntu 24.04's own.
            (
                "Linux version 6.1.0-50-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, \
                 GNU ld (GNU Binutils for Debian) 2.40) #1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1",
                Some("gcc-12"),
            ),
            (
                "Linux version 6.8.0-45-generic (buildd@lcy02-amd64-115) (x86_64-linux-gnu-gcc-13 (Ubuntu \
                 13.2.0-23ubuntu4) 13.2.0, GNU ld (GNU Binutils for Ubuntu) 2.42) #45-Ubuntu SMP",
                Some("gcc-13"),
            ),
            ("Linux version 6.12.0 (me@gcc-14-builder) (gcc (GCC) 14.2.0, GNU ld 2.43) #1 SMP", None),
            ("", None),
        ] {
            assert_eq!(compiler(version).as_deref(), expected, "{version}");
        }
    }
}
