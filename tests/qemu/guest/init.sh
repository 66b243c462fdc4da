#!/bin/busybox sh
# The first process of the machine: runs the steps, writes what came of each to the second serial port, and
# switches the machine off. The marks are read by tests/qemu/src/answers.rs.

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

# Seconds from the kernel's start to the moment at which there is a /dev/kfd.
load_amdgpu() {
    load amdgpu && [ -c /dev/kfd ] && cut -d ' ' -f 1 /proc/uptime
}

# What udev's own rules do on a whole machine: group render and mode 0660 (50-udev-default.rules).
as_udev_does() {
    chgrp 104 /dev/kfd /dev/dri/renderD128 && chmod 660 /dev/kfd /dev/dri/renderD128
    chgrp 44 /dev/dri/card0 && chmod 660 /dev/dri/card0
}

# The one thing that is made up: /sys/dev/char is a copy in which the number of vgem's render node leads to the
# PCI device of AMD's. All else in it is the kernel's.
make_vgem_the_cards() {
    mkdir /tmp/char && cp -P /sys/dev/char/* /tmp/char/
    ln -snf ../../devices/pci0000:00/0000:00:05.0/drm/renderD128 /tmp/char/226:128
    mount -t tmpfs none /sys/dev/char && cp -P /tmp/char/* /sys/dev/char/
    readlink /sys/dev/char/226:128
}

# contain HIERARCHY BUNDLE RUNTIME: runs a fresh copy of a bundle. The first root file system of a kernel cannot be
# pivoted away from.
contain() {
    rm -rf "/run/bundles/$1-$2"; mkdir -p /run/bundles
    cp -r "/bundles/$2" "/run/bundles/$1-$2"
    "$3" --root /run/runc run --no-pivot --bundle "/run/bundles/$1-$2" "$1-$2"
}

containers() {
    step "$1-plain" contain "$1" plain runc
    step "$1-allowed" contain "$1" allowed runc
    step "$1-asks-of-runc" contain "$1" asks runc
    step "$1-silent" contain "$1" silent runc-amd-wrapper
    step "$1-asks" contain "$1" asks runc-amd-wrapper
    step "$1-user" contain "$1" user runc-amd-wrapper
    step "$1-stranger" contain "$1" stranger runc-amd-wrapper
}

step release uname -r
step detect-without-driver rocworker detect --output json
step amdgpu load_amdgpu
step vgem load vgem
step udev as_udev_does
step kfd-major awk '$2 == "kfd" { print $1 }' /proc/devices
step nodes stat -c '%n %t:%T %a %g' /dev/kfd /dev/dri/renderD128 /dev/dri/card0
step kfd-link readlink /sys/dev/char/$(awk '$2 == "kfd" { print $1 }' /proc/devices):0
step detect rocworker detect --output json
step doctor rocworker doctor --output json
step host-kfd ask kfd /dev/kfd
step host-render ask drm /dev/dri/renderD128
step host-card ask drm /dev/dri/card0

mount -t cgroup2 none /sys/fs/cgroup
step v2-not-a-gpu contain v2 asks runc-amd-wrapper
step synthetic make_vgem_the_cards
containers v2

umount /sys/fs/cgroup
mount -t tmpfs none /sys/fs/cgroup
mkdir /sys/fs/cgroup/devices
step v1-mount mount -t cgroup -o devices none /sys/fs/cgroup/devices
containers v1

echo "@@ done" >/dev/ttyS1
poweroff -f
