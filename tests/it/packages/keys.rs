//! Whose packages are taken: those of the key that is configured, and of no other.

use lab::key::Key;
use lab::systems;
use reconcile::openpgp;

use crate::packages::worker::{KEYRING, Worker, amds};

/// gpg's own word on keys of gpg's.
#[test]
fn real_fingerprints_are_those_that_gpg_tells() {
    if !support::real::require(&["gpg"]) {
        return;
    }
    let (one, other) = (Key::with_subkey("one"), Key::expired("other"));
    let expected = [one.fingerprint(), other.fingerprint()];
    assert_eq!(openpgp::fingerprints(&Key::ring(&[&one, &other])).unwrap(), expected);
    assert_eq!(openpgp::fingerprints(one.armored().as_bytes()).unwrap(), [one.fingerprint()]);
    assert_eq!(openpgp::binary(one.armored().as_bytes()).unwrap(), one.binary());
}

#[test]
fn real_a_key_that_is_not_the_configured_one_leaves_apt_as_it_was() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, amds());
    let before = worker.machine.tree(&["etc/apt"]);
    let other = Key::generate("somebody");
    let key = || worker.server.url() + "/rocm.gpg.key";
    for (fingerprint, served, said) in [
        // The server gives another key than the one that is meant.
        (
            other.fingerprint(),
            worker.key.armored().as_bytes().to_vec(),
            "which is not the one that is configured",
        ),
        // The right one, and one more, which Signed-By would trust as well.
        (
            worker.key.fingerprint(),
            Key::ring(&[&worker.key, &other]),
            "which is not the one that is configured",
        ),
        (worker.key.fingerprint(), b"<html>Not found</html>".to_vec(), "it is cut, or no OpenPGP file"),
    ] {
        std::fs::write(worker.folder().join("rocm.gpg.key"), served).unwrap();
        worker.configure_with(fingerprint, "packages: {rocm-smi: install}");
        let applied = worker.json(&["apply"]);
        let failed = applied["failed"].as_array().unwrap();
        assert_eq!(failed[0]["path"], KEYRING, "{applied:#}");
        let text = failed[0]["text"].as_str().unwrap();
        assert!(text.contains(&key()) && text.contains(said), "{text}");
        // Neither is apt told of a repository whose key it has not, nor asked for what is not to be had.
        assert!(
            failed.iter().any(|it| it["text"].as_str().unwrap().contains("which is not there")),
            "{applied:#}"
        );
        assert!(worker.machine.text("/etc/apt/sources.list.d/rocworker-rocm.sources").is_none());
        worker.has("rocm-smi-lib", None);
        worker.machine.apt_get(&["update"]).well();
        // What needs no package has happened all the same.
        assert!(worker.machine.text("/etc/cdi/amd.json").is_some(), "{applied:#}");
        worker.run(&["undo"]).well();
        let off = worker.machine.tree(&["etc/apt"]).differences(&[&before]);
        assert!(off.is_empty(), "{}", off.join("\n"));
    }
}

#[test]
fn real_a_key_that_cannot_be_had_is_told_with_its_url_and_the_rest_is_done() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, amds());
    let nobody = lab::server::nobody();
    worker.configure("packages: {rocm-smi: install}");
    let config = worker.machine.text("/etc/rocworker/config.yaml").unwrap();
    worker.machine.put("/etc/rocworker/config.yaml", config.replace(&worker.server.url(), &nobody));
    let applied = worker.json(&["apply"]);
    let failed = applied["failed"][0]["text"].as_str().unwrap();
    assert!(failed.starts_with(&format!("{nobody}/rocm.gpg.key could not be fetched: ")), "{failed}");
    assert!(failed.contains(&format!("or put the file at {KEYRING} yourself")), "{failed}");
    assert!(worker.machine.text("/etc/cdi/amd.json").is_some(), "{applied:#}");

    // Somebody does.
    worker.machine.put(KEYRING, worker.key.binary());
    worker.configure("packages: {rocm-smi: install}");
    worker.run(&["apply"]).well();
    worker.has("rocm-smi-lib", Some("install ok installed 7.8.0.70204-1"));
    worker.run(&["undo"]).well();
    assert!(worker.machine.text("/etc/apt/sources.list.d/rocworker-rocm.sources").is_none());
    assert!(worker.machine.outside(KEYRING).exists(), "it was not ours");
}

/// An expired key is apt's to refuse: it is the one that is configured.
#[test]
fn real_a_key_that_has_expired_is_told_in_apts_words() {
    let Some(machine) = systems::this() else { return };
    let mut worker = Worker::new(machine, amds());
    worker.sign_with(Key::expired("AMD's stand-in"));
    worker.configure("packages: {rocm-smi: install}");
    let applied = worker.json(&["apply"]);
    let said = applied.to_string();
    assert!(said.contains("EXPKEYSIG") && said.contains("could not be read"), "{applied:#}");
    worker.has("rocm-smi-lib", None);
    worker.run(&["undo"]).well();
}
