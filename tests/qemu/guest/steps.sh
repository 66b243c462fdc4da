#!/bin/busybox sh
# How the first process of each machine begins; its steps follow. What comes of a step is written to the second serial
# port, and the marks are read by tests/qemu/src/answers.rs.

/bin/busybox mkdir -p /proc /sys /dev /run /tmp
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /run
mount -t tmpfs none /tmp

step() {
    name=$1; shift
    "$@" </dev/null >/tmp/stdout 2>/tmp/stderr
    status=$?
    {
        echo "@@ begin $name"; cat /tmp/stdout; echo
        echo "@@ stderr"; cat /tmp/stderr; echo
        echo "@@ end $name $status"
    } >/dev/ttyS1
}

load() {
    for module in $(cat "/modules/$1"); do
        [ -d "/sys/module/$(echo "$module" | tr - _)" ] || insmod "/modules/$module.ko" || return
    done
}
