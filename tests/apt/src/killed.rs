//! Programs of a machine that are killed at a call of the kernel, by strace inside the machine.
//!
//! [`support::killed`] counts the calls of a program and of all that it starts, and what calls apt starts much. Here
//! those of one process are counted: of the program itself, or of a dpkg that something else runs.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use support::killed::Call;

use crate::machine::{Machine, SHARED};
use support::said::Said;

/// Stands in dpkg's place for apt: what changes packages is counted, and traced or killed; what only asks is passed
/// on. `$KILLED` names the call at which it is killed, `$RUN` the run in which, `$NTH` which of them; `$AND` whether
/// everything else dies then too.
const DPKG: &str = r#"#!/bin/sh
case " $* " in
    *" --unpack "* | *" --configure "* | *" --remove "* | *" --purge "* | *" --install "* | *" --triggers-only "*) ;;
    *) exec /usr/bin/dpkg "$@" ;;
esac
. /run/lab/dpkg.plan
run=$(($(cat /run/lab/dpkg.runs) + 1))
echo $run >/run/lab/dpkg.runs
if [ -z "$KILLED" ]; then
    exec strace -qq -y -s 0 -e signal=none -e "trace=$TRACE" -o "/run/lab/dpkg.calls.$run" /usr/bin/dpkg "$@"
fi
[ "$run" = "$RUN" ] || exec /usr/bin/dpkg "$@"
strace -qq -o /dev/null -e "trace=$KILLED" -e "inject=$KILLED:signal=KILL:when=$NTH" /usr/bin/dpkg "$@"
status=$?
[ "$status" -lt 128 ] || echo killed >/run/lab/dpkg.killed
[ "$status" -lt 128 ] || [ -z "$AND" ] || kill -KILL -1
exit $status
"#;
const CONFIGURATION: &str = "/etc/apt/apt.conf.d/99lab-dpkg";

/// A call of a dpkg that apt ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpkgCall {
    /// The number of that run of dpkg, from 1: apt unpacks and configures in several.
    pub run: u32,
    pub call: Call,
}

/// The programs that die with dpkg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// dpkg alone: apt notices, and says so.
    Alone,
    /// Every program of the machine dies, as in a power cut.
    WithAll,
}

/// Runs a program to its end and tells which of these calls it made itself, in their order.
///
/// # Panics
/// Where strace cannot be run.
pub fn calls(machine: &Machine, argv: &[&str], of: &str) -> Vec<Call> {
    let log = format!("{SHARED}/calls");
    let trace = format!("trace={of}");
    let strace = ["strace", "-qq", "-y", "-s", "0", "-e", "signal=none", "-e", &trace, "-o", &log];
    run(machine, &[&strace[..], argv].concat());
    parse(&fs::read_to_string(machine.shared().join("calls")).unwrap())
}

/// Runs a program that is killed when it is about to make this call. Says whether it was; what it started goes on
/// ([`Machine::kill_all`] ends that).
///
/// # Panics
/// Where strace cannot be run.
pub fn killed_at(machine: &Machine, argv: &[&str], call: &Call) -> bool {
    let trace = format!("trace={}", call.name);
    let inject = format!("inject={}:signal=KILL:when={}", call.name, call.nth);
    let strace = ["strace", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    run(machine, &[&strace[..], argv].concat()).is_none()
}

/// The exit code; none of one that was killed. Its words go nowhere: whoever waited for their end would wait for what
/// the program has started.
fn run(machine: &Machine, argv: &[&str]) -> Option<i32> {
    machine.command(argv).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().code()
}

/// Runs a program to its end, and tells which of these calls the dpkg made that apt ran for it.
///
/// # Panics
/// Where a trace cannot be read.
pub fn dpkg_calls(machine: &Machine, argv: &[&str], of: &str) -> (Said, Vec<DpkgCall>) {
    let said = with_dpkg(machine, argv, &format!("TRACE={of}\nKILLED=\n"));
    let runs: u32 = fs::read_to_string(machine.shared().join("dpkg.runs")).unwrap().trim().parse().unwrap();
    let calls = (1..=runs).flat_map(|run| {
        let file = machine.shared().join(format!("dpkg.calls.{run}"));
        let calls = parse(&fs::read_to_string(&file).unwrap());
        fs::remove_file(file).unwrap();
        calls.into_iter().map(move |call| DpkgCall { run, call })
    });
    (said, calls.collect())
}

/// Runs a program whose dpkg is killed when it is about to make this call; none where it never made it.
///
/// # Panics
/// Where the machine's files cannot be written.
pub fn dpkg_killed_at(machine: &Machine, argv: &[&str], at: &DpkgCall, death: Death) -> Option<Said> {
    let (name, nth, run) = (&at.call.name, at.call.nth, at.run);
    let and = if death == Death::WithAll { "all" } else { "" };
    let said = with_dpkg(machine, argv, &format!("KILLED={name}\nNTH={nth}\nRUN={run}\nAND={and}\n"));
    if death == Death::WithAll {
        // The programs were killed from inside; here their end is waited for.
        machine.kill_all();
    }
    fs::remove_file(machine.shared().join("dpkg.killed")).is_ok().then_some(said)
}

/// Runs a command with the test's dpkg in place of the real one, for apt alone and for this one run.
fn with_dpkg(machine: &Machine, argv: &[&str], plan: &str) -> Said {
    machine.put_script(&format!("{SHARED}/dpkg"), DPKG);
    machine.put(&format!("{SHARED}/dpkg.plan"), plan);
    machine.put(&format!("{SHARED}/dpkg.runs"), "0\n");
    machine.put(CONFIGURATION, format!("Dir::Bin::dpkg \"{SHARED}/dpkg\";\n"));
    let mut command = machine.command(argv);
    let said = command.env("DEBIAN_FRONTEND", "noninteractive").output().unwrap().into();
    fs::remove_file(machine.outside(CONFIGURATION)).unwrap();
    said
}

/// strace's lines, `NAME(…) = …`, without a process' number since there is one process.
pub fn parse(trace: &str) -> Vec<Call> {
    let mut counts = BTreeMap::<String, u32>::new();
    let call = |line: &str| {
        let name = line.split_once('(')?.0.to_owned();
        let nth = counts.entry(name.clone()).or_default();
        *nth += 1;
        Some(Call { name, nth: *nth, line: line.to_owned() })
    };
    trace.lines().filter_map(call).collect()
}
