//! Machines on which hooks run.

use std::process::Command;

use lab::machine::{Machine as Lab, SHARED};
use layout::Machine;
use support::laid::Laid;

use crate::charm::unit::Unit;

/// The charm's (fourdollars/concourse-ci-machine, lib/concourse_worker.py), without what needs a network.
pub(crate) const WORKER_UNIT: &str = "[Unit]
Description=Concourse CI Worker

[Service]
Type=simple
EnvironmentFile=/var/lib/concourse-worker/worker-config.env
ExecStart=/var/lib/concourse/bin/concourse worker
Restart=on-failure
";

/// A machine with what the Debian package puts there: programs that are used as they stand.
pub(crate) fn out(machine: &Machine) -> Laid {
    let laid = Laid::out(machine);
    laid.put("etc/group", "root:x:0:\nrender:x:104:\n");
    for program in ["rocworker", "rocworker-exporter"] {
        laid.put_program(&format!("usr/bin/{program}"), "stands for the program\n");
    }
    laid
}

/// The machine of the verification report, with a worker as the Concourse charm makes it with a tag.
pub(crate) fn worker() -> Laid {
    let laid = out(&support::captures::phoenix_beside_rtx4080());
    laid.put("etc/systemd/system/concourse-worker.service", WORKER_UNIT);
    laid.put(
        "var/lib/concourse-worker/worker-config.env",
        "CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG=linux\n",
    );
    laid.put("var/lib/concourse/bin/concourse", "");
    laid.put("var/lib/concourse/bin/containerd", "");
    laid
}

/// A program in a hook's context on a machine of the laboratory, whose shared folder holds the unit's.
pub(crate) fn in_context(lab: &Lab, unit: &Unit, path: &str, argv: &[&str]) -> Command {
    let seen = |word: String| word.replace(lab.shared().to_str().unwrap(), SHARED);
    let environment: Vec<String> = unit.environment(path).into_iter().map(seen).collect();
    let environment = environment.iter().map(String::as_str);
    lab.command(&["env", "-i"].into_iter().chain(environment).chain(argv.iter().copied()).collect::<Vec<_>>())
}
