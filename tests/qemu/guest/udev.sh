
# udev's machine: follows steps.sh. Its udevd starts with rocworker's rules alone, so that what they leave is what the
# kernel made; Debian's own come later.

rules=/etc/udev/rules.d/70-amdgpu.rules

nodes() {
    stat -c '%n %a %g' /dev/kfd /dev/dri/renderD128
}

load_drivers() {
    load amdgpu && load vgem && udevadm settle && nodes
}

# Twice: in 2 of 20 runs on a busy machine udevd 257 handled the first event by the rules from before the reload.
trigger() {
    udevadm control --reload && udevadm trigger --settle "$@" && udevadm settle || return
    udevadm trigger --settle "$@" && udevadm settle && nodes
}

# What rocworker runs after a change of its rules, here with KFD alone.
amds() {
    trigger --action=add /sys/class/kfd/kfd
}

everybodys() {
    trigger "--action=$1" --subsystem-match=kfd --subsystem-match=drm
}

with_rules() {
    # By a rename, as rocworker writes: udevd sees another file, not one that changes under its eyes.
    cp "/rules/$1" $rules.new && mv $rules.new $rules && amds
}

every_vendors() {
    cp /rules/every-vendors $rules && everybodys add
}

# The system's own rules, as a boot applies them.
with_debians_rules() {
    rm $rules && cp /rules/debian /usr/lib/udev/rules.d/50-udev-default.rules && trigger --action=add
}

by_hand() {
    chmod 640 /dev/dri/renderD128 && amds
}

without_rules() {
    rm $rules && everybodys change
}

step release uname -r
step version udevadm --version
cp /rules/render $rules
step udevd /usr/lib/systemd/systemd-udevd --daemon
step drivers load_drivers
step open with_rules open
step every-vendors every_vendors
chmod 600 /dev/dri/renderD128
step render with_rules render
step debian with_debians_rules
step debian-open with_rules open
step by-hand by_hand
step undone-changed without_rules
step undone amds

echo "@@ done" >/dev/ttyS1
poweroff -f
