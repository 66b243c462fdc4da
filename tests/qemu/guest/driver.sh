# The driver of systemd's machine, which comes late: once the partition unit waits for it. On a whole machine udev loads it.
#
# What is made up are those folders of /sys that say whose the node of vgem is: in them the card is bound and has it, and
# KFD knows it. Modules, nodes, events, cgroups and all else of /sys are the kernel's.
. /test/steps.sh

until [ "$(systemctl show --value --property=ActiveState rocworker-partition)" = activating ]; do sleep 0.1; done
sleep 1
load amdgpu && load vgem || exit
for folder in devices/virtual/kfd/kfd/topology class/drm devices/pci0000:00/0000:00:05.0; do
    mount --bind /laid/sys/$folder /sys/$folder || exit
done
