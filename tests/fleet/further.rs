//! Connections beyond the first, for files that its answer named.

use layout::Machine as Laid;
use support::machines::{self, Fleet};

use crate::asker::PROGRAM;

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
