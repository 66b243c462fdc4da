//! Holders that do nothing: a container of Concourse's in which only the engine's first process is left.
//!
//! Concourse's containers outlive their task, with nothing in them but an init that waits. Since nothing
//! of the wrapper stays running, decisions look for idleness. The first one that finds a holder idle
//! marks its leases, and one that finds it busy takes the mark off. Once a mark is older than the policy's
//! grace, a decision frees the leases by ending that init.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use allocation::lease::Lease;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::alive::Process;
use crate::kfd::Kfd;
use crate::liveness::{self, By, Judge};
use crate::paths::Paths;

/// How long to wait until a killed container has no process left.
const UNTIL_EMPTY: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// First processes that only wait, while an engine starts the work by `exec`: Concourse's
/// (worker/runtime/spec, `Process.Args`) and Guardian's, which Concourse runs too. Any other first process
/// may be the work itself, as with docker and podman, even if it does not compute at this moment.
const WAITING: [&[u8]; 2] = [b"/tmp/gdn-init", b"/tmp/garden-init"];

/// The first process of a container in which nothing is left but an engine's waiting one; `None` also where that
/// is unknown.
fn waiting_process(lease: &Lease, paths: &Paths) -> Option<Process> {
    let (init, pids) = liveness::processes(&lease.root, &lease.id, &paths.proc)?;
    let is_alone = pids.len() == 1 && pids.contains(&init.pid);
    let command = std::fs::read(paths.proc.join(format!("{}/cmdline", init.pid))).ok()?;
    let program = command.split(|byte| *byte == 0).next()?;
    (is_alone && WAITING.contains(&program)).then_some(init)
}

/// Whether the container is idle and no process of the machine computes on its GPU.
fn is_idle(lease: &Lease, kfd: &Kfd, paths: &Paths) -> bool {
    kfd.user_of(lease.gpu.render).is_none() && waiting_process(lease, paths).is_some()
}

/// The mark that a lease should have now.
pub fn mark(lease: &Lease, by: By, now_ms: u64, kfd: &Kfd, paths: &Paths) -> Option<u64> {
    let idle = by == By::Init && is_idle(lease, kfd, paths);
    idle.then(|| lease.idle_since_ms.filter(|since| *since <= now_ms).unwrap_or(now_ms))
}

/// Whether the lease can be revoked: the container has been marked as idle for `grace_s` seconds.
pub fn is_reclaimable(lease: &Lease, grace_s: u32, now_ms: u64) -> bool {
    let grace = u64::from(grace_s) * 1000;
    lease.idle_since_ms.is_some_and(|since| now_ms.saturating_sub(since) >= grace)
}

/// Ends the only process of an idle container.
///
/// # Errors
/// The kernel does not let it.
pub fn end(lease: &Lease, paths: &Paths) -> io::Result<()> {
    match waiting_process(lease, paths) {
        Some(init) => kill(init, &paths.proc),
        None => Ok(()),
    }
}

/// Sends SIGKILL to this process and never to another one with its number. One that has ended already is no error.
///
/// # Errors
/// The kernel's error.
fn kill(process: Process, proc: &Path) -> io::Result<()> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("no process has this number"))?;
    let kill = || {
        let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
        // The descriptor now stands for one process; the next check shows whether that is the right one.
        if process.is_alive(proc) { pidfd_send_signal(descriptor, Signal::KILL) } else { Ok(()) }
    };
    match kill() {
        Err(Errno::SRCH) => Ok(()),
        killed => Ok(killed?),
    }
}

/// Waits until nothing is left of these containers, for two seconds at most: not to be called with the lock.
pub fn wait_until_gone(leases: &[Lease], judge: &mut Judge<'_>) {
    let deadline = Instant::now() + UNTIL_EMPTY;
    while leases.iter().any(|lease| judge.lease(lease).is_some()) && Instant::now() < deadline {
        std::thread::sleep(POLL);
        judge.look_again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease_file::lease_of_x;
    use allocation::record::Creator;
    use std::fs;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_holder_is_idle_where_only_an_engines_first_process_is_left_and_nobody_computes_on_its_gpu() {
        let concourse = "/tmp/gdn-init\0";
        for (what, command, processes, computes_on, expected) in [
            ("Concourse's", concourse, "7\n", 129, Some(5)),
            ("Guardian's", "/tmp/garden-init\0", "7\n", 129, Some(5)),
            ("one with a task in it", concourse, "7\n8\n", 129, None),
            ("one whose GPU a process computes on", concourse, "7\n", 128, None),
            ("a program that waits", "sleep\0infinity\0", "7\n", 129, None),
            ("a program of that name elsewhere", "/usr/bin/gdn-init\0", "7\n", 129, None),
            ("one that names it in an argument", "python3\0/tmp/gdn-init\0", "7\n", 129, None),
            ("one that has no command line", "", "7\n", 129, None),
        ] {
            let place = tempfile::tempdir().unwrap();
            let at = |path: &str| place.path().join(path);
            let paths = Paths { proc: at("proc"), sys: at("sys"), ..Paths::system() };
            write(&at("proc/7/cmdline"), command);
            write(&at("cgroup/cgroup.procs"), processes);
            let cgroup = at("cgroup");
            let state = format!(
                r#"{{"init_process_pid":7,"init_process_start":1,"cgroup_paths":{{"":"{}"}}}}"#,
                cgroup.display()
            );
            write(&at("R/x/state.json"), &state);
            for (node, minor) in [("1", 128), ("2", 129)] {
                let node = at("sys/class/kfd/kfd/topology/nodes").join(node);
                write(&node.join("gpu_id"), &format!("{minor}\n"));
                write(&node.join("properties"), &format!("drm_render_minor {minor}\n"));
            }
            write(&at("sys/class/kfd/kfd/proc/9").join(format!("vram_{computes_on}")), "4096\n");
            let creator = Creator { pid: 1, start_time: 1, boot_id: String::new() };
            let lease = lease_of_x(&at("R"), creator);
            let kfd = Kfd::read(&paths);
            assert_eq!(mark(&lease, By::Init, 5, &kfd, &paths), expected, "{what}");
            assert_eq!(mark(&lease, By::Cgroup, 5, &kfd, &paths), None, "{what}");
        }
    }

    #[test]
    fn a_process_is_ended_and_another_one_with_its_number_is_not() {
        let proc = Path::new("/proc");
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let named = Process::now(proc, child.id()).unwrap();
        kill(Process { start_time: named.start_time - 1, ..named }, proc).unwrap();
        kill(Process { start_time: named.start_time + 1, ..named }, proc).unwrap();
        assert!(named.is_alive(proc));
        kill(named, proc).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        kill(named, proc).unwrap();
    }
}
