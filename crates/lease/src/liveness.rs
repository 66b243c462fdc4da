//! Decides whether a lease's container can still use its GPU.
//!
//! The order of the questions matters. The creator comes first: it makes everything that the later questions
//! look at, and ends only afterwards. Then come the first process and the rest of the cgroup. The state
//! folder alone proves nothing: it appears after the create began and stays after the container has ended.
//!
//! What cannot be known counts as alive: a lease that is kept too long costs a GPU for a while, one that is
//! taken too early costs a user's work.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;

use allocation::lease::Lease;
use allocation::record::Creator;

use crate::alive::{self, Process};
use crate::cgroup;
use crate::paths::Paths;
use crate::runtime_state::{self, Cgroup, State};

/// Which process keeps a lease alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The process that made the container.
    Creator,
    /// The container's first process, as the runtime's state names it.
    Init,
    /// A process in the container's cgroup.
    Cgroup,
}

impl By {
    /// The name in `rocworker lease list`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Creator => "creator",
            Self::Init => "init",
            Self::Cgroup => "cgroup",
        }
    }
}

/// Looks at the processes of this boot.
#[derive(Debug)]
pub struct Judge<'p> {
    paths: &'p Paths,
    boot_id: String,
    /// Read once a lease needs it; `None` where it cannot be read.
    everyone: OnceCell<Option<Vec<(u32, String)>>>,
}

impl<'p> Judge<'p> {
    /// # Errors
    /// proc is not there, or not this machine's: then every process would seem to be dead.
    pub fn new(paths: &'p Paths) -> Result<Self, String> {
        match Process::now(&paths.proc, std::process::id()) {
            Some(_) => Self::of_another_machine(paths),
            None => Err(unknown(paths, &"is not asked, since proc does not show this process")),
        }
    }

    /// A judge for a proc that was laid out somewhere, in which this process does not occur.
    ///
    /// # Errors
    /// proc does not name its boot.
    pub fn of_another_machine(paths: &'p Paths) -> Result<Self, String> {
        let boot_id = alive::boot_id(&paths.proc)
            .map_err(|error| unknown(paths, &format!("cannot be read: {error}")))?;
        Ok(Self { paths, boot_id, everyone: OnceCell::new() })
    }

    pub fn creator_lives(&self, creator: &Creator) -> bool {
        creator.boot_id == self.boot_id
            && Process { pid: creator.pid, start_time: creator.start_time }.lives_since(&self.paths.proc)
    }

    pub fn is_of_this_boot(&self, creator: &Creator) -> bool {
        creator.boot_id == self.boot_id
    }

    /// What keeps the lease alive; `None`: nothing of its container is left.
    pub fn lease(&self, lease: &Lease) -> Option<By> {
        if lease.creator.boot_id != self.boot_id {
            return None;
        }
        if self.creator_lives(&lease.creator) {
            return Some(By::Creator);
        }
        let state = State::read(Path::new(&lease.root), &lease.id);
        if state.as_ref().is_some_and(|state| state.init.may_live(&self.paths.proc)) {
            // A container that lives without the GPU is a later one of that id, which went past the wrapper or asks
            // for nothing; runtimes make none in a cgroup that is not empty.
            let has_it = runtime_state::has_nodes(Path::new(&lease.root), &lease.id, [lease.gpu.render]);
            return has_it.then_some(By::Init);
        }
        let held = match state.map(|state| state.cgroup) {
            Some(Cgroup::Folders(folders)) => {
                cgroup::processes(&folders).map_or(true, |pids| !pids.is_empty())
            }
            Some(Cgroup::Below(path)) => self.is_anybody_in(&[path]),
            // The runtime left no state, because its create was killed or its delete has run.
            Some(Cgroup::Unknown) | None => lease.cgroup_ends().is_none_or(|ends| self.is_anybody_in(&ends)),
        };
        held.then_some(By::Cgroup)
    }

    fn is_anybody_in(&self, ends: &[String]) -> bool {
        let everyone = self.everyone.get_or_init(|| cgroup::all_processes(&self.paths.proc).ok());
        everyone.as_ref().is_none_or(|all| !cgroup::within(all, ends, &self.paths.proc).is_empty())
    }

    /// Drops the list of processes, so that the next question reads it anew.
    pub fn look_again(&mut self) {
        self.everyone.take();
    }
}

fn unknown(paths: &Paths, why: &dyn std::fmt::Display) -> String {
    let file = paths.proc.join("sys/kernel/random/boot_id");
    format!("the wrapper cannot see which containers live: {} {why}; mount proc there", file.display())
}

