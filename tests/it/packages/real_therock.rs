//! ROCm as one archive, from a server in AMD's place.

use lab::systems;
use lab::tarball::{self, Hostile, Tarball};
use reconcile::Digest;

use crate::packages::worker::{Worker, amds};

const FAMILY: &str = "gfx94X-dcgpu";
const VERSION: &str = "7.14.0";
const FOLDER: &str = "/opt/rocm-7.14.0";

fn configure(worker: &Worker, sha256: &str) {
    let url = worker.server.url();
    worker.configure(&format!(
        "rocm: {{install: therock, therock: {{version: {VERSION}, family: {FAMILY}, sha256: \"{sha256}\", url: \"{url}\"}}}}"
    ));
}

fn serve(worker: &Worker, archive: &Tarball) -> String {
    let bytes = archive.bytes();
    std::fs::write(worker.folder().join(tarball::name(FAMILY, VERSION)), &bytes).unwrap();
    Digest::of(&bytes).as_str().to_owned()
}

#[test]
fn real_an_archive_becomes_opt_rocm_and_undo_takes_it_away_whole() {
    for (system, machine) in systems::each() {
        let worker = Worker::new(machine, amds());
        worker.machine.call(&["ln", "-s", "rocm-6.3.2", "/opt/rocm"]).well();
        let before = worker.machine.tree(&["opt"]);
        let sha256 = serve(&worker, &Tarball::therock(VERSION));
        configure(&worker, &sha256);
        worker.run(&["apply"]).well();
        assert!(worker.machine.outside(&format!("{FOLDER}/bin")).is_dir(), "{system}");
        assert_eq!(std::fs::read_link(worker.machine.outside("/opt/rocm")).unwrap().to_str(), Some(FOLDER));
        let asked = worker.server.requests().len();
        let again = worker.run(&["apply"]).well();
        assert!(again.ends_with("Already in sync; no changes.\n"), "{again}");
        assert_eq!(worker.server.requests().len(), asked, "{system}");

        // Somebody keeps something there.
        worker.machine.put(&format!("{FOLDER}/share/notes.txt"), "mine\n");
        let kept = worker.run(&["undo"]);
        assert_eq!(kept.status.code(), Some(1), "{kept:?}");
        assert!(kept.stdout.contains("added or changed in it: /opt/rocm-7.14.0/share;"), "{kept:?}");
        assert!(worker.machine.text(&format!("{FOLDER}/share/notes.txt")).is_some());
        // What somebody has mounted there is not emptied, whatever is forced.
        worker.machine.put("/srv/data/kept.txt", "theirs\n");
        worker.machine.call(&["mkdir", &format!("{FOLDER}/share/data")]).well();
        worker.machine.call(&["mount", "--bind", "/srv/data", &format!("{FOLDER}/share/data")]).well();
        let forced = worker.run(&["undo", "--force"]);
        assert!(forced.stdout.contains("busy"), "{forced:?}");
        assert!(worker.machine.text("/srv/data/kept.txt").is_some(), "{system}");
        worker.machine.call(&["umount", &format!("{FOLDER}/share/data")]).well();
        worker.run(&["undo", "--force"]).well();
        let off = worker.machine.tree(&["opt"]).differences(&[&before]);
        assert!(off.is_empty(), "{system}: {}", off.join("\n"));
    }
}

#[test]
fn real_an_archive_that_is_not_what_was_meant_leaves_nothing() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, amds());
    worker.machine.call(&["mkdir", "-p", "/opt"]).well();
    let before = worker.machine.tree(&["opt"]);
    let right = serve(&worker, &Tarball::therock(VERSION));
    let hostile = serve(&worker, &Tarball::therock(VERSION).hostile(Hostile::Parent));
    for (sha256, said) in [(right.as_str(), "SHA-256"), (hostile.as_str(), "")] {
        configure(&worker, sha256);
        let applied = worker.json(&["apply"]);
        let failed = applied["failed"].as_array().unwrap();
        assert_eq!(failed[0]["path"], FOLDER, "{applied:#}");
        assert!(failed[0]["text"].as_str().unwrap().contains(said), "{applied:#}");
        // The link would name nothing.
        assert_eq!(failed[1]["path"], "/opt/rocm", "{applied:#}");
        let off = worker.machine.tree(&["opt"]).differences(&[&before]);
        assert!(off.is_empty(), "{}", off.join("\n"));
        assert!(worker.machine.text("/etc/cdi/amd.json").is_some());
        worker.run(&["undo"]).well();
    }
}

