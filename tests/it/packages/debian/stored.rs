//! What versions have stored is read by this one, and what a newer one may store is refused with a sentence.

use std::fs;
use std::path::{Path, PathBuf};

use allocation::document::Document as _;
use allocation::{lease, policy, record};
use reconcile::Store;
use rocworker::memory::{self, Memory};
use root::Root;

/// A stored format: its files' name, the newest version that this program reads, and how it reads one. The answer is what
/// it would store itself, where that is this very text.
struct Format {
    name: &'static str,
    newest: u32,
    read: fn(&str) -> Result<Option<String>, String>,
}

fn formats() -> Vec<Format> {
    let [receipt, history] = reconcile::FORMATS.map(|(_, newest)| newest);
    vec![
        Format { name: "receipt", newest: receipt, read: read_receipt },
        Format { name: "history", newest: history, read: read_history },
        Format { name: "memory", newest: memory::FORMAT.1, read: read_memory },
        Format { name: "policy", newest: policy::SCHEMA_VERSION, read: read_policy },
        Format { name: "lease", newest: lease::Lease::SCHEMA_VERSION, read: read_lease },
        Format { name: "record", newest: record::Record::SCHEMA_VERSION, read: read_record },
    ]
}

fn read_lease(text: &str) -> Result<Option<String>, String> {
    let lease = lease::Lease::parse(text).map_err(|error| error.to_string())?;
    Ok(Some(lease.to_json().unwrap()))
}

fn read_record(text: &str) -> Result<Option<String>, String> {
    let record = record::Record::parse(text).map_err(|error| error.to_string())?;
    Ok(Some(record.to_json().unwrap()))
}

fn read_policy(text: &str) -> Result<Option<String>, String> {
    let policy = policy::Policy::parse(text).map_err(|error| error.to_string())?;
    assert_eq!(policy.gpus.unwrap().len(), 1);
    Ok(None)
}

/// A machine on which this stands at a path, and nothing else.
fn machine(path: &str, text: &str) -> (tempfile::TempDir, Root, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join(path.trim_start_matches('/'));
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, text).unwrap();
    let root = Root::open(dir.path()).unwrap();
    (dir, root, place)
}

fn read_receipt(text: &str) -> Result<Option<String>, String> {
    let (_dir, root, place) = machine(reconcile::FORMATS[0].0, text);
    let receipt = Store::new(&root).receipt();
    assert_eq!(fs::read_to_string(place).unwrap(), text, "reading changes nothing");
    let receipt = receipt.map_err(|error| error.to_string())?;
    assert!(receipt.entry(Path::new("/etc/cdi/amd.json")).is_some());
    Ok(Some(serde_json::to_string_pretty(&receipt).unwrap() + "\n"))
}

fn read_history(text: &str) -> Result<Option<String>, String> {
    let (_dir, root, _) = machine(reconcile::FORMATS[1].0, text);
    let events = reconcile::history::read(&root).map_err(|error| error.to_string())?;
    assert!(events.iter().any(|event| event.command == "apply"));
    Ok(None)
}

fn read_memory(text: &str) -> Result<Option<String>, String> {
    let (_dir, root, place) = machine(memory::FORMAT.0, text);
    let memory = Memory::read(&root).map_err(|error| error.to_string())?;
    memory.write(&root).unwrap();
    Ok(Some(fs::read_to_string(place).unwrap()))
}

fn stored(name: &str, version: u32) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/packages/debian/stored");
    let file = if name == "receipt" {
        format!("{name}-{version}-cdi.json")
    } else {
        format!("{name}-{version}.json")
    };
    fs::read_to_string(folder.join(file)).ok()
}

#[test]
fn every_version_that_was_ever_stored_is_read_and_written_again_as_it_was() {
    for Format { name, newest, read } in formats() {
        for version in 1..=newest {
            let text = stored(name, version).unwrap_or_else(|| {
                panic!("tests/it/packages/debian/stored has no {name} of version {version}: add one")
            });
            let again = read(&text).unwrap_or_else(|error| panic!("{name} {version}: {error}"));
            assert!(again.is_none_or(|again| again == text), "{name} {version}");
        }
    }
}

#[test]
fn a_newer_version_is_refused_with_its_number() {
    for Format { name, newest, read } in formats() {
        let text = stored(name, newest).unwrap();
        let number = newest + 1;
        let newer = match name {
            "lease" | "record" => text.replacen(
                &format!("\"schema_version\":{newest}"),
                &format!("\"schema_version\":{number},\"wonders\":[]"),
                1,
            ),
            _ => text.replacen(
                &format!("\"schema_version\": {newest}"),
                &format!("\"schema_version\": {number}"),
                1,
            ),
        };
        assert_ne!(newer, text, "{name}");
        let error = read(&newer).unwrap_err();
        assert!(error.contains(&format!("schema_version {number}")), "{name}: {error}");
    }
}

/// What preinst asks of, before the program of this version is there to be asked.
#[test]
fn the_maintainer_scripts_are_told_of_what_outlives_a_start() {
    let formats = rocworker::package::formats();
    let (paths, versions): (Vec<_>, Vec<_>) = formats.into_iter().unzip();
    assert_eq!(
        paths,
        [
            "/var/lib/rocworker/receipt.json",
            "/var/lib/rocworker/history.json",
            "/var/lib/rocworker/memory.json"
        ]
    );
    assert!(versions.iter().all(|version| *version > 0));
}
