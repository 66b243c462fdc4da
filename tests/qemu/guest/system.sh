# The steps in systemd's machine, once it has started; a unit runs them.
. /test/steps.sh

# show UNIT…: what tests/qemu/tests/it/init/units.rs reads.
show() {
    systemctl show --property=Id,ActiveState,Result,MainPID,NRestarts --property=InactiveExitTimestampMonotonic \
        --property=ActiveEnterTimestampMonotonic,ActiveExitTimestampMonotonic,InactiveEnterTimestampMonotonic \
        --property=ExecMainStartTimestampMonotonic,ExecMainExitTimestampMonotonic "$@"
}

# Bounded, so that a failure ends.
until_true() {
    n=0
    until "$@"; do
        n=$((n + 1)); [ $n -lt 100 ] || { echo "never: $*" >&2; return 1; }
        sleep 0.1
    done
}

now() { cut -d ' ' -f 1 /proc/uptime; }
pid() { systemctl show --value --property=MainPID rocworker; }
# says RESTARTS TEXT
says() {
    [ "$(systemctl show --property=NRestarts,StatusText rocworker | sort)" = "NRestarts=$1
StatusText=$2" ]
}
# What came before what is told in any case.
started() {
    until_true says 0 "all as it should be"
    is_well=$?
    show driver rocworker-partition rocworker-boot containerd concourse-worker rocworker
    return $is_well
}
spec() { [ -e /etc/cdi/amd.json ]; }
no_spec() { ! spec; }

lose() { now; rmmod vgem && until_true no_spec && now; }
regain() { now; load vgem && until_true spec && now && cat /etc/cdi/amd.json; }

looked_again() { rocworker --output json status >/tmp/status && grep -q '"reload"' /tmp/status; }
reload() { pid >/tmp/before; systemctl reload rocworker && pid | cmp - /tmp/before && until_true looked_again && cat /tmp/status; }

# What the unit's control group lets a process open: KFD asks the same of who reads its topology.
opens() { sh -c 'echo $$ >/sys/fs/cgroup/system.slice/rocworker.service/cgroup.procs; exec 3<>"$1"' sh "$1"; }
devices() { opens /dev/dri/renderD128 && ! opens /dev/ttyS1; }

# It is found by its watchdog while the journal is read.
hang() { kill -STOP $(pid) && journalctl --quiet --output=cat -u rocworker-partition -u rocworker-boot -u containerd; }
# systemd keeps the status of the one before until the next one is ready.
again() {
    until_true says 1 "all as it should be" && until_true systemctl --quiet is-active rocworker && show rocworker
}
stop() { systemctl stop rocworker && show rocworker; }

# need NAME COMMAND…: a step without which there is no use in the next ones.
need() {
    step "$@"
    [ $status = 0 ] || finish
}

finish() {
    echo "@@ done" >/dev/ttyS1
    poweroff -f
}

step found head /run/record.containerd /run/record.worker
need started started
need lose lose
need regain regain
need reload reload
need devices devices
need hang hang
need again again
need stop stop
need journal journalctl --quiet --output=cat -u rocworker
need failed systemctl --failed --quiet
finish
