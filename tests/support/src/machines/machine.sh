# Process 1 of a machine. $1 is its name, $3 the folder of its files, $4 the build's, $5 what a test prepares in it.
exec 2>&3 3>&-
set -eu
name=$1 files=$3 build=$4 prepare=$5
read -r pid _ < /proc/self/stat
cd "/mnt/$name"
mkdir -p usr etc proc sys dev run tmp root home mnt opt srv var/lib/dpkg var/log var/tmp .old .layers
chmod 1777 tmp var/tmp
chmod 700 root
for link in bin sbin lib lib32 lib64 libx32; do ln -s "usr/$link" "$link"; done
layers=$PWD/.layers
layer() { # the folder, and what it begins with
    mkdir -p "$layers/$1" "$layers/work/$1"
    mount -t overlay none -o "lowerdir=$2,upperdir=$layers/$1,workdir=$layers/work/$1" "$1"
}
if [ -e .busybox ]; then layer usr /mnt/.busybox:/usr; else layer usr /usr; fi
layer etc /mnt/.etc
mount -t tmpfs -o mode=755 none run
layer var/lib/dpkg /var/lib/dpkg
rm -rf usr/lib/rocworker usr/local/lib/rocworker
rm -f usr/bin/rocworker usr/bin/rocworker-exporter usr/local/bin/rocworker usr/local/bin/rocworker-exporter

# Of the machine's files: its kernel's are shown as they are, all others are its own to change.
for folder in etc usr opt srv run var root home; do
    if [ -d "$files/$folder" ]; then cp -a --remove-destination "$files/$folder/." "$folder/"; fi
done
if [ -d "$files/sys" ]; then mount --rbind "$files/sys" sys; else mount -t tmpfs none sys; fi
mount -t tmpfs -o mode=755 none dev
for node in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
    set -- $node
    mknod -m 666 "dev/$1" c "$2" "$3"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666,gid=5 devpts dev/pts
mount -t tmpfs none dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
if [ -d "$files/dev" ]; then cp -a "$files/dev/." dev/; fi
mount -t proc proc proc
if [ -d "$files/proc" ]; then
    (cd "$files" && find proc -type f) | while read -r file; do
        if [ -e "$file" ]; then mount --bind "$files/$file" "$file"; fi
    done
fi
mkdir -p "./$build"
mount --bind "$build" "./$build"
pivot_root . .old
cd /
umount -l /.old
rmdir /.old

echo "$name" > /etc/hostname
printf '127.0.0.1 localhost %s\n' "$name" > /etc/hosts
echo 'hosts: files' > /etc/nsswitch.conf
mkdir -p -m 755 /run/sshd /run/lock
mkdir -p /etc/ssh /etc/sudoers.d
printf 'root ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n' > /etc/sudoers
chmod 440 /etc/sudoers
# As Debian's, but for the users' own files.
cat > /etc/ssh/sshd_config <<END
Include /etc/ssh/sshd_config.d/*.conf
HostKey /etc/ssh/ssh_host_ed25519_key
KbdInteractiveAuthentication no
UsePAM yes
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp /usr/lib/openssh/sftp-server
END
ssh-keygen -q -t ed25519 -N '' -C "root@$name" -f /etc/ssh/ssh_host_ed25519_key
eval "$prepare"
if [ -e /.systemd ]; then
    mkdir -p /sys/fs/cgroup
    mount -t tmpfs none /sys/fs/cgroup
    mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
    # Of the system's own units the journal's alone: the others would set up this host.
    mkdir /run/units
    cp /usr/lib/systemd/system/systemd-journald.service /usr/lib/systemd/system/systemd-journald.socket \
        /usr/lib/systemd/system/systemd-journald-dev-log.socket /run/units
    mount -t tmpfs none /usr/lib/systemd/system
    mv /run/units/* /usr/lib/systemd/system
    rmdir /run/units
    cd /usr/lib/systemd/system
    printf '[Unit]\nDefaultDependencies=no\n' |
        tee sysinit.target basic.target shutdown.target network.target > network-online.target
    printf '[Unit]\nDefaultDependencies=no\nWants=systemd-journald.service ssh.service\n' |
        tee multi-user.target > default.target
    cat > ssh.service <<END
[Unit]
Description=OpenBSD Secure Shell server
DefaultDependencies=no
After=systemd-journald.service
[Service]
ExecStart=/usr/sbin/sshd -D -E /var/log/sshd.log
KillMode=process
END
    mkdir -p /var/log/journal
    cd /
    echo "$pid"
    export container=lxc
    exec /lib/systemd/systemd --system --log-target=journal --default-standard-output=journal > /dev/null 2>&1
fi
/usr/sbin/sshd -D -E /var/log/sshd.log < /dev/null &
# What keeps the machine up, and takes in what others leave behind.
sleep infinity &
echo "$pid"
exec > /dev/null 2>&1
wait
