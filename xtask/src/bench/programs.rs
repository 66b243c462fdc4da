use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::command::Command;
use crate::repository;

/// The status that the no-op runtime ends with; written in xtask/bench/noop.rs too.
pub(crate) const RAN: i32 = 42;

/// What the wrapper is measured against.
#[derive(Debug)]
pub(crate) struct Shims {
    /// The runtime that does nothing.
    pub(crate) noop: PathBuf,
    /// The smallest possible shim in front of it.
    pub(crate) floor: PathBuf,
}

/// Builds both with rustc alone: no libc, no start-up code, static.
pub(crate) fn build(work: &Path) -> Result<Shims> {
    let shims = Shims { noop: work.join("noop"), floor: work.join("floor") };
    let rustc = |source: &str, program: &Path| {
        Command::new([
            "rustc",
            "--edition",
            "2024",
            "-C",
            "opt-level=2",
            "-C",
            "panic=abort",
            "-C",
            "strip=symbols",
        ])
        .arguments(["-C", "relocation-model=static", "-C", "link-arg=-static"])
        .arguments(["-C", "link-arg=-nostartfiles", "-C", "link-arg=-nostdlib", "-o"])
        .arguments([program, &repository::top().join("xtask/bench").join(source)])
    };
    rustc("noop.rs", &shims.noop).run()?;
    rustc("floor.rs", &shims.floor).environment("FLOOR_NEXT", &shims.noop).run()?;
    Ok(shims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_runs_the_noop_runtime_which_ends_with_its_own_status() {
        let work = tempfile::tempdir().unwrap();
        let shims = build(work.path()).unwrap();
        for program in [&shims.noop, &shims.floor] {
            let status = std::process::Command::new(program).args(["create", "x"]).status().unwrap();
            assert_eq!(status.code(), Some(RAN), "{}", program.display());
        }
    }

    #[test]
    fn the_floor_says_with_127_that_there_is_nothing_to_run() {
        let work = tempfile::tempdir().unwrap();
        let shims = build(work.path()).unwrap();
        std::fs::remove_file(&shims.noop).unwrap();
        let status = std::process::Command::new(&shims.floor).status().unwrap();
        assert_eq!(status.code(), Some(127));
    }
}
