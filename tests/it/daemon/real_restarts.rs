//! What a daemon under a real systemd does to engines whose configuration it has changed. The worker is a stand-in, as is
//! containerd, which notes its starts.

use layout::Machine;
use support::booted_worker::WORKER_SET_UP;
use support::real;
use support::stage::{Stage, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

const CONTAINERD: &str = "#!/bin/sh
case $1 in --version) echo containerd github.com/containerd/containerd v2.1.9 0; exit ;; esac
echo containerd >> /run/containerd.starts
exec sleep infinity
";

/// What each script begins with: the machine is set up, the daemon keeps it so, and both engines run. `$restart` is the
/// daemon's, which waits for `$settle` seconds.
const START: &str = r#"
says() { systemctl show --value --property=$1 rocworker; }
configure() { printf 'boot: {unit: false}\ndocker: {configure: never}\ndaemon: {restart: %s, settle-s: %s}\n%s\n' $restart $settle "$1" > /etc/rocworker/config.yaml; }
install -m 755 /etc/staged/system-containerd /usr/bin/containerd
chmod 755 /usr/lib/rocworker/runc-amd-wrapper
mkdir -p /etc/rocworker /etc/systemd/system/rocworker.service.d
printf '[Service]\nStandardError=append:/run/said\n' > /etc/systemd/system/rocworker.service.d/test.conf
: > /run/systemd/container
groupadd --system render 2>/dev/null || true
configure 'containerd: {configure: never}'
rocworker apply > /run/applied 2>&1 || { cat /run/applied /run/said >&2; exit 1; }
systemctl start containerd concourse-worker
until_true '[ "$(says StatusText)" = "all as it should be" ] && [ -s /run/worker ] && [ -s /run/containerd.starts ]'
"#;

/// None where the calling test is to be skipped.
fn boot(restart: &str, settle: u32, script: &str) -> Option<String> {
    if !real::require_root(&["unshare", "systemctl", "systemd-run", "groupadd"]) {
        return None;
    }
    let stage = Stage::set(&Machine::demo());
    stage.put_worker();
    stage.put("usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
    stage.put("etc/staged/system-containerd", CONTAINERD);
    stage.put("etc/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n");
    let begin = format!("restart={restart}\nsettle={settle}\ninstall -m 755 {PROGRAM} /usr/bin/rocworker\n");
    Some(stdout(&stage.boot(&format!("{begin}{WORKER_SET_UP}{START}{script}"))))
}

/// Of the demo's machine.
const TAGS: &str = "gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=9,gfx942,gfx1100";

#[test]
fn real_a_daemon_that_may_restart_at_once_restarts_each_engine_once_for_all_that_changed() {
    let Some(out) = boot(
        "now",
        2,
        r#"
configure 'tag: a'
until_true 'grep -q linux,a, /etc/rocworker/concourse.env'
configure 'tag: b'
until_true '[ $(grep -c started /run/worker) = 2 ] && [ $(wc -l < /run/containerd.starts) = 2 ]'
until_true '[ "$(says StatusText)" = "all as it should be" ]'
cat /run/worker /run/containerd.starts
"#,
    ) else {
        return;
    };
    assert_eq!(out, format!("started as linux,{TAGS}\nstarted as linux,b,{TAGS}\ncontainerd\ncontainerd\n"));
}

#[test]
fn real_a_daemon_that_drains_has_the_worker_end_its_build_and_starts_it_again() {
    let Some(out) = boot(
        "drain",
        0,
        r#"
configure 'tag: a'
until_true 'grep -q landing /run/worker'
echo the build ends
touch /run/built
until_true '[ $(grep -c started /run/worker) = 2 ] && [ $(wc -l < /run/containerd.starts) = 2 ]'
until_true '[ "$(says StatusText)" = "all as it should be" ]'
cat /run/worker /run/containerd.starts
"#,
    ) else {
        return;
    };
    assert_eq!(
        out,
        format!(
            "the build ends\nstarted as linux,{TAGS}\nlanding\nstarted as linux,a,{TAGS}\ncontainerd\ncontainerd\n"
        )
    );
}

#[test]
fn real_a_daemon_that_never_restarts_says_what_waits_for_a_restart() {
    let Some(out) = boot(
        "never",
        0,
        r#"
configure 'tag: a'
until_true 'says StatusText | grep -q pending'
says StatusText
looks() { rocworker --output json status | sed -n 's/.*"looks": \([0-9]*\).*/\1/p'; }
before=$(looks)
systemctl reload rocworker
until_true '[ $(looks) -gt $before ]'
rocworker status | grep pending
cat /run/worker /run/containerd.starts
# Somebody makes them.
systemctl restart concourse-worker containerd
systemctl reload rocworker
until_true '[ "$(says StatusText)" = "all as it should be" ]'
"#,
    ) else {
        return;
    };
    assert_eq!(
        out,
        format!(
            "2 pending restarts\n\
             pending: restart concourse-worker.service, once its work is done (SIGUSR1)\n\
             pending: systemctl restart containerd.service\n\
             the daemon keeps this machine so: 2 pending restarts\nstarted as linux,{TAGS}\ncontainerd\n"
        )
    );
}
