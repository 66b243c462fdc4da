//! The runtimes behind the wrapper: one that does nothing, so that the wrapper's own time shows, and runc,
//! whose calls are the measure for that time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::timing::{Call, Stopwatch, median};
use crate::command::Command;
use crate::repository;

/// The status that the no-op runtime ends with; written in xtask/bench/noop.rs too.
pub(super) const RAN: i32 = 42;

/// Builds the runtime that does nothing with rustc alone: no libc, no start-up code, static.
pub(super) fn noop(work: &Path) -> Result<PathBuf> {
    let program = work.join("noop");
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
    .arguments([&program, &repository::top().join("xtask/bench/noop.rs")])
    .run()?;
    Ok(program)
}

/// The p50 of each of runc's calls in a container's life.
#[derive(Debug)]
pub(super) struct Runc(Vec<(&'static str, Duration)>);

/// A container's life. `exec` comes while it runs; `delete` ends it.
const LIFE: [&str; 6] = ["create", "start", "state", "exec", "kill", "delete"];

const ID: &str = "rocworker-bench";

impl Runc {
    /// Runs a container as often as `lives` says, outside of every namespace.
    pub(super) fn measure(work: &Path, lives: usize) -> Result<Self> {
        ensure!(nix::unistd::geteuid().is_root(), "runc needs root");
        let runc =
            which::which("runc").or_else(|_| which::which("/usr/sbin/runc")).context("finding runc")?;
        let bundle = work.join("runc");
        lay_out(&bundle, &runc)?;
        let stopwatch = Stopwatch::new(work)?;
        let mut times: [Vec<Duration>; LIFE.len()] = Default::default();
        for _ in 0..lives {
            for (call, times) in LIFE.iter().zip(&mut times) {
                times.push(stopwatch.time(&self::call(&runc, &bundle, call), 0)?);
            }
        }
        Ok(Self(LIFE.into_iter().zip(times.iter_mut().map(|times| median(times))).collect()))
    }

    pub(super) fn of(&self, call: &str) -> Result<Duration> {
        let found = self.0.iter().find(|(name, _)| *name == call);
        Ok(found.with_context(|| format!("runc's {call} was not measured"))?.1)
    }
}

fn call(runc: &Path, bundle: &Path, call: &str) -> Call {
    let bundle = bundle.display();
    let own = match call {
        "create" => format!("create --bundle {bundle} {ID}"),
        "exec" => format!("exec --process {bundle}/process {ID}"),
        "kill" => format!("kill --all {ID} 9"),
        "delete" => format!("delete --force {ID}"),
        other => format!("{other} {ID}"),
    };
    let arguments = format!("--root {bundle}/state {own}").split_whitespace().map(str::to_owned).collect();
    Call { program: runc.to_owned(), arguments }
}

/// runc's own sample of a configuration, with busybox in its root file system.
fn lay_out(bundle: &Path, runc: &Path) -> Result<()> {
    let root = bundle.join("rootfs/bin");
    fs::create_dir_all(&root).with_context(|| format!("making {}", root.display()))?;
    let busybox = which::which("busybox").context("finding busybox")?;
    fs::copy(&busybox, root.join("busybox")).with_context(|| format!("copying {}", busybox.display()))?;
    Command::new([runc]).arguments(["spec"]).inside(bundle).run()?;
    let path = bundle.join("config.json");
    let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut spec: Value =
        serde_json::from_slice(&text).with_context(|| format!("reading {}", path.display()))?;
    spec["process"]["terminal"] = json!(false);
    spec["process"]["args"] = json!(["/bin/busybox", "sleep", "1000"]);
    let mut process = spec["process"].clone();
    process["args"] = json!(["/bin/busybox", "true"]);
    for (path, content) in [(path, spec), (bundle.join("process"), process)] {
        fs::write(&path, content.to_string()).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_that_does_nothing_ends_with_its_own_status() {
        let work = tempfile::tempdir().unwrap();
        let status =
            std::process::Command::new(noop(work.path()).unwrap()).args(["create", "x"]).status().unwrap();
        assert_eq!(status.code(), Some(RAN));
    }

    #[test]
    fn real_runc_lives_a_containers_life_whose_calls_all_take_time() {
        if !support::real::require_root(&["runc", "busybox"]) {
            return;
        }
        let work = tempfile::tempdir().unwrap();
        let runc = Runc::measure(work.path(), 1).unwrap();
        for call in LIFE {
            assert!(runc.of(call).unwrap() > Duration::from_millis(1), "{call}");
        }
        assert!(runc.of("pause").is_err());
    }
}
