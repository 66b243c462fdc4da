//! The package and its daemon under a real systemd as process 1: what runs while another version comes, and after it has
//! gone. Engines are stand-ins, which note each of their starts.

use std::fs;
use std::path::Path;
use std::process::Command;

use layout::Machine;
use support::real;
use support::stage::{Stage, stdout};

use crate::packages::debian::worker::{file, handed_out, repack, run};

/// What the first line of our rules says, and what another build of the program says there. Of the same length: it is put
/// into the program itself.
const SAYS: &str = "# Written by rocworker (permissions";
const OTHER_SAYS: &str = "# WRITTEN by rocworker (permissions";

const CONTAINERD: &str = "#!/bin/sh
case $1 in --version) echo containerd github.com/containerd/containerd v2.1.9 0; exit ;; esac
echo containerd >> /run/starts
exec sleep infinity
";
const CONCOURSE: &str = "#!/bin/sh
case $1 in --version) echo 7.14.3; exit ;; esac
echo worker >> /run/starts
exec sleep infinity
";
const CONTAINERDS_UNIT: &str = "[Service]\nExecStart=/usr/bin/containerd\n";
const WORKERS_UNIT: &str = "[Service]\nEnvironmentFile=/var/lib/concourse-worker/worker-config.env\n\
                            ExecStart=/var/lib/concourse/bin/concourse worker\n";

/// When the daemon has begun and ended.
const NOTES: &str = "[Service]
StandardError=append:/run/said
ExecStartPost=+/bin/touch /run/began
ExecStopPost=+/bin/touch /run/ended
";

/// What each script begins with: the package is installed and applied, the daemon and engines run.
const START: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
# Bounded, so that a failure ends.
until_true() { n=0; until eval "$1"; do n=$((n + 1)); [ $n -lt 400 ] || { echo "never: $1" >&2; systemctl status rocworker >&2; cat /run/said /run/dpkg >&2; exit 1; }; sleep 0.05; done; }
says() { systemctl show --value --property=$1 rocworker; }
older() { /usr/bin/test "$1" -ot "$2"; }
dpkg() { command dpkg --force-unsafe-io --no-triggers "$@" >> /run/dpkg 2>&1 || { cat /run/dpkg >&2; return 1; }; }
# How often each line of a text stands there: `2 a, 1 b`.
counted() { printf '%s\n' "$1" | sort | uniq -c | sed 's/^ *//' | paste -s -d , | sed 's/,/, /g'; }
rules=/etc/udev/rules.d/70-amdgpu.rules
unit=/etc/systemd/system/rocworker.service
mkdir -p /var/lib/concourse/bin /var/lib/concourse-worker $unit.d
install -m 755 /etc/staged/containerd /usr/bin/containerd
install -m 755 /etc/staged/concourse /etc/staged/containerd /var/lib/concourse/bin/
printf 'CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG=linux\nCONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir\n' > /var/lib/concourse-worker/worker-config.env
: > /run/systemd/container
rm -f /usr/sbin/policy-rc.d
# Of groups that the laid-out machine does not have.
: > /var/lib/dpkg/statoverride
groupadd --system render 2>/dev/null || true
dpkg --install $stage/first.deb
cp /etc/staged/notes $unit.d/test.conf
mkdir -p /etc/rocworker
printf 'docker: {configure: never}\nexporter: {listen: "127.0.0.1:%s"}\n' $port > /etc/rocworker/config.yaml
rocworker apply > /run/applied 2>&1 || { cat /run/applied /run/said >&2; exit 1; }
until_true '[ "$(says StatusText)" = "all as it should be" ]'
systemctl start containerd concourse-worker
until_true '[ "$(counted "$(cat /run/starts)")" = "1 containerd, 1 worker" ]'
"#;

/// The script on a stage with the package and another build of it; none where the calling test is to be skipped.
#[track_caller]
fn boot(script: &str) -> Option<String> {
    let built = handed_out(&["dpkg-deb"])?;
    if !real::require_root(&["unshare", "systemctl", "dpkg", "deb-systemd-invoke", "groupadd"]) {
        return None;
    }
    let stage = Stage::set(&Machine::demo());
    for (path, text) in [
        ("etc/staged/containerd", CONTAINERD),
        ("etc/staged/concourse", CONCOURSE),
        ("etc/staged/notes", NOTES),
        ("etc/systemd/system/containerd.service", CONTAINERDS_UNIT),
        ("etc/systemd/system/concourse-worker.service", WORKERS_UNIT),
    ] {
        stage.put(path, text);
    }
    let package = file(&built, ".deb");
    fs::copy(&package, stage.folder().join("first.deb")).unwrap();
    repack(&package, &stage.folder().join("newer.deb"), "9.0-1", say_otherwise);
    // Ports are the machine's, whose tests run at once: each in a process of its own.
    let port = 30_000 + std::process::id() % 10_000;
    let of_test = format!("stage={}\nport={port}\n", stage.folder().display());
    Some(stdout(&stage.boot(&format!("{of_test}{START}{script}"))))
}

