//! One hook at a time: each reads what the charm remembers, changes and writes it, and a machine may have several units.

use std::time::Duration;

use reconcile::FOLDER;
use root::{Error, Lock, Root};

/// Taken before the lock that an apply or an undo takes, and never while that one is held: no two wait for each other.
const PATH: &str = "/var/lib/rocworker/charm.lock";

/// As long as an apply waits for another.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Held while `charm.json` is read, changed and written, with all that is done in between.
#[derive(Debug)]
pub(super) struct Turn {
    _lock: Lock,
}

impl Turn {
    /// Waits so long for whoever has it; `waits` is told so.
    pub(super) fn take(
        root: &Root,
        patience: Duration,
        waits: &mut dyn FnMut(String),
    ) -> Result<Self, Error> {
        root.believe_folder(FOLDER)?;
        match root.lock(PATH, Duration::ZERO) {
            Err(Error::Locked { path, .. }) => waits(format!(
                "waiting up to {} s for another hook of this machine, which has {}",
                patience.as_secs(),
                path.display()
            )),
            other => return Ok(Self { _lock: other? }),
        }
        Ok(Self { _lock: root.lock(PATH, patience)? })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_too_long_says_for_what() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut told = Vec::new();
        let held = Turn::take(&root, Duration::ZERO, &mut |text| told.push(text)).unwrap();
        assert!(told.is_empty(), "{told:?}");
        let error = Turn::take(&root, Duration::ZERO, &mut |text| told.push(text)).unwrap_err().to_string();
        let path = root.shown(PATH).display().to_string();
        let expected = format!("waiting up to 0 s for another hook of this machine, which has {path}");
        assert_eq!(told, [expected]);
        assert!(error.starts_with(&format!("{path} is locked: ")) && error.contains("fuser"), "{error}");
        drop(held);
        Turn::take(&root, Duration::ZERO, &mut |text| told.push(text)).unwrap();
        assert_eq!(told.len(), 1);
    }
}
