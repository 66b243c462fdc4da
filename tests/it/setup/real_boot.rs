//! A real systemd as process 1 starts a machine whose driver comes up late: what engines find when they start. The
//! engines are stand-ins that write down what was so at that moment; their units' names are the real ones'.

use layout::Machine;
use support::real;
use support::stage::{Stage, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// What an engine finds when it starts: the render nodes that amd.json names, who may open two nodes, a worker's tags.
const RECORD: &str = r#"#!/bin/sh
{
    if [ -e /etc/cdi/amd.json ]; then
        echo "spec: $(grep -o 'renderD[0-9]*' /etc/cdi/amd.json | sort -u | tr '\n' ' ')"
    else
        echo "no spec"
    fi
    for node in /dev/kfd /dev/dri/renderD129; do [ ! -e $node ] || stat -c '%n %a %G' $node; done
    [ -z "$CONCOURSE_TAG" ] || echo "tags: $CONCOURSE_TAG"
} > /run/record.$1.part
mv /run/record.$1.part /run/record.$1
"#;

const CONTAINERD: &str = "[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /etc/staged/record containerd
";

/// Of the charm's unit (fourdollars/concourse-ci-machine, lib/concourse_worker.py) what starts the worker.
const WORKER: &str = "[Service]
Type=simple
EnvironmentFile=/var/lib/concourse-worker/worker-config.env
ExecStart=/var/lib/concourse/bin/concourse worker
";

const CONCOURSE: &str = "#!/bin/sh
case $1 in --version) echo 7.14.3; exit ;; esac
sh /etc/staged/record worker
exec sleep infinity
";

const MULTI_USER: &str = "[Unit]
DefaultDependencies=no
Wants=containerd.service concourse-worker.service
After=containerd.service concourse-worker.service
";

/// What each script begins with: the machine was set up at an earlier start; none of its engines runs.
const START: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
# Bounded, so that a failure ends.
until_true() { n=0; until eval "$1"; do n=$((n + 1)); [ $n -lt 600 ] || { echo "never: $1" >&2; cat /run/boot /run/applied >&2; exit 1; }; sleep 0.05; done; }
mkdir -p /var/lib/concourse/bin /var/lib/concourse-worker /etc/rocworker /etc/systemd/system/rocworker-boot.service.d
install -m 755 /etc/staged/concourse /etc/staged/containerd /var/lib/concourse/bin/
chmod 755 /usr/lib/rocworker/runc-amd-wrapper
printf 'CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG=linux\nCONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir\n' > /var/lib/concourse-worker/worker-config.env
printf '[Service]\nStandardOutput=append:/run/boot\nStandardError=append:/run/boot\n' > /etc/systemd/system/rocworker-boot.service.d/journal.conf
: > /run/boot
printf 'containerd: {configure: never}\ndocker: {configure: never}\ndaemon: {unit: false}\n' > /etc/rocworker/config.yaml
groupadd --system render 2>/dev/null || true
engines_start() { until_true '[ -e /run/record.containerd ] && [ -e /run/record.worker ]'; }
# The worker's has the same, and its tags.
engines_found() { engines_start; cat /run/record.containerd; echo "worker $(diff /run/record.containerd /run/record.worker | grep '^>')"; }
"#;

/// A machine of its own and no container: what systemd was told by whoever started it is not seen then.
const MACHINE: &str = ": > /run/systemd/container\n";

/// The machine is set up, and then starts anew.
const APPLY: &str = "rocworker apply > /run/applied 2>&1 || { cat /run/applied >&2; exit 1; }\n";

/// The driver's nodes are not there yet at this start, and the engines are to be started.
const LATE: &str = "cp -a /dev/dri /run/dri
rm /dev/dri/renderD*
systemctl start --no-block multi-user.target
until_true 'grep -q waiting /run/boot'
";

/// The demo's GPUs; renderD128 is another vendor's.
const ALL: &str = "spec: renderD129 renderD130 renderD131 renderD132 renderD133 renderD134 renderD135 renderD136 renderD137 \n";
const NODES: &str = "/dev/kfd 660 render\n/dev/dri/renderD129 660 render\n";
const TAGS: &str =
    "worker > tags: linux,gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=9,gfx942,gfx1100\n";
const NOT_THERE: &str = "9 GPUs, of which GPU 0 (0000:03:00.0): /dev/dri/renderD129 is not there";

