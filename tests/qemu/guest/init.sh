
# The driver's machine: follows steps.sh. Runs the steps and switches the machine off.

# Seconds from the kernel's start to the moment at which there is a /dev/kfd.
load_amdgpu() {
    load amdgpu && [ -c /dev/kfd ] && cut -d ' ' -f 1 /proc/uptime
}

# What udev's own rules do on a whole machine: group render and mode 0660 (50-udev-default.rules).
as_udev_does() {
    chgrp 104 /dev/kfd /dev/dri/renderD128 && chmod 660 /dev/kfd /dev/dri/renderD128
    chgrp 44 /dev/dri/card0 && chmod 660 /dev/dri/card0
}

# Two things are made up: /sys/dev/char is a copy in which the number of vgem's render node leads to the PCI device of
# AMD's, and amdgpu drives that device. All else in the copy is the kernel's.
make_vgem_the_cards() {
    mkdir /tmp/card && ln -s ../../../bus/pci/drivers/amdgpu /tmp/card/driver
    mount --bind /tmp/card /sys/devices/pci0000:00/0000:00:05.0
    mkdir /tmp/char && cp -P /sys/dev/char/* /tmp/char/
    ln -snf ../../devices/pci0000:00/0000:00:05.0/drm/renderD128 /tmp/char/226:128
    mount -t tmpfs none /sys/dev/char && cp -P /tmp/char/* /sys/dev/char/
    readlink /sys/dev/char/226:128
}

# Made up too, and gone with the step's own mounts: vgem's numbers lead to a device of vendor AMD. What task-check opens
# and asks is the drivers'.
check_as_a_task() {
    unshare -m sh -c '
        mount -t tmpfs none /sys/dev/char && mkdir -p /sys/dev/char/226:0/device /sys/dev/char/226:128/device &&
        echo 0x1002 >/sys/dev/char/226:0/device/vendor && echo 0x1002 >/sys/dev/char/226:128/device/vendor &&
        rocworker task-check'
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

# A launcher's PATH, as Concourse's containerd gets it: its shims find the wrapper as runc.
start_containerd() {
    PATH=/opt/shim:/bin containerd --config /etc/containerd.toml >/tmp/containerd 2>&1 &
    for n in $(seq 300); do
        ctr version >/dev/null 2>&1 && cut -d ' ' -f 1 /proc/uptime && return
        sleep 0.1
    done
    cat /tmp/containerd; return 1
}

# ctr_look ID FLAGS…: what a container saw comes by a file, since ctr loses the end of an output now and then.
ctr_look() {
    id=$1; shift
    ctr --namespace concourse run --rm --no-pivot --mount type=bind,src=/run/seen,dst=/seen,options=rbind:rw \
        "$@" --env PATH=/bin --rootfs /rootfs "$id" /bin/sh -c "sh /look >/seen/$id" || return
    cat "/run/seen/$id"
}

# A container that stays; a process that comes later; the record as long as it is there, and its end.
ctr_life() {
    ctr="ctr --namespace concourse"
    $ctr run --detach --no-pivot --env AMD_VISIBLE_DEVICES=0 --rootfs /rootfs life /bin/sleep 1000 || return
    records_of_concourse
    $ctr task exec --exec-id later life /bin/ask kfd /dev/kfd
    $ctr task kill --signal KILL life || return
    until $ctr task list | grep -q STOPPED; do sleep 0.1; done
    $ctr task delete life
    $ctr container delete life || return
    echo "left: $(records_of_concourse) $($ctr container list -q)"
}

# `runc run` removes its container by itself, so that the other containers here may have left theirs.
records_of_concourse() {
    ls /run/rocworker/records | grep concourse
}

containerds_containers() {
    step containerd start_containerd
    step containerd-version containerd --version
    step ctr-silent ctr_look silent
    step ctr-asks ctr_look asks --env AMD_VISIBLE_DEVICES=0
    # ctr's --no-pivot voids its --runc-binary: the shim has to find runc itself in the wrapper's place.
    ln -sf /bin/runc /opt/shim/runc
    step ctr-asks-of-runc ctr_look runc --env AMD_VISIBLE_DEVICES=0
    ln -sf /bin/runc-amd-wrapper /opt/shim/runc
    step ctr-stranger ctr_look stranger --env AMD_VISIBLE_DEVICES=1
    step ctr-life ctr_life
    killall containerd
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
step task-check-of-vgem rocworker task-check
step task-check check_as_a_task

mount -t cgroup2 none /sys/fs/cgroup
step v2-not-a-gpu contain v2 asks runc-amd-wrapper
step synthetic make_vgem_the_cards
containers v2
mkdir /run/seen
[ ! -x /bin/containerd ] || containerds_containers
[ ! -x /bin/containerd ] || step canary unshare -m sh /canary.sh

umount /sys/fs/cgroup
mount -t tmpfs none /sys/fs/cgroup
mkdir /sys/fs/cgroup/devices
step v1-mount mount -t cgroup -o devices none /sys/fs/cgroup/devices
containers v1

echo "@@ done" >/dev/ttyS1
poweroff -f
