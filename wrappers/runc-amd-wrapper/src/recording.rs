//! What is put down of a grant: who made the container, and what it was given.

use std::path::Path;

use allocation::bundle::ProcessEdits;
use allocation::policy::Sharing;
use allocation::record::{self, Creator, Record, RecordedGpu};
use allocation::selection::Chosen;

use crate::alive::{self, Process};
use crate::lock::Lock;
use crate::store::Key;
use crate::this_boot;

/// This process, which runc will be.
///
/// # Errors
/// proc does not say so: the sentence names what is missing.
pub(crate) fn creator(sharing: Sharing, lock: &Lock, proc: &Path) -> Result<Creator, String> {
    let (creator, boot_id) = match sharing {
        Sharing::Shared => (Process::this(), this_boot::id(lock, proc)),
        // Who lives decides about the next container's GPUs: proc must be this process's own.
        Sharing::Exclusive => {
            let this = Process::now(proc, std::process::id());
            let this = this.ok_or_else(|| unrecorded("/proc does not show this process: mount it"))?;
            (this, alive::boot_id(proc))
        }
    };
    let boot_id = boot_id
        .map_err(|error| unrecorded(&format!("/proc/sys/kernel/random/boot_id cannot be read: {error}")))?;
    Ok(Creator { pid: creator.pid, start_time: creator.start_time, boot_id })
}

fn unrecorded(what: &str) -> String {
    format!("what the container is given cannot be recorded: {what}")
}

/// What a container is given, as it is kept.
///
/// # Errors
/// It cannot be put down: the sentence says why.
pub(crate) fn record(
    key: Key<'_>,
    creator: Creator,
    chosen: &[Chosen<'_>],
    process: ProcessEdits<'_>,
) -> Result<String, String> {
    let root = key.root.to_str().ok_or_else(|| unrecorded("runc's --root is not UTF-8"))?;
    let record = Record {
        schema_version: record::version_of(&process),
        id: key.id.to_owned(),
        root: root.to_owned(),
        gpus: chosen.iter().map(|chosen| RecordedGpu::from(chosen.gpu)).collect(),
        env: process.env.iter().map(|entry| (*entry).to_owned()).collect(),
        env_unless_set: process.env_unless_set.map(str::to_owned),
        memlock_bytes: process.memlock_bytes,
        gids: process.gids,
        creator,
    };
    Ok(record.to_json())
}
