//! The unit under a real systemd as process 1, in its own sandbox: what it may do there, and what systemd does with it.

use layout::Machine;
use support::real;
use support::stage::{Stage, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// What each script begins with: a machine of its own that was set up, with the program where a package puts it.
const START: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
# Bounded, so that a failure ends.
until_true() { n=0; until eval "$1"; do n=$((n + 1)); [ $n -lt 400 ] || { echo "never: $1" >&2; systemctl status rocworker >&2; cat /run/said /run/applied /run/rocworker/health.json >&2; exit 1; }; sleep 0.05; done; }
says() { systemctl show --value --property=$1 rocworker; }
mkdir -p /etc/rocworker /etc/systemd/system/rocworker.service.d
chmod 755 /usr/lib/rocworker/runc-amd-wrapper
printf '[Service]\nStandardError=append:/run/said\nWatchdogSec=2\nRestartSec=0\n' > /etc/systemd/system/rocworker.service.d/test.conf
groupadd --system render 2>/dev/null || true
printf 'boot: {unit: false}\ncontainerd: {configure: never}\ndocker: {configure: never}\nwrapper: {requests: count}\n' > /etc/rocworker/config.yaml
rocworker apply > /run/applied 2>&1 || { cat /run/applied /run/said >&2; systemctl status rocworker >&2; exit 1; }
until_true '[ "$(says StatusText)" = "all as it should be" ]'
"#;

fn boot(is_container: bool, script: &str) -> Option<String> {
    if !real::require_root(&["unshare", "systemctl", "systemd-analyze", "groupadd", "nsenter", "busybox"]) {
        return None;
    }
    let stage = Stage::set(&Machine::demo());
    stage.put("usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
    // What systemd was told by whoever started it: it is in a container, where rocworker sets the nodes itself.
    let around = if is_container { "" } else { ": > /run/systemd/container\n" };
    let install = format!("install -m 755 {PROGRAM} /usr/bin/rocworker\n");
    Some(stdout(&stage.boot(&format!("{install}{around}{START}{script}"))))
}

#[test]
fn real_systemd_starts_the_unit_when_it_is_applied_and_undo_takes_it_away() {
    let Some(out) = boot(
        false,
        r#"
grep rocworker.service /run/applied
says ActiveState
says Type
ls -l /etc/systemd/system/multi-user.target.wants/rocworker.service | sed 's/.*-> //'
rocworker status | grep daemon
rocworker apply | tail -1
rocworker undo | grep rocworker.service
systemctl is-active rocworker || true
ls /etc/systemd/system/rocworker.service /etc/cdi/amd.json 2>&1 | grep -c 'No such file'
"#,
    ) else {
        return;
    };
    assert_eq!(
        out,
        "created /etc/systemd/system/rocworker.service: it follows the machine's GPUs while it runs
created /etc/systemd/system/multi-user.target.wants/rocworker.service: systemd runs it at each start
done: rocworker.service was started
active
notify
/etc/systemd/system/rocworker.service
the daemon keeps this machine so: all as it should be
Already in sync; no changes.
removed /etc/systemd/system/multi-user.target.wants/rocworker.service: it was not there before
removed /etc/systemd/system/rocworker.service: it was not there before
done: rocworker.service was stopped
inactive
2
"
    );
}

#[test]
fn real_in_its_sandbox_it_puts_files_and_nodes_right_and_can_do_nothing_else() {
    let Some(out) = boot(
        true,
        r#"
pid=$(says MainPID)
grep -E '^(NoNewPrivs|Seccomp|CapBnd):' /proc/$pid/status
inside() { nsenter --target $pid --mount "$@" 2>&1 | sed 's/.*: //'; }
inside touch /usr/bin/x
inside touch /boot/x
inside touch /var/x
inside find /root /home -mindepth 1
# In this sandbox it is read what another user's process has open, for that alone with CAP_SYS_PTRACE.
setpriv --reuid=65534 --regid=65534 --clear-groups sleep 1000 < /dev/null > /dev/null 2>&1 &
other=$!
reads() {
    sed -e "s|^Type=.*|Type=oneshot|; s|^ExecStart=.*|ExecStart=/bin/cat /proc/$other/fdinfo/0|" \
        -e '/^ExecReload=/d; /^Watchdog/d; /^Restart/d; /^NotifyAccess/d' -e "$1" \
        /etc/systemd/system/rocworker.service > /run/systemd/system/reads.service
    systemctl daemon-reload
    systemctl start reads 2> /dev/null && echo "reads it: $2" || echo "reads nothing: $2"
}
reads '' 'as it is'
reads 's/ CAP_SYS_PTRACE//' 'without the capability'
kill $other
sum=$(sha256sum < /etc/cdi/amd.json)
echo '{}' > /etc/cdi/amd.json
until_true '[ "$(sha256sum < /etc/cdi/amd.json)" = "$sum" ]'
chmod 600 /dev/dri/renderD129
chgrp 0 /dev/dri/renderD129
until_true '[ "$(stat -c "%a %G" /dev/dri/renderD129)" = "660 render" ]'
rm /dev/dri/renderD130
until_true '! grep -q renderD130 /etc/cdi/amd.json'
# One of its unit's own files: it begins anew by it.
sed -i 's/^TasksMax=.*/TasksMax=9/' /etc/systemd/system/rocworker.service
until_true '[ "$(says MainPID)" != $pid ] && [ "$(says StatusText)" = "all as it should be" ]'
grep TasksMax /etc/systemd/system/rocworker.service
ls -l /proc/$(says MainPID)/fd | grep -c -E '/dev/(dri|kfd)' || true
"#,
    ) else {
        return;
    };
    let expected = "CapBnd:\t000000040008000b
NoNewPrivs:\t1
Seccomp:\t2
Read-only file system
Read-only file system
Read-only file system
reads it: as it is
reads nothing: without the capability
TasksMax=256
0
";
    assert_eq!(out, expected);
}

/// The kernel is this machine's own. What the unit may not read, it would say in `unknown`.
#[test]
fn real_in_its_sandbox_it_reads_the_kernels_log_and_publishes_health() {
    let Some(out) = boot(
        true,
        r#"
health=/run/rocworker/health.json
until_true '[ -s $health ]'
grep -c 'dev/kmsg: No such file' $health
# systemd allows the nodes that are there when it starts the unit.
mknod -m 600 /dev/kmsg c 1 11
systemctl restart rocworker
until_true '! grep -q dev/kmsg $health'
stat -c '%a %U' $health
grep -o '"schema_version":1' $health
"#,
    ) else {
        return;
    };
    assert_eq!(out, "1\n644 root\n\"schema_version\":1\n");
}

/// systemd mounts folders onto themselves in there, so that they may be written.
#[test]
fn real_in_its_sandbox_what_is_gone_is_hidden_by_no_mount_of_the_sandbox() {
    let Some(out) = boot(
        false,
        r#"
# The wrapper reads the spec at its usual path alone.
sed -i '/^wrapper:/d' /etc/rocworker/config.yaml
printf 'cdi: {path: /usr/local/share/cdi/amd.json}\n' >> /etc/rocworker/config.yaml
rocworker apply >> /run/applied 2>&1
until_true 'grep -q " /usr/local/share/cdi " /proc/$(says MainPID)/mountinfo'
until_true '[ "$(says StatusText)" = "all as it should be" ]'
grep -c ' /usr/local/share/cdi ' /proc/self/mountinfo || true
sed -n '/"mounts"/,/]/p' /var/lib/rocworker/receipt.json > /run/mounts
# Gone before the daemon can take it back itself: it is wanted no more when it looks.
kill -STOP $(says MainPID)
rm /usr/local/share/cdi/amd.json
sed -i '1i compute-runtime: none' /etc/rocworker/config.yaml
kill -CONT $(says MainPID)
until_true '! grep -q /etc/rocworker/wrapper.json /var/lib/rocworker/receipt.json'
rocworker status --output json | grep -e mounted || echo nothing is hidden
grep -c /share/cdi/amd.json /var/lib/rocworker/receipt.json || true
# And what the daemon writes there is on no other mount than what an apply does.
sed -i 1d /etc/rocworker/config.yaml
until_true 'grep -q /share/cdi/amd.json /var/lib/rocworker/receipt.json'
sed -n '/"mounts"/,/]/p' /var/lib/rocworker/receipt.json | diff /run/mounts - && echo the same mounts
"#,
    ) else {
        return;
    };
    assert_eq!(out, "0\nnothing is hidden\n0\nthe same mounts\n");
}

#[test]
fn real_systemd_begins_one_that_hangs_anew_reloads_it_and_ends_it_within_a_second() {
    let Some(out) = boot(
        false,
        r#"
pid=$(says MainPID)
kill -STOP $pid
until_true '[ "$(says NRestarts)" = 1 ] && [ "$(says StatusText)" = "all as it should be" ]'
until_true '! kill -0 $pid 2>/dev/null'
pid=$(says MainPID)
echo 'compute-runtime: [' > /etc/rocworker/config.yaml
until_true 'says StatusText | grep -q "^by the last good configuration"'
printf 'boot: {unit: false}\n' > /etc/rocworker/config.yaml
systemctl reload rocworker
until_true '[ "$(says StatusText)" = "all as it should be" ]'
[ "$(says MainPID)" = $pid ] && echo the same process
begun=$(cut -d ' ' -f 1 /proc/uptime)
systemctl stop rocworker
ended=$(cut -d ' ' -f 1 /proc/uptime)
echo "$begun $ended" | awk '{ print ($2 - $1 < 1) ? "within a second" : "after " $2 - $1 " s" }'
says Result
rocworker status | grep -c daemon || true
"#,
    ) else {
        return;
    };
    assert_eq!(out, "the same process\nwithin a second\nsuccess\n0\n");
}

#[test]
fn real_in_its_sandbox_a_go_engine_tells_its_version() {
    // Debian 12's, unpacked by `cargo xtask test`: of a Go whose runtime calls setrlimit(2) at its start.
    let Some(containerd) = real::require_root_and_built("ROCWORKER_CONTAINERD_BOOKWORM", &["unshare"]) else {
        return;
    };
    let script = format!(
        r#"
cp {} /usr/bin/containerd
sed -i 's/containerd: .configure: never./containerd: {{configure: auto}}/' /etc/rocworker/config.yaml
rocworker apply >> /run/applied 2>&1 || true
# containerd's and the wrapper's.
grep -c '"version"' /var/lib/rocworker/memory.json
# Another program by its identity, as an upgrade leaves one: what is remembered of the first does not count.
cp /usr/bin/containerd /usr/bin/containerd.new
mv /usr/bin/containerd.new /usr/bin/containerd
inode=$(stat -c %i /usr/bin/containerd)
grep -c "inode.: $inode," /var/lib/rocworker/memory.json || true
systemctl reload rocworker
until_true 'grep -q "inode.: $inode," /var/lib/rocworker/memory.json'
sed -n '/"versions"/,/^  }}/p' /var/lib/rocworker/memory.json >&2
"#,
        containerd.display()
    );
    let Some(out) = boot(false, &script) else { return };
    assert_eq!(out, "2\n0\n");
}

#[test]
fn real_systemd_analyze_finds_no_fault_and_little_exposure() {
    let Some(out) = boot(
        false,
        r#"
unit=/etc/systemd/system/rocworker.service
rm -r $unit.d
systemd-analyze verify --man=no $unit && echo verified
systemd-analyze security --offline=true --threshold=30 $unit > /run/exposure && echo not more than 3.0
tail -1 /run/exposure >&2
tail -1 /run/exposure | grep -o 'level for rocworker.service: [0-9.]*'
"#,
    ) else {
        return;
    };
    let level = out.strip_prefix("verified\nnot more than 3.0\nlevel for rocworker.service: ").expect(&out);
    assert!(level.trim().parse::<f64>().unwrap() <= 3.0, "{level}");
}
