//! Connections beyond the first, for files that its answer named.

use layout::Machine as Laid;
use support::machines::{self, Fleet};

use crate::fleet::asker::PROGRAM;

/// sshd serves the first connection alone.
const ONCE: &str = r#"printf '%s\n' '#!/bin/sh' 'if ! mkdir /root/asked; then exit 1; fi' \
    'exec sh -c "$SSH_ORIGINAL_COMMAND"' > /usr/local/bin/once; chmod 755 /usr/local/bin/once
    mkdir -p /etc/rocworker && echo 'cdi: {path: /srv/cdi/amd.json}' > /etc/rocworker/config.yaml
    mkdir -p /srv/cdi && echo {} > /srv/cdi/amd.json"#;

#[test]
fn real_a_further_connection_that_fails_leaves_the_first_answer() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let _gpu1 = fleet.machine("gpu1", |m| {
        m.laid(Laid::instinct_with_readings(1, 1)).prepare(ONCE).sshd("ForceCommand /usr/local/bin/once")
    });
    let said = fleet.run(&[PROGRAM, "--host", "gpu1", "doctor"]);
    assert!(said.stdout.contains("/srv/cdi/amd.json was not read from that machine"), "{said:?}");
    assert_eq!(said.status.code(), Some(3), "{said:?}");
    assert!(said.stderr.starts_with("gpu1: its login shell did not run"), "{said:?}");
    let why = "This was a further connection: the files that it was to read are unknown\n";
    assert!(said.stderr.ends_with(why), "{said:?}");
}

#[test]
fn real_files_behind_the_fourth_connection_are_said_to_be_unknown() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    // Each file imports the next.
    let chain = r#"printf '#!/bin/sh\n' > /usr/bin/containerd; chmod 755 /usr/bin/containerd
        mkdir -p /etc/containerd; to=/etc/containerd/config.toml
        for n in 1 2 3 4 5; do
            mkdir -p /opt/$n; echo "imports = ['/opt/$n/next.toml']" > $to; to=/opt/$n/next.toml
        done; echo 'version = 3' > $to"#;
    let _gpu1 = fleet.machine("gpu1", |m| m.laid(Laid::instinct_with_readings(1, 1)).prepare(chain));
    let said = fleet.run(&[PROGRAM, "--host", "gpu1", "doctor"]);
    let rest = "gpu1: its files name others, and those name more: after 4 connections the rest is unknown\n";
    assert_eq!(said.stderr, rest, "{said:?}");
    assert!(said.stdout.contains(" checks: "), "the rest is answered: {said:?}");
}
