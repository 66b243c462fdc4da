//! An operator's machine: Debian's dpkg and a shell beneath an engine, and the source folder in which `cargo xtask dist`
//! has run.

use std::fs;
use std::path::PathBuf;

use real_engines::engine::{Engine, Unpacked};
use real_engines::host::Host;
use support::real;
use support::said::Said;
use support::stage::Stage;

/// The PATH of root's shell.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The first line of a quick start, which `cargo xtask test` has run with programs that are not optimized.
pub(crate) const DIST: &str = "cargo xtask dist";

/// The engine above a minimal Debian 13, and what `cargo xtask dist` makes; none where the calling test is to be skipped.
#[track_caller]
pub(crate) fn with_debian(engine: &Engine) -> Option<(Unpacked, PathBuf)> {
    let [debian, made] = real::require_made(["ROCWORKER_APT_TRIXIE", "ROCWORKER_DIST"], &["dpkg-deb"])?;
    let Unpacked { tree, wrapper } = engine.unpacked()?;
    // An overlay takes several trees: what is in the first hides what is in the next.
    let tree = PathBuf::from(format!("{}:{}", tree.display(), debian.display()));
    Some((Unpacked { tree, wrapper }, made))
}

/// Puts the source folder onto a stage, with what the first line of a quick start has made.
pub(crate) fn put_source(stage: &Stage, made: &PathBuf) {
    let dist = stage.folder().join("source/target/dist");
    fs::create_dir_all(&dist).unwrap();
    for entry in fs::read_dir(made).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            fs::copy(&path, dist.join(path.file_name().unwrap())).unwrap();
        }
    }
    assert_eq!(fs::read_dir(dist).unwrap().count(), 1);
}

/// Runs a line of the README there, as a shell does.
pub(crate) fn line(host: &Host, environment: &[(&str, &str)], line: &str) -> Said {
    let script = format!("cd /stage/source\n{line}");
    let mut command = host.command(PATH, &["/bin/sh", "-ec", &script]);
    command.envs(environment.iter().copied()).output().unwrap().into()
}

/// The render nodes and cards that a listing of /dev/dri names.
pub(crate) fn listed(said: &str) -> Vec<&str> {
    said.split_whitespace().collect()
}
