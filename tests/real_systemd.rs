//! A real systemd as process 1: a Concourse worker that is drained ends when its build has ended, and is started again by
//! a unit that outlives whoever ran apply. The worker is a stand-in; its unit is the charm's.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]

use layout::Machine;
use support::real;
use support::stage::{Stage, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// The charm's unit (fourdollars/concourse-ci-machine, lib/concourse_worker.py), without what needs a network.
const UNIT: &str = "[Unit]
Description=Concourse CI Worker

[Service]
Type=simple
User=root
EnvironmentFile=/var/lib/concourse-worker/worker-config.env
ExecStart=/var/lib/concourse/bin/concourse worker
Restart=on-failure
RestartSec=5
";

/// Ends on SIGUSR1, as Concourse's worker does, once its build has ended: here, once /run/built is there.
const WORKER: &str = r#"#!/bin/sh
case $1 in --version) echo 7.14.3; exit ;; esac
land() { echo landing >> /run/worker; until [ -e /run/built ]; do sleep 0.05; done; exit 0; }
trap land USR1
echo "started as $CONCOURSE_TAG" >> /run/worker
while :; do sleep 0.05; done
"#;

const CONTAINERD: &str = "#!/bin/sh\necho containerd github.com/containerd/containerd v2.1.4 1234\n";

/// What each script begins with: the worker runs, a machine's files are written, and a build goes on.
const START: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
# Bounded, so that a failure ends.
until_true() { n=0; until eval "$1"; do n=$((n + 1)); [ $n -lt 600 ] || { echo "never: $1" >&2; cat /run/worker /run/applied >&2; exit 1; }; sleep 0.05; done; }
mkdir -p /var/lib/concourse/bin /var/lib/concourse-worker
cp /etc/staged/concourse /etc/staged/containerd /var/lib/concourse/bin/
chmod 755 /var/lib/concourse/bin/*
chmod 755 /usr/lib/rocworker/runc-amd-wrapper
printf 'CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG=linux\nCONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir\n' > /var/lib/concourse-worker/worker-config.env
: > /run/worker
systemctl start concourse-worker
until_true 'grep -q started /run/worker'
"#;

/// Of the demo's machine.
const TAGS: &str = "gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=9,gfx942,gfx1100";

fn stage() -> Stage {
    let stage = Stage::set(&Machine::demo());
    stage.put("usr/lib/rocworker/runc-amd-wrapper", "stands for the wrapper's program\n");
    stage.put("etc/systemd/system/concourse-worker.service", UNIT);
    stage.put("etc/staged/concourse", WORKER);
    stage.put("etc/staged/containerd", CONTAINERD);
    stage
}

fn boot(script: &str) -> Option<String> {
    if !real::require_root(&["unshare", "systemctl", "systemd-run"]) {
        return None;
    }
    Some(stdout(&stage().boot(&format!("{START}\n{script}"))))
}

#[test]
fn real_a_worker_that_outlasts_a_killed_apply_is_started_again_when_its_build_has_ended() {
    let Some(out) = boot(&format!(
        r"
{PROGRAM} apply > /run/applied 2>&1 &
applying=$!
until_true 'grep -q landing /run/worker'
until_true 'systemctl is-active --quiet rocworker-restart-concourse-worker'
grep '^waiting' /run/applied
kill -9 $applying
{PROGRAM} status | grep -o 'restart concourse-worker.*' || true
cat /run/worker
echo the build ends
touch /run/built
until_true '[ $(grep -c started /run/worker) = 2 ]'
until_true '! systemctl is-active --quiet rocworker-restart-concourse-worker'
cat /run/worker
{PROGRAM} apply | tail -1
"
    )) else {
        return;
    };
    assert_eq!(
        out,
        format!(
            "waiting up to 30 s for concourse-worker.service, which was told to end once its work is done (SIGUSR1)\n\
             restart concourse-worker.service, once its work is done (SIGUSR1): it was told, and is still at it\n\
             started as linux\nlanding\nthe build ends\nstarted as linux\nlanding\nstarted as linux,{TAGS}\n\
             everything is as it should be: nothing was changed\n"
        )
    );
}

#[test]
fn real_a_worker_whose_build_ends_in_time_is_started_by_apply_itself_and_undo_lands_it_again() {
    let Some(out) = boot(&format!(
        r"
touch /run/built
{PROGRAM} apply | grep ended
until_true '! systemctl is-active --quiet rocworker-restart-concourse-worker'
systemctl is-failed rocworker-restart-concourse-worker || true
{PROGRAM} apply | tail -1
{PROGRAM} undo | grep ended
until_true '[ $(grep -c started /run/worker) = 3 ]'
cat /run/worker
"
    )) else {
        return;
    };
    let ended = "✓ concourse-worker.service ended once its work was done and was started again";
    assert_eq!(
        out,
        format!(
            "{ended}\ninactive\neverything is as it should be: nothing was changed\n{ended}\n\
             started as linux\nlanding\nstarted as linux,{TAGS}\nlanding\nstarted as linux\n"
        )
    );
}

#[test]
fn real_a_restart_by_hand_is_recognised_and_one_before_the_change_is_not() {
    let Some(out) = boot(&format!(
        r"
echo 'restart: never' > /etc/rocworker-config.yaml
systemctl restart concourse-worker
{PROGRAM} --config /etc/rocworker-config.yaml apply | grep 'concourse-worker.service still'
{PROGRAM} --config /etc/rocworker-config.yaml apply | grep 'concourse-worker.service still'
systemctl restart concourse-worker
{PROGRAM} --config /etc/rocworker-config.yaml apply | grep since
{PROGRAM} --config /etc/rocworker-config.yaml apply | tail -1
"
    )) else {
        return;
    };
    let still = "… concourse-worker.service still runs with its old configuration: systemctl restart \
                 concourse-worker.service";
    assert_eq!(
        out,
        format!(
            "{still}\n{still}\n✓ concourse-worker.service was restarted by somebody since\n\
             everything is as it should be: nothing was changed\n"
        )
    );
}
