//! The files that a charm puts on a machine beside those of the receipt: the configuration, and the program itself.

use std::path::Path;

use anyhow::ensure;
use config::{self, Config};
use juju::charm::{Charm, around, is_among};
use juju::options::WrongConfig;
use root::{Attributes, Kind, Root};

use crate::desired::own_unit;
use crate::own_program::{self, LOCAL, PACKAGED};

/// The path of the charm's copy of the program. It is outside the charm's folder, which an upgrade replaces: the unit
/// that runs at each start names it, and it is on everybody's PATH.
pub(super) const PROGRAM: &str = LOCAL;
const EXPORTER: &str = "/usr/local/bin/rocworker-exporter";
const PACKAGED_EXPORTER: &str = "/usr/bin/rocworker-exporter";

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

/// Copies the program that runs to where it stays, unless a package has put a program on this machine, or a person has
/// put one there. `running`: the program's path on the machine that it runs on. Returns whether a process of an earlier
/// build may still run. It returns true until [`taken_over`] is called, also after a kill.
pub(super) fn put_program(root: &Root, charm: &mut Charm, running: &Path) -> Result<bool, root::Error> {
    put(root, charm, running, [PACKAGED, PROGRAM], |charm| &mut charm.program)
}

/// Copies the exporter as [`put_program`] copies the program, if the charm has the exporter beside the program that
/// runs.
pub(super) fn put_exporter(root: &Root, charm: &mut Charm, running: &Path) -> Result<bool, root::Error> {
    let beside = running.with_file_name(own_program::EXPORTER);
    if !Root::open(Path::new("/"))?.exists(&beside) {
        return Ok(false);
    }
    put(root, charm, &beside, [PACKAGED_EXPORTER, EXPORTER], |charm| &mut charm.exporter)
}

/// Copies a program. `places`: the package's path, and the path of the copy. `written`: the copies that the charm
/// recorded.
fn put(
    root: &Root,
    charm: &mut Charm,
    source: &Path,
    places: [&str; 2],
    written: fn(&mut Charm) -> &mut Vec<String>,
) -> Result<bool, root::Error> {
    let [packaged, place] = places;
    if is_there(root, packaged) || places.map(Path::new).contains(&source) {
        return Ok(false);
    }
    let present = read_if_present(root, place, PROGRAM_LIMIT)?;
    if present.as_deref().is_some_and(|bytes| !is_among(written(charm), bytes)) {
        return Ok(false);
    }
    let new = Root::open(Path::new("/"))?.read_trusted(source, PROGRAM_LIMIT)?;
    if present.as_ref() != Some(&new) {
        *written(charm) = around(present.as_deref(), &new);
        charm.write(root)?;
        root.write(place, &new, Attributes { mode: 0o755, owner: None })?;
    }
    Ok(written(charm).len() > 1)
}

/// Records that the programs there are the ones that run, or will at their next start.
pub(super) fn taken_over(root: &Root, charm: &mut Charm) -> Result<(), root::Error> {
    for written in [&mut charm.program, &mut charm.exporter] {
        written.drain(..written.len().saturating_sub(1));
    }
    charm.write(root)
}

/// Removes each of the charm's programs once a package has brought its own and no unit names the charm's: on PATH the
/// charm's would come first, and no upgrade of the package would reach it.
pub(super) fn yield_to_package(root: &Root, charm: &mut Charm) -> Result<(), root::Error> {
    let units = [own_unit::BOOT.file, own_unit::DAEMON.file];
    remove_if_packaged(root, charm, [PACKAGED, PROGRAM], &units, |charm| &mut charm.program)?;
    let units = [own_unit::EXPORTER.file];
    remove_if_packaged(root, charm, [PACKAGED_EXPORTER, EXPORTER], &units, |charm| &mut charm.exporter)
}

fn remove_if_packaged(
    root: &Root,
    charm: &mut Charm,
    [packaged, place]: [&str; 2],
    units: &[&str],
    written: fn(&mut Charm) -> &mut Vec<String>,
) -> Result<(), root::Error> {
    if !is_there(root, packaged) || written(charm).is_empty() {
        return Ok(());
    }
    for unit in units {
        // Another program may keep writing it. Without its program such a unit would start no more, and say nothing.
        let text = read_if_present(root, unit, TEXT_LIMIT)?.unwrap_or_default();
        if text.windows(place.len()).any(|part| part == place.as_bytes()) {
            return Ok(());
        }
    }
    if read_if_present(root, place, PROGRAM_LIMIT)?.is_some_and(|bytes| is_among(written(charm), &bytes)) {
        root.remove(place)?;
    }
    written(charm).clear();
    charm.write(root)
}

fn is_there(root: &Root, program: &str) -> bool {
    root.lstat(program).is_ok_and(|meta| meta.kind == Kind::Regular)
}

