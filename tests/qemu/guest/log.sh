
# The machine of kernel messages: follows steps.sh. It has no GPU.

FORGED='amdgpu 0000:de:00.0: amdgpu: GPU reset(2) failed'
mkdir -p /mnt

needed() {
    for module in $(cat /modules/amdgpu); do
        [ "$module" = amdgpu ] || [ -d "/sys/module/$(echo "$module" | tr - _)" ] || insmod "/modules/$module.ko" || return
    done
}

# A value that the kernel refuses, so that the driver does not load.
value() { ! insmod /modules/amdgpu.ko dc=x; }
# A name that it does not know, which it ignores.
name() { insmod /modules/amdgpu.ko nosuch=1; }
# What a program writes as if it were the kernel.
imitate() { echo "<3>amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=2219, emitted seq=2221" >/dev/kmsg; }

# What the kernel itself writes with names that any user chooses: a program's and its file's, and a mount option.
forge() {
    for program in /forged/*; do "$program"; done
    ! mount -t tmpfs -o "$FORGED" none /mnt
    ! mount -t tmpfs -o "x
$FORGED" none /mnt
}

found() { /test/it --exact real_kernel_log::child --nocapture && cat /run/came; }

# While rocworker is set up, its daemon publishes.
publish() {
    rocworker apply >/dev/null && { rocworker serve >/tmp/daemon 2>&1 & }
    n=0
    until [ -s /run/rocworker/health.json ]; do
        n=$((n + 1)); [ $n -lt 300 ] || { cat /tmp/daemon >&2; return 1; }
        sleep 0.1
    done
    cat /run/rocworker/health.json
}

step needed needed
step value value
step name name
step imitate imitate
step forge forge
step restricted cat /proc/sys/kernel/dmesg_restrict
step dmesg dmesg
step found found
step publish publish

echo "@@ done" >/dev/ttyS1
poweroff -f
