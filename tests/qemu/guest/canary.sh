#!/bin/busybox sh
# rocworker doctor --canary through a containerd of its own. What is made up is /sys: a laid-out one in which the card
# is bound and has vgem's render node, with the number of the real /dev/kfd. Both nodes' drivers are the kernel's.

major=$(awk '$2 == "kfd" { print $1 }' /proc/devices)
cd /laid/sys || exit
echo "$major:0" >devices/virtual/kfd/kfd/dev
mv dev/char/241:0 "dev/char/$major:0"
mkdir -p fs/cgroup
mount -o rbind /sys/fs/cgroup fs/cgroup
mount -o rbind /laid/sys /sys
mkdir -p /usr/lib/rocworker /whole
cp /bin/runc-amd-wrapper /usr/lib/rocworker/runc-amd-wrapper
# The kernel's first root file system cannot be pivoted away from; a mount of it can.
mount -o rbind / /whole
chroot /whole containerd --config /etc/containerd.toml >/tmp/canary-containerd 2>&1 &
for n in $(seq 300); do
    chroot /whole ctr version >/dev/null 2>&1 && break
    sleep 0.1
done
chroot /whole rocworker --output json doctor --canary
status=$?
killall containerd
cat /tmp/canary-containerd >&2
exit $status
