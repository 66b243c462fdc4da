//! Plan, apply and undo on `/` itself: a laid-out machine on a stage, with Debian 12's containerd beside it.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]

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
    stage.put("usr/lib/rocworker/runc-amd-wrapper", "stands for the wrapper's program\n");
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
