//! The running kernel, and what there is to build a module for it.

use root::{Error, Root};

/// The kernel that runs, and that a driver has to be built for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// As `uname -r` prints it.
    pub release: String,
    /// Whether its headers are there: what dkms looks for (`_check_kernel_dir` in its common.postinst).
    pub has_headers: bool,
    /// The compiler that it was built with by its name as a package, `gcc-12`: a module should have the same one.
    /// `None`: its name is not one of Debian's or Ubuntu's.
    pub compiler: Option<String>,
}

impl Kernel {
    /// # Errors
    /// When it cannot be told which kernel runs, or whether its headers are there.
    pub fn read(root: &Root) -> Result<Self, Error> {
        let release = root.read_text("/proc/sys/kernel/osrelease", 256)?.trim().to_owned();
        let has_headers = match root.stat(format!("/lib/modules/{release}/build/include")) {
            Ok(_) => true,
            Err(error) if error.is_not_found() => false,
            Err(error) => return Err(error),
        };
        let version = match root.read_text("/proc/version", 4096) {
            Ok(version) => version,
            // That it is not known which compiler it was keeps nobody from building.
            Err(error) if error.is_not_found() => String::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { release, has_headers, compiler: compiler(&version) })
    }

    /// The package that its headers come in, on Debian and on Ubuntu.
    #[must_use]
    pub fn headers_package(&self) -> String {
        format!("linux-headers-{}", self.release)
    }

    /// The package that most drivers come in on Ubuntu; some of its kernels have none.
    #[must_use]
    pub fn modules_extra_package(&self) -> String {
        format!("linux-modules-extra-{}", self.release)
    }
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
