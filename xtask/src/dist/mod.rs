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
mod static_program;
mod sums;
mod tarball;
mod units;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::command::Command;
use crate::programs::Programs;
use crate::refusal::Refusal;
use crate::repository;
pub(crate) use deb::Compression;
use parts::Parts;

/// The variable by which the tests learn where the files are.
pub(crate) const VARIABLE: &str = "ROCWORKER_DIST";

/// The version of the workspace, which all of its packages have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The arguments; programs without a path are built with all optimizations.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    rocworker: Option<PathBuf>,
    wrapper: Option<PathBuf>,
    exporter: Option<PathBuf>,
    out: Option<PathBuf>,
    fast: bool,
}

impl Asked {
    fn parse(arguments: &[String]) -> Option<Self> {
        let mut asked = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--rocworker" => asked.rocworker = Some(words.next()?.into()),
                "--wrapper" => asked.wrapper = Some(words.next()?.into()),
                "--exporter" => asked.exporter = Some(words.next()?.into()),
                "--out" => asked.out = Some(words.next()?.into()),
                "--fast" => asked.fast = true,
                _ => return None,
            }
        }
        Some(asked)
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let usage = "`cargo xtask dist` takes --rocworker FILE, --wrapper FILE, --exporter FILE, --out FOLDER and --fast, each or \
                 none";
    let asked = Asked::parse(arguments).ok_or_else(|| Refusal::new(usage))?;
    let programs = Programs::given_or_built([asked.rocworker, asked.exporter, asked.wrapper])?;
    let out = asked.out.unwrap_or_else(|| repository::target().join("dist"));
    let compression = if asked.fast { Compression::Fast } else { Compression::Small };
    for file in make(&programs, &out, compression)? {
        println!("{}", file.display());
    }
    Ok(())
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
        static_program::write(&programs.rocworker, out)?,
        sbom::write(&crates, moment, out)?,
    ];
    let sums = sums::write(&made, out)?;
    Ok(made.into_iter().chain([sums, charm]).collect())
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

    #[test]
    fn each_argument_stands_for_itself_and_another_is_refused() {
        let parse =
            |words: &[&str]| Asked::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(parse(&[]), Some(Asked::default()));
        let asked = parse(&["--fast", "--out", "/o", "--wrapper", "w", "--exporter", "e"]).unwrap();
        assert!(asked.fast && asked.rocworker.is_none());
        assert_eq!((asked.out, asked.wrapper), (Some("/o".into()), Some("w".into())));
        assert_eq!(asked.exporter, Some("e".into()));
        for words in [&["--out"][..], &["--quick"], &["rocworker"]] {
            assert_eq!(parse(words), None, "{words:?}");
        }
    }
}
