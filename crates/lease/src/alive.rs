//! Decides whether a process still runs.
//!
//! A pid alone does not show that: the kernel gives pids again. A process is named by its pid, a time by
//! which it had started, and the boot from which that time counts: a later process with that pid has a later
//! start.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A process of this boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// The start in clock ticks after boot: field 22 of `/proc/PID/stat` (proc(5)). For [`Process::this`], a
    /// later time at which the process ran.
    pub start_time: u64,
}

impl Process {
    /// This process, with the present as `start_time`. /proc has the real start, but the kernel builds the
    /// process's folder only for that read: it takes longer than a look at ten device nodes.
    pub fn this() -> Self {
        // Field 22 counts hundredths of a second on x86 and Arm (USER_HZ, asm-generic/param.h).
        Self { pid: std::process::id(), start_time: since_boot_ms() / 10 }
    }

    /// The process with this number now, unless it has ended and only waits for its parent.
    pub fn now(proc: &Path, pid: u32) -> Option<Self> {
        Self::from_stat(pid, &std::fs::read(stat_of(proc, pid)).ok()?)
    }

    fn from_stat(pid: u32, stat: &[u8]) -> Option<Self> {
        // The second field is the command's name in parentheses, which may hold anything at all.
        let after_name = stat.iter().rposition(|b| *b == b')').and_then(|at| stat.get(at + 1..))?;
        let mut fields = std::str::from_utf8(after_name).ok()?.split_ascii_whitespace();
        let state = fields.next()?;
        let start_time = fields.nth(18)?.parse().ok()?;
        (!matches!(state, "Z" | "X" | "x")).then_some(Self { pid, start_time })
    }

    /// Whether the process lives that had started by `start_time`; a process that started later only has its
    /// pid. True where proc does not answer.
    pub fn lives_since(self, proc: &Path) -> bool {
        self.may(proc, |now| now.start_time <= self.start_time)
    }

    /// Whether the process is alive as [`Process::is_alive`] decides, and true where proc does not answer.
    pub fn may_live(self, proc: &Path) -> bool {
        self.may(proc, |now| now == self)
    }

    fn may(self, proc: &Path, be: impl FnOnce(Self) -> bool) -> bool {
        // proc's error for a process that ended during the lookup.
        const ESRCH: i32 = 3;
        match std::fs::read(stat_of(proc, self.pid)) {
            Ok(stat) => Self::from_stat(self.pid, &stat).is_some_and(be),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound && error.raw_os_error() != Some(ESRCH),
        }
    }

    pub fn is_alive(self, proc: &Path) -> bool {
        Self::now(proc, self.pid) == Some(self)
    }
}

fn stat_of(proc: &Path, pid: u32) -> PathBuf {
    proc.join(pid.to_string()).join("stat")
}

/// The time since the boot in milliseconds, suspensions included: the clock of field 22, which no program sets. Not
/// /proc/uptime: in a container of LXD or Incus lxcfs shows the container's there.
pub fn since_boot_ms() -> u64 {
    // Since Linux 2.6.39 every kernel has this clock.
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The kernel's name for this boot (`/proc/sys/kernel/random/boot_id`).
pub fn boot_id(proc: &Path) -> std::io::Result<String> {
    let id = std::fs::read_to_string(proc.join("sys/kernel/random/boot_id"))?;
    Ok(id.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_differs_from_a_later_one_with_its_number() {
        let proc = Path::new("/proc");
        let own = Process::now(proc, std::process::id()).unwrap();
        assert!(own.is_alive(proc));
        let earlier = Process { start_time: own.start_time - 1, ..own };
        let later = Process { start_time: own.start_time + 1, ..own };
        assert!(!earlier.is_alive(proc) && !later.is_alive(proc) && !later.may_live(proc));
        assert!(!earlier.lives_since(proc) && later.lives_since(proc));
        let this = Process::this();
        assert!(this.pid == own.pid && this.start_time >= own.start_time && this.lives_since(proc));
        assert!(
            this.start_time < own.start_time + 100 * 3600,
            "ticks of a hundredth of a second: {this:?} {own:?}"
        );
        assert!(!Process { pid: u32::MAX, ..own }.is_alive(proc));
    }

    #[test]
    fn a_process_is_read_whatever_its_name_and_a_dead_one_does_not_live() {
        let proc = tempfile::tempdir().unwrap();
        let folder = proc.path().join("7");
        std::fs::create_dir(&folder).unwrap();
        let rest = "1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        for (stat, expected) in [
            (format!("7 (runc) S {rest}"), Some(4711)),
            (format!("7 (a) Z 1) R {rest}"), Some(4711)),
            (format!("7 (runc) Z {rest}"), None),
            ("7 (runc) S 1".to_owned(), None),
            ("nothing".to_owned(), None),
        ] {
            std::fs::write(folder.join("stat"), &stat).unwrap();
            let found = Process::now(proc.path(), 7).map(|process| process.start_time);
            assert_eq!(found, expected, "{stat}");
        }
    }
}
