//! The kernel driver beyond what is live: which builds of amdgpu there are and whose they are, what it takes to build
//! AMD's own (amdgpu-dkms), and what would keep it from being built or loaded.
//!
//! [`Driver::read`] reads the machine, and asks dpkg-query about packages. [`preflight`] is pure: from that and the configuration, what to
//! bring or why it cannot end well. [`verify`] reports afterwards whether the loaded module is the one that was built.

mod distribution;
pub mod dkms;
mod hindrance;
mod kernel;
mod kernel_config;
pub mod kmm;
pub mod module;
pub mod offered;
mod pairing;
mod preflight;
mod signing;
mod verify;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use config::Release;
use reconcile::Status;
use reconcile::dpkg::{Database, There};
use root::Root;

pub use distribution::Distribution;
pub use dkms::Dkms;
pub use hindrance::{FOLDERS as MODPROBE_FOLDERS, set as parameter_set};
pub use hindrance::{Hindrance, Hindrances};
pub use kernel::Kernel;
pub use kernel_config::{Built, HSA_AMD, built};
pub use offered::Offered;
pub use pairing::pairing;
pub use preflight::{Bring, Ground, PACKAGE, ingredients, preflight, questions};
pub use signing::{Enrolled, Signing};
pub use verify::{Attempt, Seen, Verdict, asked_for, installed, look, verify};

use preflight::SETUPTOOLS;

/// What ROCm's packages and tarballs leave of their version.
const ROCM: &str = "/opt/rocm/.info/version";

/// Everything about the driver that can be read; of what cannot, the reason why.
#[derive(Debug)]
pub struct Driver {
    pub kernel: Result<Kernel, String>,
    pub distribution: Result<&'static Distribution, String>,
    /// What dpkg has of the packages that matter to the driver, by name.
    pub packages: Result<BTreeMap<String, There>, String>,
    pub dkms: Result<Dkms, String>,
    /// Files of amdgpu's that modprobe would prefer, and that neither dkms nor a package answers for.
    pub strays: Result<Vec<PathBuf>, String>,
    pub signing: Signing,
    pub hindrances: Hindrances,
    /// The ROCm that is installed, where one is and reports it.
    pub rocm: Option<Release>,
}

/// Why rocworker cannot install the driver, or why another driver runs in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// A sentence without its end.
    pub why: String,
    /// What a person should do.
    pub remedy: String,
}

impl Stop {
    fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: remedy.into() }
    }

    /// Stops because a file that decides cannot be read.
    fn unreadable(why: impl Into<String>) -> Self {
        Self::new(why, "mend that, and apply again as root")
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.why, self.remedy)
    }
}

impl Driver {
    /// Reads the machine beneath `root`. Runs dpkg-query alone.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let kernel = Kernel::read(root).map_err(|error| error.to_string());
        let distribution = Distribution::read(root);
        let dkms = Dkms::read(root).map_err(|error| error.to_string());
        Self {
            packages: packages(root, kernel.as_ref().ok()),
            strays: strays(root, kernel.as_ref(), dkms.as_ref()),
            signing: Signing::read(root, distribution.as_ref().is_ok_and(|it| it.is_ubuntu())),
            hindrances: kmm::judged(root, Hindrances::read(root)),
            // `7.2.3` or `7.2.3-81`.
            rocm: root
                .read_text(ROCM, 256)
                .ok()
                .and_then(|text| Release::parse(text.trim().split('-').next()?)),
            kernel,
            distribution,
            dkms,
        }
    }

    /// A package that is there, whole or not; `None` also where dpkg does not say.
    #[must_use]
    pub fn package(&self, name: &str) -> Option<&There> {
        self.packages.as_ref().ok()?.get(name)
    }

    /// The release of the package amdgpu-dkms that is there, whole or not; `None` where there is none, or it is not
    /// known which.
    #[must_use]
    pub fn release(&self) -> Option<Release> {
        Release::of_package(&self.package(PACKAGE)?.version)
    }

    /// Whether the package that is there is of this release.
    #[must_use]
    pub fn has(&self, wanted: &Release) -> bool {
        self.release().as_ref() == Some(wanted)
    }
}

fn packages(root: &Root, kernel: Option<&Kernel>) -> Result<BTreeMap<String, There>, String> {
    let database = Database::read(root).map_err(|error| error.to_string())?;
    let mut names = vec![PACKAGE.to_owned(), SETUPTOOLS.to_owned()];
    if let Some(kernel) = kernel {
        names.extend(kernel.packages());
        names.extend(kernel.compiler.clone());
        names.extend(kernel.packages_of_others());
    }
    // Configuration that a removed package has left drives nothing.
    let there = |name: &String| database.there(name).filter(|it| it.status != Status::ConfigFiles);
    Ok(names.into_iter().filter_map(|name| there(&name).cloned().map(|it| (name, it))).collect())
}

fn strays(
    root: &Root,
    kernel: Result<&Kernel, &String>,
    dkms: Result<&Dkms, &String>,
) -> Result<Vec<PathBuf>, String> {
    let (kernel, dkms) = (kernel.map_err(Clone::clone)?, dkms.map_err(Clone::clone)?);
    let is_installed = matches!(dkms.state(&kernel.release), dkms::State::Installed(..));
    dkms::strays(root, &kernel.release, is_installed).map_err(|error| error.to_string())
}
