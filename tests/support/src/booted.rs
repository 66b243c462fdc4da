//! A stage on which systemd runs as process 1, in namespaces of its own: units really start, end and start again.
//! None of the system's own units runs there, nor journald.

use std::fs;
use std::process::Output;

use crate::group;
use crate::stage::{Stage, build};

/// Goes into a control group of its own and boots in it. `$1` is the stage's folder, in which `script` is what the test
/// does, `$2` the group's name, `$3` the build's folder.
///
/// The stage has none of the system's own units: they would set up, and clean up, this machine's folders.
/// With `container` set, systemd does not touch the kernel.
const BOOT: &str = r#"
set -e
stage=$1
join_group "$2"
exec unshare --pid --cgroup --uts --ipc --fork --kill-child sh -ec '
stage=$1
build=$2
mount -t proc proc /proc
umount -l /sys/fs/cgroup
mount -t tmpfs none /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
mount -t tmpfs none /var/log
mount -t tmpfs none /var/tmp
mount -t tmpfs none /run
mount -t tmpfs none /usr/lib/systemd/system
# Units with PrivateTmp= leave folders behind. The stage itself and the build may be there.
mkdir /run/stage /run/build
mount --rbind "$stage" /run/stage
mount --rbind "$build" /run/build
mount -t tmpfs none /tmp
mkdir -p "$stage" "$build"
mount --rbind /run/stage "$stage"
mount --rbind /run/build "$build"
umount -l /run/stage /run/build
rmdir /run/stage /run/build
mkdir -p /run/systemd/system /run/lock
cd /usr/lib/systemd/system
printf "[Unit]\nDefaultDependencies=no\n" | tee sysinit.target basic.target shutdown.target > network.target
cat > test.target <<END
[Unit]
DefaultDependencies=no
Wants=test.service
END
cat > test.service <<END
[Unit]
DefaultDependencies=no
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/sh -e $stage/script
StandardOutput=file:$stage/stdout
StandardError=file:$stage/stderr
END
export container=lxc
exec /lib/systemd/systemd --system --unit=test.target --log-target=console --log-level=warning --default-standard-output=null
' boot "$stage" "$3"
"#;

impl Stage {
    /// Runs a shell's script on a fresh stage whose process 1 is systemd. Units that it is to know can be put at
    /// `etc/systemd/system`, or written by the script.
    ///
    /// # Panics
    /// Where there is no unshare(1), or the script's output cannot be read.
    pub fn boot(&self, script: &str) -> Output {
        let dir = self.folder();
        fs::write(dir.join("script"), script).unwrap();
        let group = format!("booted-{}", dir.file_name().unwrap().to_str().unwrap().trim_start_matches('.'));
        let ended = self.run(&[
            "sh",
            "-c",
            &format!("{}{BOOT}", group::JOIN),
            "boot",
            dir.to_str().unwrap(),
            &group,
            build().to_str().unwrap(),
        ]);
        group::remove(&group);
        let said = |name: &str| fs::read(dir.join(name)).unwrap_or_default();
        // What went wrong before the script came to run.
        let stderr = [said("stderr"), ended.stderr].concat();
        Output { status: ended.status, stdout: said("stdout"), stderr }
    }
}
