//! `delete`: the record of what a container was given goes with it.

use allocation::record::Record;

use crate::container::{Container, creator_lives};
use crate::log::Log;
use crate::paths::Paths;
use crate::store::Store;

/// Removes the record where runc will remove the container. It stays for one that lives, which runc
/// refuses to delete without `--force`, and for one that is just being created. A record that stays by
/// mistake is cleared away by the next decision.
pub fn forget(container: &Container<'_>, force: bool, paths: &Paths, log: &Log<'_>) {
    let store = Store::of(paths);
    let Ok(Some(text)) = store.read(container.key()) else { return };
    let being_created = Record::parse(&text).is_ok_and(|record| creator_lives(&record, paths));
    if force || (!being_created && container.can_be_deleted(paths)) {
        store.remove(container.key()).unwrap_or_else(|error| log.warn(&error.to_string()));
    }
}
