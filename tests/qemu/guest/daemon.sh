
# The daemon's machine: follows steps.sh. What is made up is /sys: a laid-out one in which the machine's card is bound and
# has vgem's render node. The kernel's own stands at /realsys. Nodes, modules and events are the kernel's.

lay_sys() {
    mkdir -p /realsys && mount -o rbind /sys /realsys && mount -o rbind /laid/sys /sys
}

# Without the driver: it comes under the daemon. What vgem stands on stays loaded.
start() {
    load vgem && rmmod vgem && lay_sys && rocworker apply
}

# The test's program, started again in here.
measure() {
    /test/it --exact real_daemon::child --nocapture && cat /run/came
}

export RUST_BACKTRACE=1
step release uname -r
step start start
rocworker serve >/tmp/daemon 2>&1 &
echo $! >/run/pid
step measure measure
step daemon cat /tmp/daemon

echo "@@ done" >/dev/ttyS1
poweroff -f
