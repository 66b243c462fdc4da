# QEMU's card is a Rage 128 (its hw/display/ati.c), which never computes: here it has the number of a Navi 31.
uevent=/sys/bus/pci/devices/0000:00:05.0/uevent
[ ! -e $uevent ] || { sed 's/5046/7448/' $uevent >/run/uevent; mount --bind /run/uevent $uevent; }
