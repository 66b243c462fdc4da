
# The machine of a switch of memory modes: follows steps.sh. kmod is real, and so is amdgpu. Made up are the folders of /sys in
# which the card is an MI300X with its modes; a file there takes what is written.

prepare() {
    # rocworker follows a link only where root alone writes each folder: an initramfs begins with 1777.
    chmod 755 /
    folder=/lib/modules/$(uname -r)/kernel
    mkdir -p "$folder" && cp /modules/*.ko "$folder/" && /sbin/depmod -a
}

export PATH=/sbin:/bin
step depmod prepare
step first /sbin/modprobe amdgpu
step set rocworker partition set quarters --reload
step order cat /run/order
step modes cat /sys/bus/pci/devices/0000:00:05.0/current_compute_partition /sys/bus/pci/devices/0000:00:05.0/current_memory_partition
sleep 1000 <>/dev/kfd &
step in-use rocworker partition set whole --reload
step after cat /run/order
step loaded cat /sys/module/amdgpu/initstate

echo "@@ done" >/dev/ttyS1
poweroff -f
