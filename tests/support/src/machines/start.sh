# Starts a machine, from within the asker: $1 its name, $2 its number, $3 the folder of its files, $4 the build's folder.
# $5 and $6 are scripts: what its process 1 does, and what it prepares. A machine's root is at /mnt/NAME.
set -eu
name=$1 number=$2
ip link add eth0 type veth peer name "machine$number" netns 1
nsenter --target 1 --net ip link set "machine$number" master fleet up
ip link set lo up
ip address add "10.91.$((number / 200)).$((number % 200 + 2))/16" dev eth0
ip link set eth0 up
echo "$name" > /proc/sys/kernel/hostname
cgroup=
if [ -e "/mnt/$name/.systemd" ]; then
    # A group of the machine's own, which systemd takes for the whole tree.
    join_group "$(cat "/mnt/$name/.systemd")"
    cgroup=--cgroup
fi
# unshare itself complains when its child is killed.
exec unshare --mount --pid --ipc $cgroup --fork --propagation private \
    sh -c "$5" machine "$1" "$2" "$3" "$4" "$6" 3>&2 2> /dev/null
