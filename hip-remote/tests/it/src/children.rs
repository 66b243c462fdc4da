//! Processes, as /proc shows them.

use std::fs;

/// The living children of a process, without those that wait for their parent to look at them.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let all: String = lists.collect::<Vec<_>>().join(" ");
    all.split_whitespace().map(|child| child.parse().unwrap()).filter(|&child| is_alive(child)).collect()
}

/// Whether a process runs: neither gone nor a zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next())
        .is_some_and(|state| state != 'Z' && state != 'X')
}

/// How much memory a process has that no file backs, in KiB.
pub fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
