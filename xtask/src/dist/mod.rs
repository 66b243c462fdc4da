//! `cargo xtask dist`: what is handed out. A Debian package, a tarball, a bill of materials, their checksums, and the
//! charm's folder.
//!
//! Equal programs and an equal moment (`SOURCE_DATE_EPOCH`, else the last commit's) give equal bytes.

mod charm;
mod copyright;
mod crates;
mod deb;
mod files;
mod parts;
mod sbom;
mod sums;
mod tarball;
mod units;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::command::Command;
use crate::programs::Programs;
use crate::refusal::no_argument;
use crate::repository;
pub(crate) use deb::Compression;
use parts::Parts;

/// The variable by which the tests learn where the files are.
pub(crate) const VARIABLE: &str = "ROCWORKER_DIST";

/// The version of the workspace, which all of its packages have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_argument("dist", arguments)?;
    let files = make(&Programs::built()?, &repository::target().join("dist"), Compression::Small)?;
    for file in &files {
        println!("{}", file.display());
    }
    let package = files.iter().find(|file| file.extension().is_some_and(|ending| ending == "deb"));
    print!("{}", next_steps(package.context("no Debian package was made")?));
    Ok(())
}

/// The commands that install the package, here and on another machine.
fn next_steps(package: &Path) -> String {
    let name = package.file_name().unwrap_or_default().display();
    let package = package.display();
    format!(
        "
Install the package on this machine, as root:
    apt-get install {package}
On another machine that runs Debian or Ubuntu:
    scp {package} MACHINE:/tmp/
    ssh -t MACHINE sudo apt-get install /tmp/{name}
Installing it changes no configuration: `rocworker plan` shows what `rocworker apply` would change.
docs/install.md says what the other files are for.
"
    )
}

/// Makes the files for the tests from programs without optimization, which take a fraction of the time to
/// build. Returns the folder.
pub(crate) fn for_tests(programs: &Programs) -> Result<PathBuf> {
    let folder = repository::target().join("dist-for-tests");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let stripped = Programs::in_folder(&folder);
    for (program, stripped) in [
        (&programs.rocworker, &stripped.rocworker),
        (&programs.exporter, &stripped.exporter),
        (&programs.wrapper, &stripped.wrapper),
    ] {
        Command::new(["strip", "--strip-all", "-o"]).arguments([stripped, program]).run()?;
    }
    make(&stripped, &folder, Compression::Fast)?;
    Ok(folder)
}

/// Makes all files in a folder, and names them. They replace files of an earlier run.
///
/// # Errors
/// The failed file or command.
pub(crate) fn make(programs: &Programs, out: &Path, compression: Compression) -> Result<Vec<PathBuf>> {
    let out = &std::path::absolute(out).with_context(|| format!("finding {}", out.display()))?;
    fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    let moment = moment()?;
    let work = tempfile::tempdir().context("making a temporary folder")?;
    let crates = crates::linked()?;
    let parts = Parts::collect(programs, &crates, work.path())?;
    let package = deb::build(&parts, moment, compression, work.path(), out)?;
    let charm = charm::write(&package, out)?;
    let made = [
        package,
        tarball::write(&parts, moment, compression, out)?,
        static_program(&programs.rocworker, out)?,
        sbom::write(&crates, moment, out)?,
    ];
    let sums = sums::write(&made, out)?;
    Ok(made.into_iter().chain([sums, charm]).collect())
}

/// rocworker as a file of its own: `task-check` runs by it in a task's image, whatever that has.
fn static_program(program: &Path, out: &Path) -> Result<PathBuf> {
    let path = out.join(format!("rocworker-{VERSION}-{}-linux-static", std::env::consts::ARCH));
    fs::write(&path, files::read(program)?)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Seconds since 1970 that every file has (reproducible-builds.org/specs/source-date-epoch).
fn moment() -> Result<u64> {
    let (text, of) = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => (text, "SOURCE_DATE_EPOCH"),
        Err(_) => {
            let log = Command::new(["git", "log", "-1", "--format=%ct"]);
            let text = log.read().context("set SOURCE_DATE_EPOCH where there is no git repository")?;
            (text, "git's last commit")
        }
    };
    let text = text.trim();
    let moment: u64 =
        text.parse().with_context(|| format!("{of} says {text:?}, which is no number of seconds"))?;
    ensure!(moment > 0, "{of} says 0, which tar takes for no time at all");
    Ok(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_the_same_programs_give_the_same_bytes() {
        let Some([made]) = support::real::require_made([VARIABLE], &["dpkg-deb"]) else { return };
        let programs = Programs::in_folder(&made);
        // Later than the first, and in another folder.
        let folder = tempfile::tempdir().unwrap();
        let again = make(&programs, folder.path(), Compression::Fast).unwrap();
        assert_eq!(again.len(), 6);
        let (files, folders): (Vec<_>, Vec<_>) = again.iter().partition(|it| it.is_file());
        assert_eq!(folders.len(), 1, "the charm's");
        for file in files {
            let first = made.join(file.file_name().unwrap());
            assert!(fs::read(file).unwrap() == fs::read(&first).unwrap(), "{}", first.display());
        }
    }
}