fn say_otherwise(tree: &Path) {
    let program = tree.join("usr/bin/rocworker");
    let script = format!("s/{SAYS}/{OTHER_SAYS}/g");
    run(Command::new("sed").env("LC_ALL", "C").args(["-i", &script]).arg(&program));
    run(Command::new("grep").env("LC_ALL", "C").args(["-q", "-F", OTHER_SAYS]).arg(&program));
}

/// What is told of each version that comes: the daemon before it was the last of the one, and the daemon after it is the
/// first of the other.
fn brought_about(says: &str, upgrades: usize) -> String {
    format!(
        "{says}\nthe old one had ended before, the new one has begun since\nit runs the new program\n\
         nothing is contested\n1 apply, {upgrades} upgrade, nothing else\n1 containerd, 1 worker started\n"
    )
}

#[test]
fn real_another_version_is_brought_about_between_two_daemons_and_a_removal_leaves_none() {
    let Some(out) = boot(
        r#"
upgrades=0
for deb in newer first; do
    before=$(says MainPID)
    rm -f /run/began /run/ended
    dpkg --install --force-downgrade $stage/$deb.deb
    head -1 $rules | cut -d : -f 1
    until_true '[ "$(says StatusText)" = "all as it should be" ]'
    ! kill -0 $before 2>/dev/null
    older /run/ended $rules && older $rules /run/began && echo the old one had ended before, the new one has begun since
    cmp /proc/$(says MainPID)/exe /usr/bin/rocworker && echo it runs the new program
    rocworker --output json status > /run/status && ! grep '"contested": \[$' /run/status && echo nothing is contested
    echo "$(counted "$(rocworker --output json history | sed -n 's/.*"command": "\(.*\)".*/\1/p')"), nothing else"
    echo "$(counted "$(cat /run/starts)") started"
done
# Its folder stays with it, and tells when what was ours there has gone.
touch /etc/cdi/theirs
rm /run/ended
dpkg --remove rocworker
older /run/ended /etc/cdi && echo the daemon had ended before
pgrep -a rocworker || echo none runs
find /etc /usr/lib/systemd -name '*rocworker*' -not -path '/etc/rocworker*' -not -path $unit.d
grep -rl rocworker /etc/systemd /etc/containerd /etc/cdi /etc/udev || echo nothing names it
systemctl show --property=Id,LoadState rocworker rocworker-boot | xargs
"#,
    ) else {
        return;
    };
    let removed = "the daemon had ended before\nnone runs\nnothing names it\n\
                   Id=rocworker.service LoadState=not-found Id=rocworker-boot.service LoadState=not-found\n";
    assert_eq!(out, format!("{}{}{removed}", brought_about(OTHER_SAYS, 1), brought_about(SAYS, 2)));
}

/// A container's image has such a policy, and so has a machine that is set up by hand.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_daemon_that_may_not_be_stopped_keeps_the_package_and_none_outlives_it() {
    let Some(out) = boot(
        r#"
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
removed() {
    if command dpkg --no-triggers --remove rocworker > /run/dpkg 2>&1; then return; fi
    grep -o 'the package stays: .* runs still\|systemctl stop rocworker.service' /run/dpkg
    says ActiveState
    systemctl stop rocworker.service
    dpkg --remove rocworker
}
removed
pgrep -a rocworker || echo none runs
# The package's own unit, which somebody has enabled, on a machine that nobody has set up.
dpkg --install $stage/first.deb
systemctl enable --now rocworker 2> /dev/null
removed
pgrep -a rocworker || echo none runs
"#,
    ) else {
        return;
    };
    let stays = "the package stays: /usr/bin/rocworker: rocworker serve runs still\n\
                 systemctl stop rocworker.service\nactive\nnone runs\n";
    assert_eq!(out, [stays; 2].concat());
}
