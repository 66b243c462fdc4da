# Process 1 of the machine that asks. It ends with its stdin, which the test holds: with it go all machines.
# $1 is the build's folder, $2 what machines have of this host's /etc.
set -eu
build=$1 shared=$2
read -r pid _ < /proc/self/stat
mount -t proc proc /proc
ip link set lo up
ip link add fleet type bridge
ip address add 10.91.0.1/16 dev fleet
ip link set fleet up
echo asker > /proc/sys/kernel/hostname
mount -t tmpfs -o mode=755 none /mnt
# Copies on write, so that the build's folder is seen wherever it lies.
for folder in etc root usr/local var/lib; do
    mkdir -p "/mnt/.asker/$folder" "/mnt/.asker/work/$folder"
    mount -t overlay none -o "lowerdir=/$folder,upperdir=/mnt/.asker/$folder,workdir=/mnt/.asker/work/$folder" "/$folder"
done
mount -t tmpfs -o mode=755 none /run
rm -rf /root/.ssh /etc/rocworker /var/lib/rocworker
mkdir -p -m 700 /root/.ssh
ssh-keygen -q -t ed25519 -N '' -C root@asker -f /root/.ssh/id_ed25519
touch /root/.ssh/known_hosts /root/.ssh/config
echo '127.0.0.1 localhost asker' > /etc/hosts
echo 'hosts: files' > /etc/nsswitch.conf
# What every machine's /etc begins with.
mkdir /mnt/.etc
for name in $shared; do
    if [ -e "/etc/$name" ]; then (cd /etc && cp -a --parents "$name" /mnt/.etc); fi
done
# A machine whose programs are busybox'.
mkdir -p /mnt/.busybox/bin
for applet in $(busybox --list); do
    # What has a place of its own in a system, as init and login do, stays as it is; and Debian's dpkg with its tar.
    case $applet in dpkg* | tar) continue ;; esac
    if [ -e "/usr/bin/$applet" ]; then ln -s busybox "/mnt/.busybox/bin/$applet"; fi
done
ln -sf busybox /mnt/.busybox/bin/sh
rm -f /mnt/.busybox/bin/busybox
[ -d "$build" ]
exec 3<&0
echo "$pid"
# A shell that waits takes in what others leave behind.
cat <&3 > /dev/null &
wait $!