/// Removes the configuration, the program and the exporter, each only while it is as the charm wrote it. `is_needed`:
/// whether the program has something to end yet.
pub(super) fn remove(root: &Root, charm: &Charm, is_needed: bool) -> Result<(), root::Error> {
    let files = [
        (config::PATH, TEXT_LIMIT, &charm.configuration, false),
        (PROGRAM, PROGRAM_LIMIT, &charm.program, is_needed),
        (EXPORTER, PROGRAM_LIMIT, &charm.exporter, false),
    ];
    for (path, limit, written, stays) in files {
        if stays || written.is_empty() {
            continue;
        }
        if read_if_present(root, path, limit)?.is_some_and(|bytes| is_among(written, &bytes)) {
            root.remove(path)?;
        }
        root.sweep(path);
    }
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
        remove(&root, &charm, false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "restart: never\n");
        fs::remove_file(&path).unwrap();
        put(&root, &mut charm, "restart: drain\n").unwrap();
        remove(&root, &charm, false).unwrap();
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

    #[test]
    fn a_program_that_somebody_else_has_put_there_stays_and_a_packages_is_used() {
        let (dir, root) = empty();
        let place = dir.path().join("usr/local/bin/rocworker");
        let running = dir.path().join("charm/bin/rocworker");
        fs::create_dir_all(running.parent().unwrap()).unwrap();
        fs::write(&running, "first").unwrap();
        let mut charm = Charm::default();
        put_program(&root, &mut charm, &running).unwrap();
        fs::write(&running, "second").unwrap();
        put_program(&root, &mut charm, &running).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "second");

        fs::write(&place, "by hand").unwrap();
        put_program(&root, &mut charm, &running).unwrap();
        remove(&root, &charm, false).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "by hand");
        put_program(&root, &mut Charm::default(), &running).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "by hand");

        fs::remove_file(&place).unwrap();
        fs::create_dir_all(dir.path().join("usr/bin")).unwrap();
        fs::write(dir.path().join("usr/bin/rocworker"), "of the package").unwrap();
        put_program(&root, &mut charm, &running).unwrap();
        assert!(!place.exists());
    }

    #[test]
    fn a_program_goes_when_a_package_brings_its_own() {
        let (dir, root) = empty();
        let (running, place) = (dir.path().join("running"), dir.path().join("usr/local/bin/rocworker"));
        fs::write(&running, "program").unwrap();
        let mut charm = Charm::default();
        put_program(&root, &mut charm, &running).unwrap();
        yield_to_package(&root, &mut charm).unwrap();
        assert!(place.exists());
        fs::create_dir_all(dir.path().join("usr/bin")).unwrap();
        fs::write(dir.path().join("usr/bin/rocworker"), "of the package").unwrap();
        let unit = dir.path().join("etc/systemd/system/rocworker.service");
        fs::create_dir_all(unit.parent().unwrap()).unwrap();
        for (by, stays) in [(PROGRAM, true), (PACKAGED, false)] {
            fs::write(&unit, format!("[Service]\nExecStart={by} serve\n")).unwrap();
            yield_to_package(&root, &mut charm).unwrap();
            assert_eq!(place.exists(), stays, "{by}");
        }
        assert!(!place.exists() && Charm::read(&root).unwrap().program.is_empty());
        // Another program has written it since: it stays.
        fs::write(&place, "program").unwrap();
        yield_to_package(&root, &mut charm).unwrap();
        assert!(place.exists());
    }

    #[test]
    fn a_program_in_anothers_place_is_told_of_until_it_runs() {
        let (dir, root) = empty();
        let running = dir.path().join("rocworker");
        let mut charm = Charm::default();
        for (build, is_another) in [("first", false), ("second", true), ("second", true)] {
            fs::write(&running, build).unwrap();
            assert_eq!(put_program(&root, &mut charm, &running).unwrap(), is_another, "{build}");
            // A hook that was killed leaves what is on disk alone.
            charm = Charm::read(&root).unwrap();
        }
        taken_over(&root, &mut charm).unwrap();
        assert!(!put_program(&root, &mut Charm::read(&root).unwrap(), &running).unwrap());
        remove(&root, &charm, false).unwrap();
        assert!(!dir.path().join("usr/local/bin/rocworker").exists());
    }

    #[test]
    fn the_exporter_beside_the_program_comes_with_it_yields_to_a_package_and_goes_with_the_charm() {
        let (dir, root) = empty();
        let (running, beside) = (dir.path().join("rocworker"), dir.path().join("rocworker-exporter"));
        let place = dir.path().join("usr/local/bin/rocworker-exporter");
        fs::write(&running, "program").unwrap();
        let mut charm = Charm::default();
        assert!(!put_exporter(&root, &mut charm, &running).unwrap() && !place.exists(), "the charm has none");
        for (build, is_another) in [("first", false), ("second", true)] {
            fs::write(&beside, build).unwrap();
            assert_eq!(put_exporter(&root, &mut charm, &running).unwrap(), is_another, "{build}");
            assert_eq!(fs::read_to_string(&place).unwrap(), build);
        }
        remove(&root, &Charm::read(&root).unwrap(), true).unwrap();
        assert!(!place.exists());
        put_exporter(&root, &mut charm, &running).unwrap();
        fs::create_dir_all(dir.path().join("usr/bin")).unwrap();
        fs::write(dir.path().join("usr/bin/rocworker-exporter"), "of the package").unwrap();
        yield_to_package(&root, &mut charm).unwrap();
        assert!(!place.exists() && Charm::read(&root).unwrap().exporter.is_empty());
    }

    #[test]
    fn a_program_that_has_something_to_end_stays() {
        let (dir, root) = empty();
        let running = dir.path().join("rocworker");
        fs::write(&running, "program").unwrap();
        let mut charm = Charm::default();
        put_program(&root, &mut charm, &running).unwrap();
        remove(&root, &charm, true).unwrap();
        assert!(dir.path().join("usr/local/bin/rocworker").exists());
        remove(&root, &charm, false).unwrap();
        assert!(!dir.path().join("usr/local/bin/rocworker").exists());
    }
}
