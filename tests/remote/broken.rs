use std::process::Stdio;

use support::waiting::eventually;

use crate::asker::{Asker, is_as_before, tree};

#[test]
fn real_what_a_machine_lacks_is_said_and_nothing_changes() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    let bare = asker.fleet.machine("bare", |m| m);
    let cardless = asker.fleet.machine("cardless", |m| m.systemd());
    let before = tree(&gpu1);

    let wrong = asker.fleet.path("/root/wrong.deb");
    std::fs::write(&wrong, "no package").unwrap();
    let said = asker.remote(&["install", "gpu1", "--package", "/root/wrong.deb"]);
    assert!(said.stderr.contains("/root/wrong.deb is no Debian package"), "{said:?}");
    assert_eq!(said.status.code(), Some(2));
    let mut cut = std::fs::read(asker.package()).unwrap();
    cut.truncate(100_000);
    std::fs::write(&wrong, cut).unwrap();
    let said = asker.remote(&["install", "gpu1", "--package", "/root/wrong.deb"]);
    assert!(said.stderr.contains("nothing was changed there"), "{said:?}");
    is_as_before(&gpu1, &before);

    // One failure stops no other.
    let said = asker.install(&["bare", "cardless", "gpu1", "nowhere.invalid"]);
    assert_eq!(said.status.code(), Some(1));
    assert_eq!(said.stdout, "Metrics available at: http://gpu1:9401/metrics\n");
    for part in [
        "bare: problem: systemd does not run there",
        "cardless: problem: it has no AMD GPU",
        "nowhere.invalid: problem: ",
    ] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    drop((bare, cardless));
}

#[test]
fn real_a_full_disk_is_a_sentence_and_nothing_changes() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    gpu1.fill_disk();
    let before = tree(&gpu1);
    let said = asker.install(&["gpu1"]);
    assert_eq!(said.status.code(), Some(1));
    assert!(said.stderr.contains("the disk is full"), "{said:?}");
    is_as_before(&gpu1, &before);
}

#[test]
fn real_a_port_that_is_taken_is_shown_by_the_journal() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    let before = tree(&gpu1);
    gpu1.shell(
        "systemd-run --quiet --unit=taken systemd-socket-activate --listen=0.0.0.0:9401 sleep infinity",
    )
    .well();
    eventually("the port is taken", || {
        gpu1.shell("grep -q :24B9 /proc/net/tcp /proc/net/tcp6").status.code() == Some(0)
    });
    let said = asker.install(&["gpu1"]);
    assert_eq!(said.status.code(), Some(1));
    assert!(said.stderr.to_lowercase().contains("cannot listen on 0.0.0.0:9401: address in use"), "{said:?}");
    asker.remote(&["uninstall", "gpu1"]).well();
    is_as_before(&gpu1, &before);
}

#[test]
fn real_a_connection_that_dies_in_the_middle_is_finished_by_the_next_run() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    let before = tree(&gpu1);
    for end in [&["install", "gpu1", "--package"][..], &["uninstall", "gpu1"]] {
        let package = asker.package().to_str().unwrap();
        let program = env!("CARGO_BIN_EXE_rocworker");
        let mut run = asker
            .fleet
            .command(&[program, "remote", "install", "gpu1", "--package", package])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("dpkg is at work", || gpu1.path("/var/lib/rocworker-remote").exists());
        // Everything that sshd has started there, at once.
        gpu1.shell("for it in $(pidof dpkg rocworker sh) $(pgrep -f 'sshd: root'); do [ $it = $$ ] || kill -9 $it 2> /dev/null || :; done")
            .well();
        run.wait().unwrap();
        assert!(gpu1.path("/var/lib/rocworker-remote/package").exists());
        if end.len() == 3 {
            let said = asker.remote(&[end, &[package]].concat());
            assert_eq!(said.clone().well(), "Metrics available at: http://gpu1:9401/metrics\n", "{said:?}");
            asker.remote(&["uninstall", "gpu1"]).well();
        } else {
            asker.remote(end).well();
        }
        is_as_before(&gpu1, &before);
    }
}