/// deploy/install_rocm_tarball.sh in an image that is being built: no GPU in /sys, no systemd, no configuration. This
/// server stands for repo.amd.com.
#[test]
fn real_the_script_installs_an_archive_in_an_image() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, amds());
    let script = include_str!("../../../deploy/install_rocm_tarball.sh");
    worker.machine.put_script("/tmp/install_rocm_tarball.sh", script);
    worker.machine.put_script("/tmp/in_image", "#!/bin/sh\nset -e\nmount -t tmpfs none /sys\nexec \"$@\"\n");
    let words = ["7.10.0", FAMILY, "stable"];
    let bytes = Tarball::therock("7.10.0").bytes();
    std::fs::write(worker.folder().join(tarball::name(FAMILY, "7.10.0")), &bytes).unwrap();
    let (url, sha256) = (worker.server.url(), Digest::of(&bytes).as_str().to_owned());
    let run = |variables: &[String], options: &[&str]| {
        let image = ["unshare", "--mount", "/tmp/in_image", "env"];
        let variables = variables.iter().map(String::as_str);
        let argv: Vec<&str> = image
            .into_iter()
            .chain(variables)
            .chain(["/tmp/install_rocm_tarball.sh"])
            .chain(options.iter().copied())
            .collect();
        worker.machine.call(&argv)
    };
    let (from, checked) = (format!("ROCM_TARBALL_URL={url}"), format!("ROCM_SHA256={sha256}"));
    // What was not meant leaves nothing, and is refused in a sentence.
    let other = format!("ROCM_SHA256={}", "0".repeat(64));
    for (variables, options, code, said) in [
        (vec![], vec![], 2, "VERSION"),
        (vec![], vec!["6.4.0", FAMILY], 2, "AMD's folder of stable 6.4.0 is not known"),
        (vec![], vec!["7.10.0", FAMILY, "newest"], 2, "\"newest\" is none of stable, nightlies"),
        (vec![from.clone()], words.to_vec(), 2, "can be changed on its way"),
        (vec![from.clone(), other], words.to_vec(), 1, "its SHA-256 is"),
        (vec!["ROCWORKER=/nowhere".to_owned()], words.to_vec(), 1, "/nowhere is not there"),
    ] {
        let refused = run(&variables, &options);
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
        assert!(!worker.machine.outside("/opt/rocm-7.10.0").exists(), "{refused:?}");
    }
    let variables = [from.clone(), checked.clone()];
    let installed = run(&variables, &words).well();
    assert!(installed.contains(&sha256), "{installed}");
    let names = worker.machine.call(&["ls", "/opt/rocm/"]).well();
    for name in ["bin", "include", "lib"] {
        assert!(names.lines().any(|line| line == name), "{names}");
    }
    assert_eq!(
        std::fs::read_link(worker.machine.outside("/opt/rocm")).unwrap().to_str(),
        Some("/opt/rocm-7.10.0")
    );
    let asked = worker.server.requests().len();
    let again = run(&variables, &words).well();
    assert!(again.contains("was there already") && worker.server.requests().len() == asked, "{again}");
    // Nothing of it is managed: an apply and an undo leave it.
    worker.configure("");
    worker.run(&["apply"]).well();
    worker.run(&["undo"]).well();
    assert!(worker.machine.outside("/opt/rocm-7.10.0/bin").is_dir());

    // Another tree than this machine's.
    worker.machine.call(&["mkdir", "-p", "/srv/image/opt"]).well();
    let beneath = run(&variables, &["--root", "/srv/image", "7.10.0", FAMILY]).well();
    assert!(beneath.contains("/srv/image/opt/rocm-7.10.0: unpacked"), "{beneath}");
    assert!(worker.machine.outside("/srv/image/opt/rocm-7.10.0/bin").is_dir());
}
