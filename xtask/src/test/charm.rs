//! charmcraft, for the test that packs the charm: PyPI's, in an environment of its own beside the build.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::python::Environment;
use crate::command::Command;

const ENVIRONMENT: Environment = Environment {
    variable: "ROCWORKER_CHARMCRAFT",
    folder: "charmcraft",
    requirements: "tests/charm/requirements.txt",
};
/// Where python3-apt puts its modules. PyPI has none that goes with an apt of today.
const MODULES: &str = "/usr/lib/python3/dist-packages";

/// The variable that the tests read.
pub(crate) fn variable() -> (&'static str, PathBuf) {
    ENVIRONMENT.variable()
}

/// Makes the environment if these releases are not there yet. Needs no root.
///
/// # Errors
/// Names the command that failed.
pub(crate) fn make() -> Result<()> {
    ENVIRONMENT.make(link_apt)
}

/// Leads to python3-apt's modules from where the environment looks for its own.
fn link_apt(place: &Path) -> Result<()> {
    let find = ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"];
    let own = Command::new([place.join("bin/python")]).arguments(find).read()?;
    let own = Path::new(own.trim());
    let listing = fs::read_dir(MODULES).with_context(|| format!("listing {MODULES}"))?;
    for entry in listing {
        let path = entry.with_context(|| format!("listing {MODULES}"))?.path();
        let Some(name) = path.file_name().filter(|name| is_apts(&name.to_string_lossy())) else { continue };
        let link = own.join(name);
        symlink(&path, &link).with_context(|| format!("linking {}", link.display()))?;
    }
    Ok(())
}

fn is_apts(name: &str) -> bool {
    let is_extension = |module: &str| name.starts_with(&format!("{module}.")) && name.ends_with(".so");
    ["apt", "aptsources"].contains(&name) || ["apt_pkg", "apt_inst"].into_iter().any(is_extension)
}

#[cfg(test)]
mod tests {
    use super::is_apts;

    #[test]
    fn the_modules_are_those_that_python_loads() {
        for (name, is_so) in [
            ("apt", true),
            ("aptsources", true),
            ("apt_pkg.cpython-311-x86_64-linux-gnu.so", true),
            ("apt_pkg-stubs", false),
            ("apt_inst.cpython-312-x86_64-linux-gnu.so", true),
            ("python_apt-2.6.0.egg-info", false),
            ("aptdaemon", false),
        ] {
            assert_eq!(is_apts(name), is_so, "{name}");
        }
    }
}
