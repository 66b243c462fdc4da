//! Changes that cannot be made.

use std::fs;

use reconcile::{Plan, Restarts, Transaction};

use crate::files::effects::{FILE, Host, restart, wanted};
use crate::machine::{NOW, desired, owned};

#[test]
fn a_change_that_fails_owes_nothing() {
    let host = Host::new();
    let root = host.machine.root();
    let mut work = Transaction::begin(&root, &mut |_| {}).unwrap();
    let wanted = wanted("1", &[restart(None)]);
    let plan = Plan::make(&root, &wanted, work.receipt(), None, false, NOW);
    // Somebody puts a folder there after the look.
    fs::create_dir(host.machine.path(FILE)).unwrap();
    let carried = work.execute(&plan, NOW, &mut |_| {}).unwrap();
    assert_eq!(carried.failed.len(), 1, "{carried:?}");
    assert!(host.settle(&mut work, Restarts::Now).is_empty());
    assert_eq!(host.calls(), [""; 0]);
}

/// Root may write anywhere, so that only a name that is too long for a temporary file beside it makes a write fail at
/// the last moment.
#[test]
fn a_write_that_fails_leaves_no_entry_and_owes_nothing() {
    let host = Host::new();
    let path = format!("/etc/{}", "n".repeat(250));
    let wanted = desired([owned(&path, "1").with(restart(None))]);
    let ran = host.machine.apply(&wanted);
    assert_eq!(ran.carried.failed.len(), 1, "{ran:?}");
    assert!(ran.carried.failed[0].text.contains("File name too long"), "{ran:?}");
    assert!(host.machine.is_bare());
    assert!(host.apply(&wanted, Restarts::Now).is_empty());
    assert_eq!(host.calls(), [""; 0]);
}
