use std::process::Stdio;

use support::machines::Sudo;
use support::said::Said;
use support::waiting::eventually;

use crate::remote::asker::{Asker, PROGRAM, is_as_before, tree};

#[test]
fn real_missing_requirements_are_reported_and_nothing_changes() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| {
        m.user("ops", Sudo::NoPassword).user("dev", Sudo::Password).user("guest", Sudo::No)
    });
    let bare = asker.fleet.machine("bare", |m| m);
    let cardless = asker.fleet.machine("cardless", |m| m.systemd());
    let before = tree(&gpu1);

    let wrong = asker.fleet.path("/root/wrong.deb");
    std::fs::write(&wrong, "no package").unwrap();
    let said = asker.remote(&["install", "gpu1", "--package", "/root/wrong.deb"]);
    assert!(said.stderr.contains("/root/wrong.deb is not a Debian package"), "{said:?}");
    assert_eq!(said.status.code(), Some(2));
    for (listen, why) in
        [(":9401", "is no IP address with a port: write"), ("0.0.0.0:80", "has a port below 1024")]
    {
        let said = asker.remote(&["install", "gpu1", "--listen", listen]);
        assert!(said.stderr.contains(why) && said.status.code() == Some(2), "{said:?}");
    }
    let mut cut = std::fs::read(asker.package()).unwrap();
    cut.truncate(100_000);
    std::fs::write(&wrong, cut).unwrap();
    let said = asker.remote(&["install", "gpu1", "--package", "/root/wrong.deb"]);
    assert!(said.stderr.contains("the machine is unchanged"), "{said:?}");
    is_as_before(&gpu1, &before);

    assert_eq!(asker.remote(&["check", "ops@gpu1"]).status.code(), Some(3));
    for (host, why) in [("dev@gpu1", "sudo: a password is required"), ("guest@gpu1", "sudo: ")] {
        let said = asker.install(&[host]);
        let user = host.trim_end_matches("@gpu1");
        assert!(said.stderr.contains(&format!("problem: `sudo -n` failed for {user} ({why}")), "{said:?}");
        assert!(said.stderr.contains("or use root@gpu1") && said.status.code() == Some(1), "{said:?}");
    }
    is_as_before(&gpu1, &before);

    // One failure stops no other.
    let said = asker.install(&["bare", "cardless", "gpu1", "nowhere.invalid"]);
    assert_eq!(said.status.code(), Some(1));
    assert_eq!(said.stdout, "Metrics available at: http://gpu1:9401/metrics\n");
    for part in [
        "bare: problem: systemd is not running",
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
    assert!(said.stderr.contains("No space left on device): make room there"), "{said:?}");
    is_as_before(&gpu1, &before);
}

#[test]
fn real_a_disk_that_fills_while_dpkg_is_at_work_is_dpkgs_reason_and_nothing_changes() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    let hooks = "pre-invoke=[ $DPKG_HOOK_ACTION != install ] || mount -o remount,size=$(df -B1 / | awk 'NR == 2 { print $3 }') /\n\
                 post-invoke=[ $DPKG_HOOK_ACTION = install ] || mount -o remount,size=50% /\n";
    gpu1.put("etc/dpkg/dpkg.cfg.d/full", hooks);
    let before = tree(&gpu1);
    let said = asker.install(&["gpu1"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    for part in [
        "problem: dpkg cannot install the package: dpkg: unrecoverable fatal error, aborting: unable",
        "No space left on device",
        "machine is unchanged",
    ] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    is_as_before(&gpu1, &before);
}

#[test]
fn real_without_a_package_here_only_hosts_that_lack_it_are_refused() {
    let Some(asker) = Asker::new() else { return };
    let (gpu1, gpu2) = (asker.machine("gpu1", |m| m), asker.machine("gpu2", |m| m));
    let deb = asker.put_package(&gpu1, asker.package());
    gpu1.shell(&format!("dpkg -i {deb}")).well();
    let before = tree(&gpu2);
    let said = asker.remote(&["install", "gpu1", "gpu2"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert_eq!(said.stdout, "Metrics available at: http://gpu1:9401/metrics\n", "{said:?}");
    assert!(said.stderr.contains("gpu2: problem: ") && said.stderr.contains("--package"), "{said:?}");
    for part in ["[1/2] gpu2: failed after", "[2/2] gpu1: done in"] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    is_as_before(&gpu2, &before);

    // With another user than the inventory's, a machine may lock the account.
    asker.fleet.put("etc/rocworker/config.yaml", "nonsense: 1\n");
    let said = asker.remote(&["check", "gpu1"]);
    assert!(said.status.code() == Some(2) && said.stderr.contains("USER@HOST"), "{said:?}");
    asker.remote(&["check", "root@gpu1"]).well();
}

#[test]
fn real_an_interrupt_says_of_each_host_what_became_of_it() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.fleet.machine("gpu1", |m| m);
    gpu1.stop_sshd();
    let names: Vec<String> = (0..9).map(|number| format!("name{number}")).collect();
    let aliases = names.iter().map(|name| format!("Host {name}\nHostName gpu1\nHostKeyAlias gpu1\n"));
    asker.fleet.put("root/.ssh/config", &aliases.collect::<String>());
    let mut command = asker.fleet.command(&[PROGRAM, "remote", "uninstall"]);
    let run = command.args(&names).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    eventually("eight are asked", || {
        asker.fleet.shell("pgrep -x -c ssh").stdout.trim().parse().is_ok_and(|asked: u32| asked >= 8)
    });
    asker.fleet.shell("kill -INT $(pgrep -o -x rocworker)").well();
    let said: Said = run.wait_with_output().unwrap().into();
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert_eq!(
        said.stderr.matches("problem: interrupted before the command finished\n").count(),
        8,
        "{said:?}"
    );
    assert_eq!(said.stderr.matches("the next install or uninstall finishes").count(), 8, "{said:?}");
    assert!(said.stderr.contains("name8: problem: interrupted before it began; the machine"), "{said:?}");
}

#[test]
#[ignore = "cargo xtask test --all"]
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
#[ignore = "cargo xtask test --all"]
fn real_a_connection_that_dies_in_the_middle_is_finished_by_the_next_run() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    let before = tree(&gpu1);
    for end in [&["install", "gpu1", "--package"][..], &["uninstall", "gpu1"]] {
        let package = asker.package().to_str().unwrap();
        let mut run = asker
            .fleet
            .command(&[PROGRAM, "remote", "install", "gpu1", "--package", package])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("dpkg is at work", || {
            gpu1.path("/var/lib/rocworker-remote").exists() && gpu1.shell("pidof dpkg").status.success()
        });
        // Everything that sshd has started there, at once.
        gpu1.shell("for it in $(pidof dpkg sh) $(pgrep '^rocworker') $(pgrep -f 'sshd: root'); do [ $it = $$ ] || kill -9 $it 2> /dev/null || :; done")
            .well();
        assert_eq!(run.wait().unwrap().code(), Some(1));
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
