//! PyPI's and npm's programs and libraries for tests, each in a folder of its own. Needs no root.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::Command;
use crate::repository;

/// Debian's Python, for which python3-apt has modules: another one cannot load them.
const PYTHON: &str = "/usr/bin/python3";
/// The folder of python3-apt's modules. PyPI has no release that goes with today's apt.
const MODULES: &str = "/usr/lib/python3/dist-packages";

/// Whether an environment has Debian's python3-apt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Apt {
    Linked,
    Absent,
}

/// A file of this repository that lists releases.
pub(super) fn list(path: &str) -> Result<String> {
    let path = repository::top().join(path);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// An environment with the releases that a file lists. Its scripts name the place where they were made, so that a program of
/// it is run as `bin/python -m NAME`.
pub(super) fn python(place: &Path, requirements: &str, apt: Apt) -> Result<()> {
    Command::new([PYTHON, "-m", "venv"]).arguments([place]).run()?;
    let python = place.join("bin/python");
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    Command::new([&python]).arguments(install).arguments([repository::top().join(requirements)]).run()?;
    match apt {
        Apt::Linked => link_apt(&python),
        Apt::Absent => Ok(()),
    }
}

/// Leads to python3-apt's modules from where the environment looks for its own.
fn link_apt(python: &Path) -> Result<()> {
    let find = ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"];
    let own = Command::new([python]).arguments(find).read()?;
    let own = Path::new(own.trim());
    for entry in fs::read_dir(MODULES).with_context(|| format!("listing {MODULES}"))? {
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

/// The releases that package-lock.json in this folder names by their digests; none of their scripts runs.
pub(super) fn npm(place: &Path, lists: &str) -> Result<()> {
    fs::create_dir_all(place).with_context(|| format!("making {}", place.display()))?;
    for name in ["package.json", "package-lock.json"] {
        let path = place.join(name);
        fs::write(&path, list(&format!("{lists}/{name}"))?)
            .with_context(|| format!("writing {}", path.display()))?;
    }
    let quiet = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    Command::new(["npm"]).arguments(quiet).arguments(["--prefix"]).arguments([place]).run()
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
