//! What the wrapper adds to executing the runtime directly, beside what the floor adds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::bundle::Bundle;
use super::machine::{self, Machine};
use super::programs::{RAN, Shims};
use super::report::{Outcome, Report, Row};
use super::timing::{Call, Stopwatch};

/// Where containerd keeps bundles: in memory.
const BUNDLES: &str = "/run/containerd/io.containerd.runtime.v2.task/concourse";
const ID: &str = "5ca1ab1e-0000-4000-8000-000000000000";

/// One call of containerd's shim, on one machine.
struct Situation {
    what: &'static str,
    /// What follows the global flags; `BUNDLE` means the bundle's path.
    arguments: &'static [&'static str],
    cards: u8,
    partitions: u8,
    /// What the container's environment asks for, and how many GPUs it gets.
    request: Option<&'static str>,
    gpus: usize,
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
    without_gpus("create, asks for nothing", CREATE, 3.0),
    without_gpus("start", &["start", ID], 2.5),
    without_gpus("kill", &["kill", "--all", ID, "9"], 2.5),
    without_gpus("state", &["state", ID], 2.5),
    without_gpus("delete", &["delete", "--force", ID], 2.5),
    without_gpus("exec --process", EXEC, 2.5),
    Situation {
        what: "create, 8 GPUs injected",
        arguments: CREATE,
        cards: 8,
        partitions: 1,
        request: Some("all"),
        gpus: 8,
        limit: 10.0,
    },
    Situation {
        what: "create, 64 partitions injected",
        arguments: CREATE,
        cards: 8,
        partitions: 8,
        request: Some("all"),
        gpus: 64,
        limit: 20.0,
    },
];

/// Adds a row for each situation whose name has `only` in it; what cannot be measured here is a row with its
/// reason.
pub(crate) fn measure(
    wrapper: &Path,
    rocworker: &Path,
    shims: &Shims,
    work: &Path,
    runs: usize,
    only: &str,
    report: &mut Report,
) -> Result<()> {
    for (number, situation) in SITUATIONS.iter().enumerate().filter(|(_, one)| one.what.contains(only)) {
        println!("measuring: wrapper, {}", situation.what);
        let folder = work.join(format!("machine-{number}"));
        let bench = Bench { wrapper, rocworker, shims, folder, runs };
        // A thread for each: unshare(2) and sched_setaffinity(2) hold for the thread that calls them, so the
        // mounts go away with it. The rest of the run sees this machine.
        let measured = std::thread::scope(|scope| scope.spawn(|| bench.measure(situation)).join());
        let measured = measured.map_err(|_| anyhow!("the measuring thread died"))?;
        let outcome =
            measured.unwrap_or_else(|error| Outcome::LeftOut { reason: format!("left out: {error:#}") });
        report.add(Row {
            what: format!("wrapper, {}", situation.what),
            outcome,
            limit: situation.limit,
            unit: "× the floor",
            enforced: true,
        });
    }
    Ok(())
}

/// Runs the wrapper once under a tool, such as strace or valgrind, in each situation whose name has `only` in it.
pub(crate) fn watch(
    wrapper: &Path,
    rocworker: &Path,
    shims: &Shims,
    work: &Path,
    only: &str,
    tool: &[String],
) -> Result<()> {
    for (number, situation) in SITUATIONS.iter().enumerate().filter(|(_, one)| one.what.contains(only)) {
        println!("watching: wrapper, {}", situation.what);
        let folder = work.join(format!("machine-{number}"));
        let bench = Bench { wrapper, rocworker, shims, folder, runs: 1 };
        let watched = std::thread::scope(|scope| scope.spawn(|| bench.watch(situation, tool)).join());
        watched.map_err(|_| anyhow!("the watching thread died"))??;
    }
    Ok(())
}

struct Bench<'a> {
    wrapper: &'a Path,
    rocworker: &'a Path,
    shims: &'a Shims,
    folder: PathBuf,
    runs: usize,
}

impl Bench<'_> {
    fn measure(&self, situation: &Situation) -> Result<Outcome> {
        let (machine, bundle) = self.lay_out(situation)?;
        let stopwatch = Stopwatch::new(&self.folder)?;
        let restore = || {
            bundle.restore()?;
            machine.forget_records()
        };

        let arguments = arguments(situation.arguments, bundle.folder());
        let call = |program: &Path| Call { program: program.to_owned(), arguments: arguments.clone() };
        let calls = [call(&self.shims.noop), call(&self.shims.floor), call(self.wrapper)];
        stopwatch.time(&calls[2], RAN)?;
        bundle.check(situation.gpus)?;
        compare(stopwatch.medians(&calls, RAN, self.runs, restore)?)
    }

    fn watch(&self, situation: &Situation, tool: &[String]) -> Result<()> {
        let (_machine, bundle) = self.lay_out(situation)?;
        let Some((program, options)) = tool.split_first() else { bail!("no tool is named") };
        let status = std::process::Command::new(program)
            .args(options)
            .arg(self.wrapper)
            .args(arguments(situation.arguments, bundle.folder()))
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .status();
        println!("{program} ended with {}", status.with_context(|| format!("starting {program}"))?);
        Ok(())
    }

    /// A machine and a bundle in this thread's own mounts.
    fn lay_out(&self, situation: &Situation) -> Result<(Machine, Bundle)> {
        if !nix::unistd::geteuid().is_root() {
            bail!("the wrapper reads /etc, /dev and /sys of the machine, and only root can put others there");
        }
        machine::enter_namespace()?;
        let (cards, partitions) = (situation.cards, situation.partitions);
        let machine =
            Machine::mounted(self.folder.join("root"), cards, partitions, self.rocworker, &self.shims.noop)?;
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

/// The ratio of what the wrapper adds to what the floor adds.
fn compare([direct, floor, wrapper]: [Duration; 3]) -> Result<Outcome> {
    let microseconds = |duration: Duration| duration.as_secs_f64() * 1e6;
    let (direct, floor, wrapper) = (microseconds(direct), microseconds(floor), microseconds(wrapper));
    let (floor_adds, wrapper_adds) = (floor - direct, wrapper - direct);
    // One execve of a static program costs tens of microseconds; less is noise, too small for a ratio.
    if floor_adds < 5.0 {
        bail!(
            "the floor added {floor_adds:.1} µs to {direct:.0} µs: this machine is too noisy to measure on"
        );
    }
    Ok(Outcome::Measured {
        figures: format!("+{wrapper_adds:.0} µs; floor +{floor_adds:.0} µs; runtime alone {direct:.0} µs"),
        ratio: wrapper_adds / floor_adds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_what_is_added_not_of_the_whole() {
        let micros = |direct, floor, wrapper| [direct, floor, wrapper].map(Duration::from_micros);
        match compare(micros(400, 440, 480)).unwrap() {
            Outcome::Measured { figures, ratio } => {
                assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
                assert_eq!(figures, "+80 µs; floor +40 µs; runtime alone 400 µs");
            }
            Outcome::LeftOut { reason } => panic!("{reason}"),
        }
        for noise in [micros(400, 402, 480), micros(400, 390, 480)] {
            assert!(compare(noise).unwrap_err().to_string().contains("too noisy"));
        }
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
