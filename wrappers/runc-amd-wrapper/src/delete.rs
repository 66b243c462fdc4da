//! `delete`: the record of what a container was given goes with it.

use allocation::record::Record;

use crate::container::{Container, creator_lives};
use crate::log::Log;
use crate::paths::Paths;
use crate::store::Store;

/// Removes the record where runc will remove the container. It stays for one that lives, which runc
/// refuses to delete without `--force`, and for one that is just being created. A record that stays by
/// mistake is cleared away by the next decision. So is that of a container with leases, together with
/// these: until then it tells a container of the same id that there are leases which are not its own.
pub fn forget(container: &Container<'_>, force: bool, paths: &Paths, log: &Log<'_>) {
    let store = Store::of(paths);
    let Ok(Some(text)) = store.read(container.key()) else { return };
    let record = Record::parse(&text);
    let leased = |record: &Record| record.gpus.iter().any(|gpu| container.has_lease(gpu.render, paths));
    if record.as_ref().is_ok_and(leased) {
        return;
    }
    let being_created = record.is_ok_and(|record| creator_lives(&record, paths));
    if force || (!being_created && container.can_be_deleted(paths)) {
        store.remove(container.key()).unwrap_or_else(|error| log.warn(&error.to_string()));
    }
}
