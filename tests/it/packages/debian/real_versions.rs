//! What another version has stored: the one before is read, a newer one is refused by every maintainer script, and stays
//! as it is.

use crate::packages::debian::worker::{CONFIG, RECEIPT, RULES, Worker, on, same};

const MEMORY: &str = "/var/lib/rocworker/memory.json";
const HISTORY: &str = "/var/lib/rocworker/history.json";

/// A file as a newer version would have it, of which nothing is known but where its number stands.
fn newer(worker: &Worker, path: &str) -> String {
    let text = worker.machine.text(path).unwrap();
    let newer = text.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1);
    assert_ne!(text, newer, "{path}");
    worker.machine.put(path, &newer);
    text
}

#[test]
fn real_what_a_newer_version_has_stored_is_refused_and_outlives_every_try() {
    let Some(worker) = on("trixie") else { return };
    worker.install();
    worker.machine.put(CONFIG, "gpu-device-ids: 0\n");
    worker.apply();
    for path in [RECEIPT, MEMORY, HISTORY] {
        let text = newer(&worker, path);
        let before = worker.written();
        // A downgrade, an upgrade to a version that reads no more than this one, and the same again.
        for package in [worker.deb_of("0.0.9-1"), worker.deb_of("9.0-1"), worker.deb()] {
            let words = worker.dpkg(&["--install", "--force-downgrade", &package]).badly();
            let part = format!(
                "rocworker: {path} has schema_version 2, which a newer rocworker wrote; this one reads up to 1"
            );
            assert!(words.contains(&part) && words.contains("keep the newer one"), "{words}");
            same(&worker.written(), &before, path);
            worker.dpkg(&["--configure", "-a"]).well();
            worker.is_whole(path);
        }
        if path == RECEIPT {
            for way in ["--remove", "--purge"] {
                let words = worker.dpkg(&[way, "rocworker"]).badly();
                assert!(words.contains("install the newer one again, and undo with it"), "{words}");
                same(&worker.written(), &before, path);
                worker.is_whole(path);
            }
        }
        worker.machine.put(path, text);
    }

    // The package is gone, and something of a newer one has come since.
    worker.dpkg(&["--remove", "rocworker"]).well();
    worker.machine.put(RECEIPT, "{\n  \"schema_version\": 2,\n  \"wonders\": []\n}\n");
    let before = worker.written();
    let words = worker.dpkg(&["--install", &worker.deb()]).badly();
    assert!(words.contains("has schema_version 2"), "{words}");
    let words = worker.dpkg(&["--purge", "rocworker"]).badly();
    assert!(words.contains("install rocworker again, run rocworker undo, then purge it"), "{words}");
    same(&worker.written(), &before, "removed");
}

/// Cut at any place, a receipt is refused before anything of the new version has come: the old one stays, whole.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_receipt_that_was_cut_is_refused_before_the_new_version_comes() {
    let Some(worker) = on("trixie") else { return };
    worker.install();
    worker.machine.put(CONFIG, "gpu-device-ids: 0\n");
    worker.apply();
    let receipt = worker.machine.text(RECEIPT).unwrap();
    let length = receipt.trim_end().len();
    let cuts = [0, 1, 20, length / 3, length / 2, length - 2, length - 1];
    let damaged = cuts.map(|cut| receipt.chars().take(cut).collect::<String>());
    for text in
        damaged.iter().map(String::as_str).chain(["[]\n", "null\n", "{\"schema_version\": 1, \"a\": \"{}\n"])
    {
        worker.machine.put(RECEIPT, text);
        let before = worker.written();
        for package in [worker.deb_of("9.0-1"), worker.deb_of("0.0.9-1"), worker.deb()] {
            let words = worker.dpkg(&["--install", "--force-downgrade", &package]).badly();
            let said = format!("rocworker: {RECEIPT} is cut off or damaged");
            assert!(words.contains(&said) && words.contains("restore it from a backup"), "{text:?}: {words}");
            same(&worker.written(), &before, text);
            assert_eq!(worker.dpkg(&["--configure", "-a"]).well(), "", "{text:?}");
            worker.is_whole(text);
        }
    }
    // What brackets and quotes in its strings do not spoil is whole, in one line too.
    let line: serde_json::Value = serde_json::from_str(&receipt).unwrap();
    let odd = line.to_string().replacen("\"reason\":\"", "\"reason\":\"}] \\\" {[ \\\\", 1);
    for text in [&odd, &receipt] {
        worker.machine.put(RECEIPT, text);
        worker.dpkg(&["--install", "--force-downgrade", &worker.deb()]).well();
        worker.is_whole("whole");
    }
    worker.dpkg(&["--remove", "rocworker"]).well();
}

/// One sentence on what is wrong, and none that all is well.
#[test]
fn real_an_upgrade_beside_a_broken_engine_file_says_one_thing() {
    let Some(worker) = on("trixie") else { return };
    worker.install();
    worker.apply();
    worker.machine.put("/etc/docker/daemon.json", "{\n  \"debug\": true,\n");
    let before = worker.written();
    let ended = worker.dpkg(&["--install", &worker.deb_of("9.0-1")]);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    ended.well();
    let of_it = ["docker", "not all", "in sync with this version", "rocworker status"];
    let told: Vec<&str> = said.lines().filter(|line| of_it.iter().any(|part| line.contains(part))).collect();
    assert_eq!(told.len(), 1, "{said}");
    assert!(told[0].contains("/etc/docker/daemon.json: line 3: this is not JSON"), "{said}");
    worker.is_whole("upgraded");
    let after = worker.written();
    assert_eq!(after.get("etc/docker/daemon.json"), before.get("etc/docker/daemon.json"));
}

/// The bytes that the first version wrote, on a machine as it left it.
#[test]
fn real_what_an_older_version_has_stored_is_gone_on_with() {
    let Some(worker) = on("trixie") else { return };
    worker.dpkg(&["--install", &worker.deb_of("0.0.9-1")]).well();
    let before = worker.written();
    worker.machine.put(CONFIG, "gpu-device-ids: 0\n");
    worker.machine.put("/etc/cdi/amd.json", include_str!("stored/receipt-1-cdi.amd.json"));
    worker.machine.put(RECEIPT, include_str!("stored/receipt-1-cdi.json"));
    worker.machine.put(MEMORY, include_str!("stored/memory-1.json"));
    worker.machine.put(HISTORY, include_str!("stored/history-1.json"));
    worker.dpkg(&["--install", &worker.deb()]).well();
    worker.is_whole("upgraded");
    assert!(worker.machine.text(RULES).is_none(), "a spec alone is no worker's");
    worker.rocworker(&["apply"]).well();
    assert!(worker.machine.text(RULES).is_some());
    assert!(worker.machine.text(MEMORY).unwrap().contains("GPU-5ca1ab1e00000001"));
    let history = worker.rocworker(&["history"]).well();
    assert_eq!(history.matches("apply").count(), 2, "the older version's and this one's: {history}");
    worker.dpkg(&["--remove", "rocworker"]).well();
    worker.dpkg(&["--install", &worker.deb_of("0.0.9-1")]).well();
    worker.machine.call(&["rm", "-r", "/etc/rocworker"]).well();
    same(&worker.written().without(&["var/lib/rocworker"]), &before, "all of it is taken back");
}
