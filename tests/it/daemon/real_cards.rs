//! Cards that come one by one under a daemon that may restart the worker. systemd is a real one; the worker is a stand-in,
//! and the cards' nodes are moved away and back.

use layout::Machine;
use support::booted_worker::WORKER_SET_UP;
use support::real;
use support::stage::{Stage, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// The machine is set up with one node of nine, and the worker runs as it was told then.
const START: &str = r#"
says() { systemctl show --value --property=$1 rocworker; }
comes() { mv /run/dri/renderD$1 /dev/dri/; until_true "grep -q gpu-count=$2, /etc/rocworker/concourse.env"; }
chmod 755 /usr/lib/rocworker/runc-amd-wrapper
mkdir -p /run/dri /etc/rocworker /etc/systemd/system/rocworker.service.d
mv /dev/dri/renderD13? /run/dri/
ls /run/dri | wc -l
printf '[Service]\nStandardError=append:/run/said\n' > /etc/systemd/system/rocworker.service.d/test.conf
: > /run/systemd/container
groupadd --system render 2>/dev/null || true
printf 'boot: {unit: false}\ncontainerd: {configure: never}\ndocker: {configure: never}\ndaemon: {restart: now, settle-s: 2}\n' > /etc/rocworker/config.yaml
rocworker apply > /run/applied 2>&1 || { cat /run/applied /run/said >&2; exit 1; }
systemctl start concourse-worker
until_true '[ "$(says StatusText)" = "all as it should be" ] && [ -s /run/worker ]'
"#;

#[test]
fn real_eight_cards_that_come_one_by_one_are_one_restart_also_where_the_daemon_begins_anew_meanwhile() {
    if !real::require_root(&["unshare", "systemctl", "systemd-run", "groupadd"]) {
        return;
    }
    let stage = Stage::set(&Machine::demo());
    stage.put_worker();
    stage.put("usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
    let script = r#"
# It has run for longer than it waits: what is not due now is not for its start.
second() { cut -d . -f 1 /proc/uptime; }
begun=$(second)
until_true '[ $(second) -gt $((begun + 2)) ]'
for n in 0 1 2 3; do comes 13$n $((n + 2)); done
before=$(says MainPID)
systemctl restart rocworker
[ "$(says MainPID)" != "$before" ] && echo another daemon
until_true '[ "$(says StatusText)" != "looking at the machine" ]'
says StatusText
for n in 4 5 6 7; do comes 13$n $((n + 2)); done
# systemd calls a worker started before the worker has written its line.
until_true '[ "$(says StatusText)" = "all as it should be" ] && grep -q "started as .*gpu-count=9" /run/worker'
sed 's/^started as .*gpu-count=\([0-9]*\).*/started with \1/' /run/worker
"#;
    let install = format!("install -m 755 {PROGRAM} /usr/bin/rocworker\n");
    let out = stdout(&stage.boot(&format!("{install}{WORKER_SET_UP}{START}{script}")));
    assert_eq!(out, "8\nanother daemon\n1 pending restart\nstarted with 1\nstarted with 9\n");
}
