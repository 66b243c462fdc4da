//! Lists the processes of a cgroup as the kernel reports them (cgroup v1, v2, and both at once).

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::alive::Process;

/// The processes in these cgroups and in those beneath them. A cgroup that is not there holds none.
///
/// # Errors
/// The kernel does not say: then the cgroup does not count as empty.
pub fn processes(cgroups: &[PathBuf]) -> io::Result<BTreeSet<u32>> {
    let mut pids = BTreeSet::new();
    let mut left: Vec<PathBuf> = cgroups.to_vec();
    while let Some(cgroup) = left.pop() {
        match std::fs::read_to_string(cgroup.join("cgroup.procs")) {
            Err(error) if is_gone(&error) => continue,
            listed => pids.extend(listed?.lines().filter_map(|line| line.trim().parse::<u32>().ok())),
        }
        let entries = match std::fs::read_dir(&cgroup) {
            Err(error) if is_gone(&error) => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(pids)
}

/// ENODEV is what the kernel answers for a cgroup that is just being removed, and ESRCH for a process that just ends.
fn is_gone(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NODEV | Errno::SRCH))
}

/// Every process of the machine with its cgroups from `/proc/PID/cgroup`.
///
/// # Errors
/// The cgroup of a process cannot be read.
pub fn all_processes(proc: &Path) -> io::Result<Vec<(u32, String)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(proc)? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match std::fs::read(proc.join(format!("{pid}/cgroup"))) {
            Err(error) if is_gone(&error) => {}
            cgroups => all.push((pid, String::from_utf8_lossy(&cgroups?).into_owned())),
        }
    }
    Ok(all)
}

/// The processes of these that have not ended and are in a cgroup, or beneath one, whose path ends in one of
/// `ends`. So a cgroup is found in whatever hierarchy and slice, and wherever this process is; one
/// of another container that happens to end alike counts too.
pub fn within(all: &[(u32, String)], ends: &[String], proc: &Path) -> BTreeSet<u32> {
    let within = |cgroups: &str| {
        cgroups.lines().any(|line| {
            let path = line.splitn(3, ':').nth(2).unwrap_or_default();
            ends.iter().any(|end| has_components(path, end))
        })
    };
    let found = all.iter().filter(|(_, cgroups)| within(cgroups)).map(|(pid, _)| *pid);
    // In cgroup v2 a process that has ended and waits for its parent stays in its cgroup.
    found.filter(|pid| Process::now(proc, *pid).is_some()).collect()
}

/// Whether the components of `end` are side by side in a path.
fn has_components(path: &str, end: &str) -> bool {
    let wanted: Vec<&str> = end.split('/').collect();
    let parts: Vec<&str> = path.split('/').collect();
    parts.windows(wanted.len()).any(|parts| parts == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_holds_the_processes_of_those_beneath_it_and_one_that_is_gone_none() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("c/inner/deep")).unwrap();
        for (file, text) in [("c", ""), ("c/inner", "7\n"), ("c/inner/deep", "8\n9\n")] {
            std::fs::write(at(file).join("cgroup.procs"), text).unwrap();
        }
        assert_eq!(processes(&[at("c"), at("gone")]).unwrap(), BTreeSet::from([7, 8, 9]));
        assert!(processes(&[at("gone")]).unwrap().is_empty());
        std::fs::remove_file(at("c/cgroup.procs")).unwrap();
        std::fs::create_dir(at("c/cgroup.procs")).unwrap();
        processes(&[at("c")]).unwrap_err();
    }

    #[test]
    fn a_path_ends_where_a_component_ends() {
        for (path, end, expected) in [
            ("/concourse/x", "concourse/x", true),
            ("/outer/concourse/x", "concourse/x", true),
            ("/concourse/x/inner", "concourse/x", true),
            ("/concourse/xy", "concourse/x", false),
            ("/aconcourse/x", "concourse/x", false),
            ("/system.slice/runc-x.scope", "runc-x.scope", true),
            ("/ab/b", "b", true),
            ("/", "x", false),
            ("/docker-concourse/concourse/concourse", "concourse/concourse", true),
        ] {
            assert_eq!(has_components(path, end), expected, "{path} {end}");
        }
    }
}
