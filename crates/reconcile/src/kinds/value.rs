//! A value of the kernel in a file of sysfs. No kernel keeps one over a boot, and so it belongs to a boot.

use std::path::Path;

use root::Root;

use super::case::{Case, Planned, Unchanged};
use crate::model::{Change, Entry, Found, Managed, Repairs, State, Target, Uptime, Value, Verb};
use crate::receipt::{Failure, Journal};

/// A sysfs attribute is at most one page (fs/sysfs/file.c).
const LIMIT: usize = 4096;

fn state(found: &Found) -> State {
    match found {
        Found::File { bytes, .. } => {
            State::Value { text: String::from_utf8_lossy(bytes).trim().trim_matches('\0').to_owned() }
        }
        Found::Else(state) => state.clone(),
    }
}

pub(super) fn plan(case: &Case<'_>, value: &Value) -> Planned {
    let from = state(case.found);
    let State::Value { text } = &from else {
        return Err(Unchanged::Blocked(format!("{from} is there, no value of the kernel")));
    };
    let boot = Uptime::boot(case.seen.root);
    let held = case.held.filter(|entry| is_of(entry, boot.as_ref()));
    let to = State::Value { text: value.text.clone() };
    if *text == value.text {
        return Err(match held {
            // The value of before is there again: nothing is managed.
            Some(entry) if entry.before == to => Unchanged::Gone,
            _ => Unchanged::InSync,
        });
    }
    let target = Target::Value(value.clone());
    match held {
        Some(entry) if entry.before == to => Ok(Change::back(entry, Verb::Restore, (from, to), target)),
        held => {
            let before = || State::Value { text: value.before.clone() };
            let before = held.map_or_else(before, |entry| entry.before.clone());
            let managed = Managed::Value { text: value.text.clone(), is_requested: value.is_requested, boot };
            let entry = Entry::of(case.action, before, managed, Repairs::default());
            Ok(Change::forward(case.action, Verb::Set, (from, to), target, entry))
        }
    }
}

/// Whether an entry's value was written in this boot.
fn is_of(entry: &Entry, boot: Option<&String>) -> bool {
    matches!(&entry.managed, Managed::Value { boot: then, .. } if then.as_ref() == boot)
}

pub(super) fn apply(
    journal: &mut Journal<'_>,
    change: &Change,
    value: &Value,
    now: u64,
) -> Result<(), Failure> {
    let root = journal.root;
    let path = change.path.path().ok_or("a value is in a file")?;
    let until_now = journal.receipt.clone();
    journal.begin(change, now)?;
    if let Err(error) = root.write_value(path, &value.text) {
        // The kernel may have switched before it failed.
        match read(root, path).is_ok_and(|text| text == value.text) {
            true => journal.end(change, now),
            false => journal.roll_back(until_now, change),
        }
        let meaning = value.meanings.iter().find(|(errno, _)| error.errno() == Some(*errno));
        return Err(Failure::Change(match meaning {
            Some((_, meaning)) => format!("{error}: {meaning}"),
            None if change.is_revert() && error.errno() == Some(nix::libc::EBUSY) => {
                format!("{error}: a process uses the device; end it (fuser -v /dev/kfd), then undo again")
            }
            None if change.is_revert() => format!("{error}; a restart of the machine sets it back, too"),
            None => error.to_string(),
        }));
    }
    // A request shows in the file only once it has taken effect.
    if !value.is_requested {
        let text =
            read(root, path).map_err(|error| format!("{} was written, and then: {error}", value.text))?;
        if text != value.text {
            journal.roll_back(until_now, change);
            return Err(Failure::Change(format!(
                "the kernel took {} and the file says {text}: another program may have written it",
                value.text
            )));
        }
    }
    journal.end(change, now);
    Ok(())
}

fn read(root: &Root, path: &Path) -> Result<String, root::Error> {
    Ok(root.read_text(path, LIMIT)?.trim().to_owned())
}

