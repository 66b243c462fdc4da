//! The files that a charm writes on a machine beside those of the receipt: the configuration, and copies of programs
//! that an earlier version of the charm wrote.

use std::path::Path;

use anyhow::ensure;
use config::{self, Config};
use juju::charm::{Charm, around, is_among};
use juju::options::WrongConfig;
use reconcile::naming;
use root::{Attributes, Root};

use crate::desired::own_unit;
use crate::own_program::LOCAL;

const LOCAL_EXPORTER: &str = "/usr/local/bin/rocworker-exporter";

/// The limit for a configuration's bytes.
const TEXT_LIMIT: usize = 64 << 10;
/// The limit for a program's bytes: more than any build has.
const PROGRAM_LIMIT: usize = 512 << 20;

/// Writes the configuration, unless a person has.
pub(super) fn put_configuration(root: &Root, charm: &mut Charm, config: &Config) -> anyhow::Result<()> {
    let new = config.text().as_bytes();
    let present = read_if_present(root, config::PATH, TEXT_LIMIT)?;
    let is_recorded = |bytes: &[u8]| is_among(&charm.configuration, bytes);
    let other = present.as_deref().filter(|bytes| *bytes != new);
    if other.is_some_and(|bytes| !is_recorded(bytes)) {
        let path = root.shown(config::PATH);
        return Err(WrongConfig(format!(
            "{} was written by hand and is left as it is: move it away, and the charm writes its own of its options",
            path.display()
        ))
        .into());
    }
    if present.as_deref() == Some(new) && is_recorded(new) {
        return Ok(());
    }
    let read = Config::parse(config.path(), config.text())?;
    ensure!(read == *config, "{} would mean something else than the options", config.path().display());
    charm.configuration = around(other, new);
    charm.write(root)?;
    root.write(config::PATH, new, Attributes { mode: 0o644, owner: None })?;
    Ok(())
}

/// Removes the configuration while it is as the charm wrote it.
pub(super) fn remove_configuration(root: &Root, charm: &Charm) -> Result<(), root::Error> {
    remove(root, config::PATH, TEXT_LIMIT, &charm.configuration)
}

/// Removes the programs that a charm without a package copied, once no unit of rocworker's names them: on PATH they
/// come before the package's.
pub(super) fn remove_copies(root: &Root, charm: &mut Charm) -> Result<(), root::Error> {
    let before = charm.clone();
    let units = [&own_unit::BOOT, &own_unit::PARTITION, &own_unit::DAEMON, &own_unit::EXPORTER]
        .map(|unit| unit.file.into());
    for (path, written) in [(LOCAL, &mut charm.program), (LOCAL_EXPORTER, &mut charm.exporter)] {
        if !written.is_empty() && naming(root, &units, Path::new(path)).is_empty() {
            remove(root, path, PROGRAM_LIMIT, written)?;
            written.clear();
        }
    }
    if *charm == before { Ok(()) } else { charm.write(root) }
}

fn remove(root: &Root, path: &str, limit: usize, written: &[String]) -> Result<(), root::Error> {
    if written.is_empty() {
        return Ok(());
    }
    if read_if_present(root, path, limit)?.is_some_and(|bytes| is_among(written, &bytes)) {
        root.remove(path)?;
    }
    root.sweep(path);
    Ok(())
}

fn read_if_present(root: &Root, path: &str, limit: usize) -> Result<Option<Vec<u8>>, root::Error> {
    match root.read(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]
mod tests {
    use std::fs;

    use super::*;

    fn empty() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        (dir, root)
    }

    fn put(root: &Root, charm: &mut Charm, text: &str) -> anyhow::Result<()> {
        put_configuration(root, charm, &Config::parse(&root.shown(config::PATH), text).unwrap())
    }

    #[test]
    fn a_configuration_is_the_charms_until_somebody_edits_it() {
        let (dir, root) = empty();
        let path = dir.path().join("etc/rocworker/config.yaml");
        let mut charm = Charm::default();
        for text in ["restart: drain\n", "restart: now\n", "restart: now\n"] {
            put(&root, &mut charm, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, "restart: never\n").unwrap();
        let error = put(&root, &mut charm, "restart: drain\n").unwrap_err().to_string();
        assert!(error.contains("was written by hand and is left as it is: move it away"), "{error}");
        remove_configuration(&root, &charm).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "restart: never\n");
        fs::remove_file(&path).unwrap();
        put(&root, &mut charm, "restart: drain\n").unwrap();
        remove_configuration(&root, &charm).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_configuration_whose_writing_was_killed_is_the_charms_before_and_after() {
        let (dir, root) = empty();
        let path = dir.path().join("etc/rocworker/config.yaml");
        let mut charm = Charm::default();
        put(&root, &mut charm, "tag: a\n").unwrap();
        // Killed once the state was written, twice.
        for next in ["tag: b\n", "tag: c\n"] {
            charm.configuration = around(Some(b"tag: a\n"), next.as_bytes());
        }
        charm.write(&root).unwrap();
        let mut charm = Charm::read(&root).unwrap();
        put(&root, &mut charm, "tag: d\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "tag: d\n");
    }
}
