//! Measures what the wrapper adds to a call of runc, as a share of runc's own time. What the wrapper adds is the
//! difference of two p50s with a runtime that does nothing: runc's own time varies by more than that.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::machine;
use super::report::{Outcome, Report};
use super::timing::{Call, median, medians, time};
use crate::command::Command;
use crate::programs::{Programs, target};
use crate::repository;

/// The status that the runtime that does nothing ends with; written in xtask/bench/noop.rs too.
const RAN: i32 = 42;

/// The number of containers whose calls of runc are timed.
const LIVES: usize = 20;

const ID: &str = "rocworker-bench";

/// The calls of a container's life, in their order: `BUNDLE` stands for the bundle's path.
const LIFE: [(&str, &[&str]); 6] = [
    ("create", &["create", "--bundle", "BUNDLE", ID]),
    ("start", &["start", ID]),
    ("state", &["state", ID]),
    ("exec", &["exec", "--process", "BUNDLE/process", ID]),
    ("kill", &["kill", "--all", ID, "9"]),
    ("delete", &["delete", "--force", ID]),
];

/// Creates with GPUs: cards, partitions of each, and the percentage of runc's create that the design allows.
const WITH_GPUS: [(u8, u8, f64); 2] = [(8, 1, 4.0), (8, 8, 8.0)];

/// Adds a row for each call without GPUs, and for creates with them.
pub(crate) fn measure(programs: &Programs, work: &Path, report: &mut Report) -> Result<()> {
    ensure!(nix::unistd::geteuid().is_root(), "runc, and what the wrapper reads of a machine, need root");
    // Copies the wrapper as install(1) would: the page cache has small pieces of a file that a linker has written piece
    // by piece.
    let wrapper = work.join("runc-amd-wrapper");
    fs::copy(&programs.wrapper, &wrapper)
        .with_context(|| format!("copying {}", programs.wrapper.display()))?;
    let noop = work.join("noop");
    Command::new(["rustc", "-O", "--target", &target(), "-o"])
        .arguments([&noop, &repository::top().join("xtask/bench/noop.rs")])
        .run()?;
    let runc = runc(work)?;
    let bench = Bench { wrapper: &wrapper, rocworker: &programs.rocworker, noop: &noop, work };
    let calls = LIFE.iter().map(|(call, _)| (format!("{call}, asks for nothing"), *call, (8, 8), 0, 1.0));
    let with_gpus = WITH_GPUS.iter().map(|&(cards, partitions, limit)| {
        let gpus = usize::from(cards) * usize::from(partitions);
        (format!("create, {gpus} GPUs injected"), "create", (cards, partitions), gpus, limit)
    });
    for (name, call, machine, gpus, limit) in calls.chain(with_gpus) {
        // A thread for each: unshare(2) and sched_setaffinity(2) hold for the thread that calls them, so the mounts go
        // away with it. The rest of the run sees this machine.
        let measured = std::thread::scope(|scope| scope.spawn(|| bench.measure(call, machine, gpus)).join());
        let measured = measured.map_err(|_| anyhow!("the measuring thread died"))?;
        let share = |added: Duration| {
            let (added, runc) = (added.as_secs_f64() * 1e6, runc[call].as_secs_f64() * 1e6);
            let figures = format!("+{added:.0} µs; runc {:.1} ms", runc / 1e3);
            Outcome { figures, ratio: added / runc * 100.0 }
        };
        report.add(&format!("wrapper, {name}"), measured.map(share), limit, "% of runc's");
    }
    Ok(())
}

struct Bench<'a> {
    wrapper: &'a Path,
    rocworker: &'a Path,
    noop: &'a Path,
    work: &'a Path,
}

impl Bench<'_> {
    /// What the wrapper adds to this call, on a machine of so many cards with partitions.
    fn measure(&self, call: &str, machine: (u8, u8), gpus: usize) -> Result<Duration> {
        // In the folder in which containerd keeps bundles, in memory.
        let bundle = Path::new("/run/containerd/io.containerd.runtime.v2.task/concourse").join(ID);
        // runc looks for this machine's control groups, which the synthetic one lacks.
        let sample = sample(self.work)?;
        machine::mount_over(&self.work.join("machine"), machine, self.rocworker, self.noop)?;
        let mut config = lay_out(&bundle, sample)?;
        if gpus > 0 {
            let env = config["process"]["env"].as_array_mut().context("no environment in config.json")?;
            env.push(json!("AMD_VISIBLE_DEVICES=all"));
        }
        let config = config.to_string();
        let restore = || {
            fs::write(bundle.join("config.json"), &config).context("writing config.json")?;
            machine::forget_records()
        };
        let [direct, wrapped] = [self.noop, self.wrapper].map(|program| of(program, &bundle, call));
        restore()?;
        time(&bundle, &wrapped, RAN)?;
        let edited = fs::read_to_string(bundle.join("config.json")).context("reading config.json")?;
        check(&config, &edited, gpus)?;
        let [direct, wrapped] = medians(&bundle, &[direct, wrapped], RAN, restore)?;
        Ok(wrapped.saturating_sub(direct))
    }
}

