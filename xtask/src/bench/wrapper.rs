//! Measures what the wrapper adds to a call of runc, as a share of runc's own time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::bundle::Bundle;
use super::machine::{self, Machine};
use super::report::{Outcome, Report};
use super::runtime::{RAN, Runc};
use super::timing::{Call, Stopwatch};

/// The folder in which containerd keeps bundles, in memory.
const BUNDLES: &str = "/run/containerd/io.containerd.runtime.v2.task/concourse";
const ID: &str = "5ca1ab1e-0000-4000-8000-000000000000";

/// A call of containerd's shim on a machine.
struct Situation {
    what: &'static str,
    /// The arguments behind the global flags; `BUNDLE` stands for the bundle's path.
    arguments: &'static [&'static str],
    cards: u8,
    partitions: u8,
    /// The request in the container's environment; `gpus` is how many GPUs it gets.
    request: Option<&'static str>,
    gpus: usize,
    /// The share that the design allows, in percent.
    limit: f64,
}

const CREATE: &[&str] = &["create", "--bundle", "BUNDLE", "--pid-file", "BUNDLE/init.pid", ID];
const EXEC: &[&str] =
    &["exec", "--process", "BUNDLE/process", "--detach", "--pid-file", "BUNDLE/exec.pid", ID];

/// A call for a container without GPUs, on the largest machine.
const fn without_gpus(what: &'static str, arguments: &'static [&'static str], limit: f64) -> Situation {
    Situation { what, arguments, cards: 8, partitions: 8, request: None, gpus: 0, limit }
}

/// The budgets of the design, in its order.
const SITUATIONS: &[Situation] = &[
    without_gpus("create, asks for nothing", CREATE, 1.0),
    without_gpus("start", &["start", ID], 1.0),
    without_gpus("kill", &["kill", "--all", ID, "9"], 1.0),
    without_gpus("state", &["state", ID], 1.0),
    without_gpus("delete", &["delete", "--force", ID], 1.0),
    without_gpus("exec --process", EXEC, 1.0),
    Situation {
        what: "create, 8 GPUs injected",
        arguments: CREATE,
        cards: 8,
        partitions: 1,
        request: Some("all"),
        gpus: 8,
        limit: 4.0,
    },
    Situation {
        what: "create, 64 partitions injected",
        arguments: CREATE,
        cards: 8,
        partitions: 8,
        request: Some("all"),
        gpus: 64,
        limit: 8.0,
    },
];

/// Adds a row for each situation whose name has `only` in it.
pub(crate) fn measure(
    wrapper: &Path,
    rocworker: &Path,
    work: &Path,
    runs: usize,
    only: &str,
    report: &mut Report,
) -> Result<()> {
    let wanted: Vec<_> = SITUATIONS.iter().enumerate().filter(|(_, one)| one.name().contains(only)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    // Copies the wrapper as install(1) would: the page cache has small pieces of a file that a linker has
    // written piece by piece.
    let installed = work.join("runc-amd-wrapper");
    std::fs::copy(wrapper, &installed).with_context(|| format!("copying {}", wrapper.display()))?;
    let noop = super::runtime::noop(work)?;
    println!("measuring: runc");
    let runc = Runc::measure(work, (runs / 10).max(10));
    for (number, situation) in wanted {
        println!("measuring: {}", situation.name());
        let folder = work.join(format!("machine-{number}"));
        let bench = Bench { wrapper: &installed, rocworker, noop: &noop, folder, runs };
        // A thread for each: unshare(2) and sched_setaffinity(2) hold for the thread that calls them, so the
        // mounts go away with it. The rest of the run sees this machine.
        let measured = std::thread::scope(|scope| scope.spawn(|| bench.measure(situation)).join());
        let measured = measured.map_err(|_| anyhow!("the measuring thread died"))?;
        let outcome = match (&runc, measured) {
            (Ok(runc), Ok([direct, wrapped])) => Ok(share(direct, wrapped, runc.of(situation.arguments[0])?)),
            (Err(error), _) => Err(anyhow!("{error:#}")),
            (_, Err(error)) => Err(error),
        };
        report.add(&situation.name(), outcome, situation.limit, "% of runc's");
    }
    Ok(())
}

impl Situation {
    fn name(&self) -> String {
        format!("wrapper, {}", self.what)
    }
}

struct Bench<'a> {
    wrapper: &'a Path,
    rocworker: &'a Path,
    noop: &'a Path,
    folder: PathBuf,
    runs: usize,
}

impl Bench<'_> {
    /// The p50 of the runtime that does nothing, alone and behind the wrapper.
    fn measure(&self, situation: &Situation) -> Result<[Duration; 2]> {
        let (machine, bundle) = self.lay_out(situation)?;
        let stopwatch = Stopwatch::new(&self.folder)?;
        let restore = || {
            bundle.restore()?;
            machine.forget_records()
        };

        let arguments = arguments(situation.arguments, bundle.folder());
        let calls = [self.noop, self.wrapper]
            .map(|program| Call { program: program.to_owned(), arguments: arguments.clone() });
        stopwatch.time(&calls[1], RAN)?;
        bundle.check(situation.gpus)?;
        stopwatch.medians(&calls, RAN, self.runs, restore)
    }

    /// A machine and a bundle in this thread's own mounts.
    fn lay_out(&self, situation: &Situation) -> Result<(Machine, Bundle)> {
        if !nix::unistd::geteuid().is_root() {
            bail!("the wrapper reads /etc, /dev and /sys of the machine, and only root can put others there");
        }
        machine::enter_namespace()?;
        let (cards, partitions) = (situation.cards, situation.partitions);
        let machine =
            Machine::mounted(self.folder.join("root"), cards, partitions, self.rocworker, self.noop)?;
        let bundle = Bundle::make(Path::new(BUNDLES).join(ID), situation.request)?;
        std::fs::write(bundle.folder().join("process"), PROCESS)?;
        Ok((machine, bundle))
    }
}

