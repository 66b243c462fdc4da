//! A real systemd as process 1: a Concourse worker that is drained ends when its build has ended, and is started again by
//! a unit that outlives whoever ran apply. The worker is a stand-in; its unit is the charm's.

use layout::Machine;
use support::booted_worker::WORKER_SET_UP;
use support::real;
use support::stage::{Stage, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// What each script begins with: the worker runs, a machine's files are written, and a build goes on. The exporter lies
/// beside the program in the build's folder; its port is one for all stages.
const START: &str = "
mkdir -p /etc/rocworker
echo 'exporter: {unit: false}' > /etc/rocworker/config.yaml
chmod 755 /usr/lib/rocworker/runc-amd-wrapper
systemctl start concourse-worker
until_true 'grep -q started /run/worker'
";

/// Of the demo's machine.
const TAGS: &str = "gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=9,gfx942,gfx1100";

fn boot(script: &str) -> Option<String> {
    if !real::require_root(&["unshare", "systemctl", "systemd-run"]) {
        return None;
    }
    let stage = Stage::set(&Machine::demo());
    stage.put("usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
    stage.put_worker();
    Some(stdout(&stage.boot(&format!("{WORKER_SET_UP}{START}\n{script}"))))
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
             restart concourse-worker.service, once its work is done (SIGUSR1): asked to end, and still at work\n\
             started as linux\nlanding\nthe build ends\nstarted as linux\nlanding\nstarted as linux,{TAGS}\n\
             Already in sync; no changes.\n"
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
    let ended = "done: concourse-worker.service ended once its work was done and was started again";
    assert_eq!(
        out,
        format!(
            "{ended}\ninactive\nAlready in sync; no changes.\n{ended}\n\
             started as linux\nlanding\nstarted as linux,{TAGS}\nlanding\nstarted as linux\n"
        )
    );
}

/// Nobody knows what it says of restarts.
#[test]
fn real_an_undo_without_a_configuration_that_can_be_read_lands_no_worker() {
    let Some(out) = boot(&format!(
        r"
touch /run/built
echo 'restart: now' >> /etc/rocworker/config.yaml
{PROGRAM} apply > /dev/null
until_true '[ $(grep -c started /run/worker) = 2 ]'
cp /run/worker /run/before
chmod 666 /etc/rocworker/config.yaml
{PROGRAM} undo 2>&1 | grep -e 'concourse-worker.service still' -e 'continues without it' | sed 's/.*; undo/undo/'
cmp /run/worker /run/before
systemctl restart concourse-worker
{PROGRAM} undo 2>&1 | grep since
ls /var/lib/rocworker/receipt.json 2>&1 || true
"
    )) else {
        return;
    };
    assert_eq!(
        out,
        "undo continues without it, and restarts nothing\n\
         pending: concourse-worker.service still runs with its old configuration: systemctl restart concourse-worker.service\n\
         done: concourse-worker.service was restarted since\n\
         ls: cannot access '/var/lib/rocworker/receipt.json': No such file or directory\n"
    );
}

#[test]
fn real_a_restart_by_hand_is_recognised_and_one_before_the_change_is_not() {
    let Some(out) = boot(&format!(
        r"
printf 'restart: never\nexporter: {{unit: false}}\n' > /etc/rocworker-config.yaml
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
    let still = "pending: concourse-worker.service still runs with its old configuration: systemctl restart \
                 concourse-worker.service";
    assert_eq!(
        out,
        format!(
            "{still}\n{still}\ndone: concourse-worker.service was restarted since\n\
             Already in sync; no changes.\n"
        )
    );
}