pub(super) fn revert(root: &Root, entry: &Entry, found: &Found) -> Planned {
    let (from, boot) = (state(found), Uptime::boot(root));
    let Managed::Value { text, is_requested, .. } = &entry.managed else { return Err(Unchanged::Gone) };
    let is_there = from == State::Value { text: text.clone() };
    if !is_of(entry, boot.as_ref()) {
        return Err(Unchanged::Gone);
    }
    if !is_there && *is_requested {
        return Err(Unchanged::GoneBut(format!(
            "it is {from}, and {text} was requested: that comes when the driver is loaded again, unless the machine is \
             restarted before"
        )));
    }
    // The kernel or another program has set it since.
    if !is_there {
        return Err(Unchanged::Gone);
    }
    let State::Value { text: before } = &entry.before else { return Err(Unchanged::Gone) };
    // The kernel had changed the value, and the write has restored it.
    if before == text {
        return Err(Unchanged::Gone);
    }
    if *is_requested {
        return Err(Unchanged::GoneBut(format!(
            "it stays {text} until the machine is restarted, which sets it to {before} again"
        )));
    }
    let value = Value { text: before.clone(), before: text.clone(), is_requested: false, meanings: &[] };
    Ok(Change::back(entry, Verb::Restore, (from, entry.before.clone()), Target::Value(value)))
}

#[cfg(test)]
mod tests {
    use root::Attributes;

    use super::*;
    use crate::kinds::Observed;
    use crate::model::{Action, Kind, Stage};

    const PATH: &str = "/sys/bus/pci/devices/0000:05:00.0/current_compute_partition";

    #[test]
    fn a_value_is_of_its_boot_and_the_one_of_before_ends_the_entry() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let put = |path: &str, text: &str| {
            root.write(path, text.as_bytes(), Attributes { mode: 0o644, owner: None }).unwrap();
        };
        put("/proc/sys/kernel/random/boot_id", "second");
        let seen = Observed::new(&root);
        let value = |text: &str| {
            let (text, before) = (text.to_owned(), "SPX".to_owned());
            Value { text, before, is_requested: false, meanings: &[] }
        };
        let action = |text| Action::new(Stage::Shape, PATH, Kind::Value(value(text)), "");
        let entry = |boot: &str| {
            let managed =
                Managed::Value { text: "CPX".to_owned(), is_requested: false, boot: Some(boot.to_owned()) };
            Entry::of(&action("CPX"), State::Value { text: "SPX".to_owned() }, managed, Repairs::default())
        };
        let (first, second) = (entry("first"), entry("second"));
        for (now, wanted, held, planned, back) in [
            ("SPX\n", "CPX", None, "set CPX", "gone"),
            ("SPX\n", "CPX", Some(&first), "set CPX", "gone"),
            ("CPX\n", "CPX", Some(&second), "in sync", "restore SPX"),
            ("CPX\n", "CPX", Some(&first), "in sync", "gone"),
            ("CPX\n", "SPX", Some(&second), "restore SPX", "restore SPX"),
            ("SPX\n", "SPX", Some(&second), "gone", "gone"),
            ("DPX\n", "CPX", Some(&second), "set CPX", "gone"),
            // A load of the driver has reset the mode, which is restored.
            ("DPX\n", "SPX", None, "set SPX", "gone"),
        ] {
            put(PATH, now);
            let found = crate::kinds::file::observe(&root, Path::new(PATH)).unwrap();
            let action = action(wanted);
            let case = Case { seen: &seen, action: &action, found: &found, held, now: 0 };
            let says = |planned: Planned| match planned {
                Ok(Change { change: Verb::Restore, to, .. }) => format!("restore {to}"),
                Ok(Change { to, .. }) => format!("set {to}"),
                Err(Unchanged::InSync) => "in sync".to_owned(),
                Err(Unchanged::Gone) => "gone".to_owned(),
                Err(other) => format!("{other:?}"),
            };
            assert_eq!(says(plan(&case, &value(wanted))), planned, "{now:?} {wanted} {held:?}");
            let held = held.unwrap_or(&first);
            assert_eq!(says(revert(&root, held, &found)), back, "{now:?} {held:?}");
        }
    }
}
