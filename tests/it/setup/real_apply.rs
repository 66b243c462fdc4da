//! Plan, apply and undo on `/` itself: a laid-out machine on a stage, with Debian 12's containerd beside it.

use std::process::Command;

use layout::Machine;
use support::real;
use support::stage::{Stage, stdout};

/// Debian 12's, unpacked by `cargo xtask test`.
const CONTAINERD: &str = "ROCWORKER_CONTAINERD_BOOKWORM";

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// Calls of the kernel that change a file system or start a program.
const CHANGES: &str = "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat,link,linkat,\
                       truncate,ftruncate,chmod,fchmod,fchmodat,chown,fchown,fchownat,utimensat,mknodat,fsync,\
                       fdatasync,fork,vfork,execve,execveat,write,pwrite64,writev";

fn stage() -> Stage {
    let stage = Stage::set(&Machine::demo());
    stage.put("usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
    stage.put("etc/containerd/config.toml", "# mine\nversion = 2\n");
    stage.put("etc/docker/daemon.json", "{\"log-driver\": \"journald\"}\n");
    stage
}

#[test]
fn real_a_second_apply_writes_nothing_and_starts_nothing() {
    let Some(containerd) = real::require_root_and_built(CONTAINERD, &["strace", "unshare"]) else { return };
    let containerd = containerd.display();
    let log = stdout(&stage().shell(&format!(
        "cp {containerd} /usr/bin/containerd
         chmod 755 /usr/lib/rocworker/runc-amd-wrapper
         {PROGRAM} apply >&2
         test -e /etc/cdi/amd.json
         grep -q rocworker /etc/containerd/config.toml
         grep -q versions /var/lib/rocworker/memory.json
         strace -f -qq -e signal=none -e trace={CHANGES} -o /run/calls {PROGRAM} apply >&2
         cat /run/calls"
    )));
    let calls: Vec<&str> =
        log.lines().filter_map(|line| line.split_once(' ')).map(|(_, call)| call.trim()).collect();
    assert!(calls.first().is_some_and(|call| call.starts_with("execve(")), "{log}");
    let changes: Vec<_> = calls
        .iter()
        .skip(1)
        .filter(|call| !call.starts_with("write(1,") && !call.starts_with("write(2,"))
        .collect();
    assert!(changes.iter().all(|call| call.starts_with("+++")), "{changes:#?}");
}

#[test]
fn real_undo_gives_the_machine_back() {
    let Some(containerd) = real::require_root_and_built(CONTAINERD, &["unshare"]) else { return };
    let containerd = containerd.display();
    // Everything of /etc and /usr by type, mode, owner and content; the state of rocworker itself stays.
    let listing = "find /etc /usr/lib/rocworker /usr/local/lib -printf '%y %m %U:%G %s %p %l\\n' | sort; find /etc -type f -exec sha256sum {} + | sort";
    let out = stdout(&stage().shell(&format!(
        "cp {containerd} /usr/bin/containerd
         chmod 755 /usr/lib/rocworker/runc-amd-wrapper
         ({listing}) > /run/before
         {PROGRAM} apply >&2
         ({listing}) > /run/between
         {PROGRAM} undo >&2
         ({listing}) > /run/after
         if cmp -s /run/before /run/between; then echo nothing was applied; fi
         diff /run/before /run/after
         echo the same"
    )));
    assert_eq!(out, "the same\n");
}

/// What a stage has in the folders that rocworker and engines write to.
const LISTING: &str = "find /etc /run /srv /opt /var/lib /usr/lib/rocworker /usr/local -not -path '/var/lib/dpkg/*' \
                       -printf '%y %m %U:%G %s %p %l\\n' 2>/dev/null | sort";

#[test]
fn real_a_stage_is_the_same_on_a_host_that_rocworker_has_set_up() {
    if !real::require_root(&["unshare"]) {
        return;
    }
    let (host, inner) = (stage(), Stage::set(&Machine::demo()));
    let inner = inner.command(&["sh", "-ec", LISTING]);
    let list: Vec<String> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")))
        .collect();
    let list = list.join(" ");
    let here = stdout(&Command::new("sh").args(["-ec", &list]).output().unwrap());
    let there = stdout(&host.shell(&format!(
        "cp {PROGRAM} /usr/bin/rocworker
         chmod 755 /usr/lib/rocworker/runc-amd-wrapper
         rocworker apply >&2
         test -e /etc/cdi/amd.json -a -e /var/lib/rocworker/receipt.json
         mkdir -p /run/rocworker /srv/shared /opt/rocm
         echo 'no-such-key: 1' > /etc/rocworker/config.yaml
         {list}"
    )));
    assert!(here.contains(" /etc/passwd") && !here.contains("/etc/rocworker"), "{here}");
    assert_eq!(here, there);
}

#[test]
fn real_no_engine_is_told_of_a_packaged_wrapper_that_does_not_run() {
    let Some(wrapper) = real::require_root_and_built("ROCWORKER_WRAPPER", &["unshare", "grep"]) else {
        return;
    };
    let wrapper = wrapper.display();
    let at = "/usr/lib/rocworker/runc-amd-wrapper";
    let out = stdout(&stage().shell(&format!(
        "printf '#!/bin/sh\\necho Docker version 20.10.24, build 1\\n' > /usr/sbin/dockerd; chmod 755 /usr/sbin/dockerd
         look() {{
             code=0; {PROGRAM} apply > /run/said 2>&1 || code=$?
             checks=$({PROGRAM} --output json doctor | grep -c 'install rocworker again') || true
             told=$(grep -c amd /etc/docker/daemon.json) || true
             echo $1: $code $told $checks $(grep -o 'is not executable\\|Exec format error\\|signal' /run/said | head -1)
         }}
         : > {at}; chmod 755 {at}; look empty
         cat {wrapper} > {at}; chmod 644 {at}; look mode
         head -c 4096 {wrapper} > {at}; chmod 755 {at}; look short
         cat {wrapper} > {at}; look whole
         # The real runc of a worker need not be on this PATH.
         {PROGRAM} undo > /run/said 2>&1
         rm -f $(which -a runc)
         rm /var/lib/rocworker/*; look without-runc
         grep -o 'no runc but this wrapper itself' /var/lib/rocworker/memory.json
         : > {at}; look broken-later",
    )));
    // Exit code of apply, docker's keys, failed checks of doctor, why.
    let expected = "empty: 1 0 1 Exec format error\n\
                    mode: 1 0 1 is not executable\n\
                    short: 1 0 1 signal\n\
                    whole: 0 1 0\n\
                    without-runc: 0 1 0\n\
                    no runc but this wrapper itself\n\
                    broken-later: 1 1 1 Exec format error\n";
    assert_eq!(out, expected);
}
