# A laid-out machine with a real Incus on it, in namespaces of its own that go with their last process. The cgroup that
# it begins in is the root of its containers' cgroups.
# $1: Debian's file system with Incus; $2: a folder with the machine; $3: rocworker; $4: what to run.
set -e
tree=$1 folder=$2 program=$3 script=$4
mount --make-rprivate /
root=$folder/root
mkdir "$folder/copy" "$root"
mount -t tmpfs none "$folder/copy"
mkdir "$folder/copy/upper" "$folder/copy/work"
mount -t overlay none -o "lowerdir=$tree,upperdir=$folder/copy/upper,workdir=$folder/copy/work" "$root"
mount -t proc none "$root/proc"
# The machine's cards with this one's CPUs, cgroups and disks, which Incus looks at too.
sys=$folder/machine/sys
for part in devices/system class/net class/block block kernel fs module; do
    if [ -d "/sys/$part" ]; then
        mkdir -p "$sys/$part"
        mount --rbind "/sys/$part" "$sys/$part"
    fi
done
mount --rbind "$sys" "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 none "$root/dev"
for node in null zero full random urandom tty fuse; do
    [ ! -e "/dev/$node" ] || cp -a "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 none "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
cp -a "$folder/machine/dev/." "$root/dev/"
mount -t tmpfs none "$root/run"
mount -t tmpfs none "$root/tmp"
cp -a "$folder/rootfs" "$root/tmp/rootfs"
cp "$program" "$root/usr/bin/rocworker"
# A user namespace may mount sysfs only where a whole one is in sight (mount_namespaces(7)).
mkdir "$root/whole-sysfs"
mount -t sysfs none "$root/whole-sysfs"
# No chroot(1): nobody in one may make a user namespace, as an unprivileged container needs (clone(2)).
mkdir "$root/host"
cd "$root"
pivot_root . host
exec sh -ec '
umount -l /host
c1=/var/lib/incus/storage-pools/default/containers/c1/rootfs
# A command in the container, with options of `incus exec`. What it prints goes through a file, for `incus exec` may end
# before it has passed on the last lines of a command.
inside() {
    command=$1
    shift
    incus exec c1 "$@" -- sh -c "{ $command; } >/printed 2>&1"
    cat "$c1/printed"
}
trap "[ \$? -eq 0 ] || cat /tmp/incusd.log >&2" EXIT
{
    /usr/libexec/incus/incusd --logfile /tmp/incusd.log >/tmp/incusd.out 2>&1 &
    incus admin waitready --timeout 60
    incus storage create default dir
    incus profile device add default root disk path=/ pool=default
    incus init --empty c1
    cp -a /tmp/rootfs/. "$c1/"
    : >"$c1/printed"
    chmod 666 "$c1/printed"
} >&2
'"$script"