fn boot(script: &str) -> Option<String> {
    if !real::require_root(&["unshare", "systemctl", "systemd-analyze", "groupadd"]) {
        return None;
    }
    let stage = Stage::set(&Machine::demo());
    stage.put("usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
    stage.put("etc/systemd/system/containerd.service", CONTAINERD);
    stage.put("etc/systemd/system/concourse-worker.service", WORKER);
    stage.put("etc/systemd/system/multi-user.target", MULTI_USER);
    stage.put("etc/staged/record", RECORD);
    stage.put("etc/staged/concourse", CONCOURSE);
    stage.put(
        "etc/staged/containerd",
        "#!/bin/sh\necho containerd github.com/containerd/containerd v2.1.4 1234\n",
    );
    // Where a package puts it.
    let install = format!("install -m 755 {PROGRAM} /usr/bin/rocworker\n");
    Some(stdout(&stage.boot(&format!("{START}{install}{script}"))))
}

#[test]
fn real_engines_wait_for_a_driver_that_comes_late_and_find_its_gpus() {
    let Some(out) = boot(&format!(
        r"
{MACHINE}{APPLY}{LATE}
ls /etc/cdi /run/record.* 2>/dev/null || true
cp -a /run/dri/. /dev/dri/
engines_found
systemctl is-active rocworker-boot
cat /run/boot | grep -c '^created /etc/cdi/amd.json'
rocworker boot
rocworker plan | tail -1
"
    )) else {
        return;
    };
    let after = "active\n1\nThe published GPUs are those of this machine; no changes.\nnothing to change\n";
    // While it waits, nothing of the last start is told, and no engine has started.
    assert_eq!(out, format!("{ALL}{NODES}{TAGS}{after}"));
}

/// What was told at the last start is taken away while its GPUs are not there, and is not forgotten.
#[test]
fn real_beside_a_wrong_configuration_engines_find_what_they_were_told_of_a_driver_that_comes_late() {
    let Some(out) = boot(&format!(
        r"
{MACHINE}{APPLY}
echo 'no-such-key: 1' >> /etc/rocworker/config.yaml
{LATE}
ls /etc/cdi 2>/dev/null || true
cp -a /run/dri/. /dev/dri/
engines_found
systemctl is-failed rocworker-boot
systemctl show --property=ExecMainStatus rocworker-boot
grep -o 'no-such-key is no key' /run/boot
"
    )) else {
        return;
    };
    let after = "failed\nExecMainStatus=2\nno-such-key is no key\n";
    assert_eq!(out, format!("{ALL}{NODES}{TAGS}{after}"));
}

#[test]
fn real_engines_start_without_what_does_not_come_in_time_and_the_journal_says_so() {
    let Some(out) = boot(&format!(
        r"
echo 'boot: {{wait-s: 1}}' >> /etc/rocworker/config.yaml
{MACHINE}{APPLY}{LATE}
engines_found
systemctl is-failed rocworker-boot
systemctl show --property=ExecMainStatus rocworker-boot
grep ERROR /run/boot
cp -a /run/dri/. /dev/dri/
rocworker apply | grep amd.json
"
    )) else {
        return;
    };
    assert_eq!(
        out,
        format!(
            "no spec\n/dev/kfd 660 render\nworker > tags: linux\nfailed\nExecMainStatus=1\n\
             ERROR not there after 1 s, and engines start without: {NOT_THERE}: in a container it was not passed in, on a \
             host udev did not make it; rocworker doctor says more, and rocworker apply adds what comes later\n\
             created /etc/cdi/amd.json: engines find the GPUs here\n"
        )
    );
}

#[test]
fn real_engines_start_when_it_is_killed_or_takes_longer_than_systemd_lets_it() {
    for end in ["systemctl kill --signal=KILL rocworker-boot", "true"] {
        let Some(out) = boot(&format!(
            r"
{MACHINE}{APPLY}
printf 'TimeoutStartSec=2\n' >> /etc/systemd/system/rocworker-boot.service.d/journal.conf
systemctl daemon-reload
{LATE}
{end}
engines_found
systemctl is-failed rocworker-boot
cp -a /run/dri/. /dev/dri/
rocworker boot | tail -1
rocworker plan | tail -1
"
        )) else {
            return;
        };
        let without = "no spec\n/dev/kfd 660 render\nworker > tags: linux\nfailed\n";
        assert_eq!(
            out,
            format!("{without}3 changes made before engines start\nnothing to change\n"),
            "{end}"
        );
    }
}

#[test]
fn real_in_a_container_nodes_are_set_at_each_start_whatever_they_are_called_by_then() {
    let Some(out) = boot(&format!(
        r"
{APPLY}
ls /etc/tmpfiles.d/rocworker.conf /etc/udev/rules.d/70-amdgpu.rules 2>/dev/null || true
# As a container's manager makes them, without one that it does not pass in any more.
for node in /dev/kfd /dev/dri/renderD*; do chown root:root $node; chmod 600 $node; done
rm /dev/dri/renderD137
systemctl start --no-block multi-user.target
engines_found
grep waiting /run/boot || true
# Another vendor's, which stays as it is.
stat -c '%n %a %G' /dev/dri/renderD128
"
    )) else {
        return;
    };
    let fewer = ALL.replace("renderD137 ", "");
    let tags = TAGS.replace("gpu-count=9", "gpu-count=8");
    assert_eq!(out, format!("{fewer}{NODES}{tags}/dev/dri/renderD128 600 root\n"));
}

#[test]
fn real_engines_start_where_the_program_has_gone_and_undo_takes_the_unit_back() {
    let Some(out) = boot(&format!(
        r"
{MACHINE}{APPLY}
systemd-analyze verify /etc/systemd/system/rocworker-boot.service 2>&1
systemctl is-enabled rocworker-boot
mv /usr/bin/rocworker /run/rocworker
systemctl start --no-block multi-user.target
engines_found
systemctl show --property=ActiveState,ConditionResult rocworker-boot | sort
install -m 755 /run/rocworker /usr/bin/rocworker
echo 'boot: {{unit: false}}' >> /etc/rocworker/config.yaml
rocworker plan | grep -o '^remove .*rocworker-boot.service'
rocworker undo > /run/applied 2>&1
rm -r /etc/systemd/system/rocworker-boot.service.d
systemctl daemon-reload
systemctl show --property=LoadState rocworker-boot
ls /etc/systemd/system/multi-user.target.wants | grep rocworker || true
"
    )) else {
        return;
    };
    assert_eq!(
        out,
        format!(
            "enabled\n{ALL}{NODES}{TAGS}ActiveState=inactive\nConditionResult=no\n\
             remove /etc/systemd/system/multi-user.target.wants/rocworker-boot.service\n\
             remove /etc/systemd/system/rocworker-boot.service\nLoadState=not-found\n"
        )
    );
}