/// The first process of a container and all that are in its cgroup, by the runtime's state; `None` where that, or
/// the kernel, does not say.
pub fn processes(root: &str, id: &str, proc: &Path) -> Option<(Process, BTreeSet<u32>)> {
    let state = State::read(Path::new(root), id)?;
    let pids = match state.cgroup {
        Cgroup::Folders(folders) => cgroup::processes(&folders).ok()?,
        Cgroup::Below(path) => cgroup::within(&cgroup::all_processes(proc).ok()?, &[path], proc),
        Cgroup::Unknown => return None,
    };
    Some((state.init, pids))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease_file::lease_of_x;
    use std::fs;
    use std::path::PathBuf;

    /// A made-up proc: process 7 lives since tick 100, 8 has ended and waits for its parent.
    fn proc(place: &Path) -> PathBuf {
        let proc = place.join("proc");
        let own = std::process::id();
        for (pid, state, start) in [(7, "S", 100), (8, "Z", 100), (9, "S", 300), (own, "R", 1)] {
            let folder = proc.join(pid.to_string());
            fs::create_dir_all(&folder).unwrap();
            let fields = "0 ".repeat(18);
            fs::write(folder.join("stat"), format!("{pid} (x) {state} {fields}{start} 0\n")).unwrap();
            fs::write(folder.join("cgroup"), "0::/elsewhere\n").unwrap();
        }
        fs::create_dir_all(proc.join("sys/kernel/random")).unwrap();
        fs::write(proc.join("sys/kernel/random/boot_id"), "this\n").unwrap();
        proc
    }

    #[derive(Clone, Copy)]
    struct Case {
        boot: &'static str,
        creator: (u32, u64),
        /// The pid and start time of init in the runtime's state.
        init: Option<(u32, u64)>,
        /// Whether the state is crun's, which names the cgroup /c/x, and not runc's.
        crun: bool,
        /// The processes in the cgroup's folder; `None`: the folder does not exist.
        cgroup: Option<&'static str>,
        /// A process whose /proc/PID/cgroup names /c/x or a cgroup beneath it.
        within: Option<u32>,
        /// The GPU whose node the runtime's state names.
        node: &'static str,
    }

    #[test]
    fn a_lease_lives_by_its_creator_then_its_init_then_its_cgroup_and_by_nothing_else() {
        let base = Case {
            boot: "this",
            creator: (7, 99),
            init: None,
            crun: false,
            cgroup: None,
            within: None,
            node: "renderD128",
        };
        for (what, case, expected) in [
            ("the creator", Case { creator: (7, 100), ..base }, Some(By::Creator)),
            ("the creator of another boot", Case { boot: "that", creator: (7, 100), ..base }, None),
            ("init of another boot", Case { boot: "that", init: Some((7, 100)), ..base }, None),
            ("a later process with its number", base, None),
            ("an ended creator", Case { creator: (8, 100), ..base }, None),
            ("no such process", Case { creator: (6, 100), ..base }, None),
            ("init", Case { init: Some((7, 100)), ..base }, Some(By::Init)),
            ("a later container's init", Case { node: "renderD129", init: Some((7, 100)), ..base }, None),
            ("a later process with init's number", Case { init: Some((7, 99)), ..base }, None),
            ("an ended init", Case { init: Some((8, 100)), cgroup: Some(""), ..base }, None),
            ("both", Case { creator: (9, 300), init: Some((7, 100)), ..base }, Some(By::Creator)),
            ("a child of init", Case { init: Some((8, 100)), cgroup: Some("9\n"), ..base }, Some(By::Cgroup)),
            ("a state that is left", Case { init: Some((6, 100)), cgroup: None, ..base }, None),
            ("a killed create's init", Case { within: Some(9), ..base }, Some(By::Cgroup)),
            ("a killed create's ended init", Case { within: Some(8), ..base }, None),
            ("crun's init", Case { crun: true, init: Some((7, 100)), ..base }, Some(By::Init)),
            ("a later one", Case { crun: true, init: Some((7, 99)), ..base }, None),
            (
                "its child",
                Case { crun: true, init: Some((8, 100)), within: Some(9), ..base },
                Some(By::Cgroup),
            ),
            ("no child", Case { crun: true, init: Some((8, 100)), within: Some(8), ..base }, None),
        ] {
            let place = tempfile::tempdir().unwrap();
            let paths = Paths { proc: proc(place.path()), ..Paths::system() };
            let root = place.path().join("R");
            fs::create_dir_all(root.join("x")).unwrap();
            if let Some((pid, start)) = case.init.filter(|_| case.crun) {
                let state =
                    format!(r#"{{"pid":{pid},"process-start-time":{start},"cgroup-path":"/c/x","more":1}}"#);
                fs::write(root.join("x/status"), state).unwrap();
            } else if let Some((pid, start)) = case.init {
                let cgroup = place.path().join("cgroup");
                let state = format!(
                    r#"{{"init_process_pid":{pid},"init_process_start":{start},"cgroup_paths":{{"":"{}"}},"devices":[{{"path":"/dev/dri/{}"}}]}}"#,
                    cgroup.display(),
                    case.node
                );
                fs::write(root.join("x/state.json"), state).unwrap();
                if let Some(pids) = case.cgroup {
                    fs::create_dir_all(cgroup.join("beneath")).unwrap();
                    fs::write(cgroup.join("cgroup.procs"), "").unwrap();
                    fs::write(cgroup.join("beneath/cgroup.procs"), pids).unwrap();
                }
            }
            if let Some(pid) = case.within {
                let file = paths.proc.join(pid.to_string()).join("cgroup");
                fs::write(file, "9:devices:/\n0::/outer/c/x/beneath\n").unwrap();
            }
            let (pid, start_time) = case.creator;
            let creator = Creator { pid, start_time, boot_id: case.boot.to_owned() };
            let lease = Lease { cgroups_path: Some("/c/x".to_owned()), ..lease_of_x(&root, creator) };
            assert_eq!(Judge::new(&paths).unwrap().lease(&lease), expected, "{what}");
        }
    }

    #[test]
    fn what_cannot_be_known_counts_as_alive() {
        let place = tempfile::tempdir().unwrap();
        let paths = Paths { proc: proc(place.path()), ..Paths::system() };
        // A stat that cannot be read, as of a proc that hides it, is no sign of death.
        fs::remove_file(paths.proc.join("9/stat")).unwrap();
        fs::create_dir(paths.proc.join("9/stat")).unwrap();
        let judge = Judge::new(&paths).unwrap();
        assert!(judge.creator_lives(&Creator { pid: 9, start_time: 300, boot_id: "this".to_owned() }));
        fs::remove_dir_all(paths.proc.join(std::process::id().to_string())).unwrap();
        Judge::new(&paths).unwrap_err();
        fs::remove_dir_all(&paths.proc).unwrap();
        Judge::new(&paths).unwrap_err();
    }
}
