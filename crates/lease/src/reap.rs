//! Records of containers that are gone, cleared away by decisions.
//!
//! `delete` takes a container's record away. But not every engine calls it: containerd 2.1 does not after a create
//! that runc refused, and whoever kills everything calls nothing. Since nothing of the wrapper stays running, the
//! next decision does it, whatever it is about.

use std::cell::OnceCell;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use allocation::document::Document as _;
use allocation::gpu::Gpu;
use allocation::record::Record;

use crate::alive::{self, Process};
use crate::lease_file::Leases;
use crate::liveness::{By, Judge};
use crate::lock::Lock;
use crate::paths::Paths;
use crate::run_folder::RunFolder;
use crate::runtime_state;
use crate::store::Key;

/// How many records a decision checks that needs none of them: each costs about ten system calls. Chance
/// selects the records, so that each of hundreds has its turn.
const SOME: usize = 4;

/// The records of containers that live; those of the dead are removed. Nothing is done about one that is
/// `passed_over`, or that cannot be read: it says nothing of who lives.
///
/// # Errors
/// The folder cannot be read, or is not root's alone.
pub fn all(
    records: &RunFolder,
    lock: &Lock,
    paths: &Paths,
    passed_over: impl Fn(&Record) -> bool,
) -> Result<Vec<Record>, String> {
    Ok(living(records, lock, paths, &records.names()?, passed_over))
}

/// How many living containers, apart from `besides`, have each GPU. Removes the records of dead containers,
/// and skips those that cannot be read: where GPUs are shared, a wrong count only costs speed.
pub fn uses(records: &RunFolder, lock: &Lock, besides: Key<'_>, paths: &Paths) -> impl Fn(&Gpu) -> usize {
    let living = all(records, lock, paths, |record| besides.is_of(record)).unwrap_or_default();
    move |gpu| living.iter().flat_map(|record| &record.gpus).filter(|used| used.is(gpu)).count()
}

/// The records of containers that live, by what they do; nothing is removed, so that it needs no lock.
///
/// # Errors
/// Fails where [`all`] fails.
pub fn look(records: &RunFolder, judge: &Judge<'_>, paths: &Paths) -> Result<Vec<(Record, By)>, String> {
    let texts = records.entries()?.into_iter().filter_map(|(_, text)| text.ok());
    let read = texts.filter_map(|text| Record::parse(&text).ok());
    let of_this_boot = read.filter(|record| judge.is_of_this_boot(&record.creator));
    Ok(of_this_boot.filter_map(|record| alive_by(&record, paths).map(|by| (record, by))).collect())
}

/// Removes the records of the dead among a few of all. What goes wrong can wait for the next decision.
pub fn some(records: &RunFolder, lock: &Lock, paths: &Paths, passed_over: impl Fn(&Record) -> bool) {
    let mut names = records.names().unwrap_or_default();
    if names.len() > SOME {
        // A clock's last digits are as good as a die.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let first = usize::try_from(now.subsec_nanos()).unwrap_or_default() % names.len();
        names.rotate_left(first);
        names.truncate(SOME);
    }
    living(records, lock, paths, &names, passed_over);
}

fn living(
    records: &RunFolder,
    lock: &Lock,
    paths: &Paths,
    names: &[String],
    passed_over: impl Fn(&Record) -> bool,
) -> Vec<Record> {
    let mut living = Vec::new();
    let this_boot = OnceCell::new();
    for name in names {
        let Ok(Some(text)) = records.read(name) else { continue };
        let Ok(record) = Record::parse(&text) else { continue };
        if passed_over(&record) {
            continue;
        }
        let is_of_this_boot = |record: &Record| {
            let boot = this_boot.get_or_init(|| alive::boot_id(&paths.proc).ok());
            boot.as_ref().is_none_or(|boot| *boot == record.creator.boot_id)
        };
        if alive_by(&record, paths).is_some() && is_of_this_boot(&record) {
            living.push(record);
        } else if !has_a_lease(&record, lock, paths) {
            // A dead record was only in the way; one that stays is looked at again next time.
            let _ = records.remove(name);
        }
    }
    living
}

/// Whether a process in the container's cgroup keeps a lease alive. The record must then show that to a later
/// container of this id. Removes a dead lease, which is left from a time of exclusive sharing.
fn has_a_lease(record: &Record, lock: &Lock, paths: &Paths) -> bool {
    let leases = Leases::of(paths, Some(lock));
    let (root, id) = (Path::new(&record.root), &record.id);
    if !record.gpus.iter().any(|gpu| leases.is_holder(gpu.render, root, id)) {
        return false;
    }
    // If liveness cannot be judged, the lease counts as alive.
    let Ok(judge) = Judge::new(paths) else { return true };
    leases.remove_dead_of(lock, &judge, root, id).unwrap_or(true)
}

/// What keeps a recorded container alive: the process that made it, or the first process that the runtime
/// recorded for it. A later container of that id does not count.
pub fn alive_by(record: &Record, paths: &Paths) -> Option<By> {
    if creator_lives(record, paths) {
        return Some(By::Creator);
    }
    let (root, id) = (Path::new(&record.root), &record.id);
    let renders = record.gpus.iter().map(|gpu| gpu.render);
    let lives = runtime_state::init_of(root, id).is_some_and(|init| init.is_alive(&paths.proc))
        && runtime_state::has_nodes(root, id, renders);
    lives.then_some(By::Init)
}

/// Whether the create that wrote the record still runs.
pub fn creator_lives(record: &Record, paths: &Paths) -> bool {
    let creator = Process { pid: record.creator.pid, start_time: record.creator.start_time };
    creator.lives_since(&paths.proc)
        && alive::boot_id(&paths.proc).is_ok_and(|boot_id| boot_id == record.creator.boot_id)
}