/// The call as containerd's shim spells it.
fn of(runtime: &Path, bundle: &Path, call: &str) -> Call {
    let bundle = bundle.display().to_string();
    let (root, log) = (format!("{bundle}/state"), format!("{bundle}/log.json"));
    let own = LIFE.iter().find(|(name, _)| *name == call).map_or(&[][..], |(_, words)| words);
    let own: Vec<String> = own.iter().map(|word| word.replace("BUNDLE", &bundle)).collect();
    let own = own.iter().map(String::as_str);
    Call::new(runtime, &["--root", &root, "--log", &log].into_iter().chain(own).collect::<Vec<_>>())
}

/// Checks config.json after a create: unchanged for no GPU, else with as many render nodes and one /dev/kfd.
fn check(original: &str, edited: &str, gpus: usize) -> Result<()> {
    if gpus == 0 {
        ensure!(edited == original, "the bundle of a container that asks for nothing was changed");
        return Ok(());
    }
    let spec: Value = serde_json::from_str(edited).context("reading config.json")?;
    let devices = spec["linux"]["devices"].as_array().map_or(&[][..], Vec::as_slice);
    let count = |prefix: &str| {
        let paths = devices.iter().filter_map(|device| device["path"].as_str());
        paths.filter(|path| path.starts_with(prefix)).count()
    };
    let (render, kfd) = (count("/dev/dri/renderD"), count("/dev/kfd"));
    ensure!(
        (render, kfd) == (gpus, 1),
        "{render} render nodes and {kfd} /dev/kfd were injected for {gpus} GPUs"
    );
    Ok(())
}

/// The p50 of each of runc's calls in a container's life.
fn runc(work: &Path) -> Result<BTreeMap<&'static str, Duration>> {
    let bundle = work.join("runc");
    lay_out(&bundle, sample(work)?)?;
    let program = runc_program()?;
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for _ in 0..LIVES {
        for (call, _) in LIFE {
            times.entry(call).or_default().push(time(work, &of(&program, &bundle, call), 0)?);
        }
    }
    Ok(times.into_iter().map(|(call, mut times)| (call, median(&mut times))).collect())
}

fn runc_program() -> Result<PathBuf> {
    which::which("runc").or_else(|_| which::which("/usr/sbin/runc")).context("finding runc")
}

/// runc's own sample of a configuration.
fn sample(work: &Path) -> Result<Value> {
    let folder = tempfile::tempdir_in(work).context("making a folder for runc's sample")?;
    Command::new([runc_program()?]).arguments(["spec"]).inside(folder.path()).read()?;
    let text = fs::read_to_string(folder.path().join("config.json")).context("reading runc's sample")?;
    serde_json::from_str(&text).context("reading runc's configuration")
}

/// A bundle of busybox by a sample of a configuration, which comes back: as large as Concourse's.
fn lay_out(bundle: &Path, mut spec: Value) -> Result<Value> {
    let root = bundle.join("rootfs/bin");
    fs::create_dir_all(&root).with_context(|| format!("making {}", root.display()))?;
    let busybox = which::which("busybox").context("finding busybox")?;
    fs::copy(&busybox, root.join("busybox")).with_context(|| format!("copying {}", busybox.display()))?;
    let path = bundle.join("config.json");
    let process = &mut spec["process"];
    process["terminal"] = json!(false);
    let env = process["env"].as_array_mut().context("runc's configuration has no environment")?;
    env.extend(
        (0..200)
            .map(|n| json!(format!("BUILD_VARIABLE_{n}=as long as a value of a pipeline's parameters is"))),
    );
    process["args"] = json!(["/bin/busybox", "true"]);
    fs::write(bundle.join("process"), process.to_string()).context("writing the process of exec")?;
    process["args"] = json!(["/bin/busybox", "sleep", "1000"]);
    fs::write(&path, spec.to_string()).with_context(|| format!("writing {}", path.display()))?;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_judged_by_its_nodes() {
        let nodes = r#"{"linux":{"devices":[{"path":"/dev/kfd"},{"path":"/dev/dri/renderD128"}]}}"#;
        assert!(check("{}", "{}", 0).is_ok() && check("{}", nodes, 1).is_ok());
        for (edited, gpus) in [("{}", 1), (nodes, 0), (nodes, 2)] {
            assert!(check("{}", edited, gpus).is_err(), "{edited} {gpus}");
        }
    }
}
