#!/bin/busybox sh
# modprobe, which notes what came of it. A load brings the made-up folders of /sys back: their own went with the module.
/kmod/modprobe "$@"
status=$?
state=unloaded
[ ! -e /sys/module/amdgpu/initstate ] || state=$(cat /sys/module/amdgpu/initstate)
echo "modprobe $*: $status, amdgpu is $state" >>/run/order
if [ $state = live ]; then
    for folder in devices/virtual/kfd/kfd/topology class/drm devices/pci0000:00/0000:00:05.0; do
        mount --bind /laid/sys/$folder /sys/$folder || exit 9
    done
fi
exit $status