/// The process of `exec --process`, as containerd writes it to /tmp.
const PROCESS: &str = r#"{"user":{"uid":0,"gid":0},"args":["/bin/true"],"env":["A=b"],"cwd":"/"}"#;

/// The global flags as containerd's shim passes them, then the call's own.
fn arguments(own: &[&str], bundle: &Path) -> Vec<String> {
    let bundle = bundle.display().to_string();
    let log = format!("{bundle}/log.json");
    let global = ["--root", "/run/containerd/runc/concourse", "--log", &log, "--log-format", "json"];
    let own = own.iter().map(|argument| argument.replace("BUNDLE", &bundle));
    global.iter().map(ToString::to_string).chain(own).collect()
}

/// The added time in per cent of runc's time.
fn share(direct: Duration, wrapped: Duration, runc: Duration) -> Outcome {
    let microseconds = |duration: Duration| duration.as_secs_f64() * 1e6;
    let (added, runc) = (microseconds(wrapped) - microseconds(direct), microseconds(runc));
    Outcome { figures: format!("+{added:.0} µs; runc {:.1} ms", runc / 1e3), ratio: added / runc * 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_what_is_added_to_a_call_of_runc() {
        let [direct, wrapped, runc] = [400, 700, 30_000].map(Duration::from_micros);
        let Outcome { figures, ratio } = share(direct, wrapped, runc);
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
        assert_eq!(figures, "+300 µs; runc 30.0 ms");
    }

    #[test]
    fn a_call_is_spelt_as_containerds_shim_spells_it() {
        let said = arguments(CREATE, Path::new("/b")).join(" ");
        assert_eq!(
            said,
            "--root /run/containerd/runc/concourse --log /b/log.json --log-format json \
             create --bundle /b --pid-file /b/init.pid 5ca1ab1e-0000-4000-8000-000000000000"
        );
    }
}
