//! A command where the kernel gives the process no thread.

use std::time::Duration;

use reconcile::command::Programs;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::alone::alone;

#[test]
fn a_command_for_whose_output_there_is_no_thread_is_an_error() {
    if !alone() {
        return;
    }
    let programs = Programs::in_folders("/usr/bin:/bin");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix("kB")).unwrap();
    let size: u64 = size.trim().parse().unwrap();
    let before = getrlimit(Resource::As);
    // A thread's stack takes two MiB.
    let current = Some((size + 1024) * 1024);
    setrlimit(Resource::As, Rlimit { current, ..before }).unwrap();
    let ran = programs.run(&["true"], Duration::from_secs(60));
    setrlimit(Resource::As, before).unwrap();
    let error = ran.unwrap_err().to_string();
    assert_eq!(error, "cannot run true: Resource temporarily unavailable (os error 11)");
}
