//! A Concourse worker on a stage that systemd starts. It is a stand-in; its unit is the charm's.

use crate::stage::Stage;

/// The charm's unit (fourdollars/concourse-ci-machine, lib/concourse_worker.py), without what needs a network.
const UNIT: &str = "[Unit]
Description=Concourse CI Worker

[Service]
Type=simple
User=root
EnvironmentFile=/var/lib/concourse-worker/worker-config.env
ExecStart=/var/lib/concourse/bin/concourse worker
Restart=on-failure
RestartSec=5
";

/// Ends on SIGUSR1, as Concourse's worker does, once its build has ended: here, once /run/built is there.
const WORKER: &str = r#"#!/bin/sh
case $1 in --version) echo 7.14.3; exit ;; esac
land() { echo landing >> /run/worker; until [ -e /run/built ]; do sleep 0.05; done; exit 0; }
trap land USR1
echo "started as $CONCOURSE_TAG" >> /run/worker
while :; do sleep 0.05; done
"#;

const CONTAINERD: &str = "#!/bin/sh\necho containerd github.com/containerd/containerd v2.1.4 1234\n";

/// The start of a script that needs the worker: its programs and its environment are in place. /run/worker
/// gets a line for each start of the worker, and for each signal to land.
pub const WORKER_SET_UP: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
# Bounded, so that a failure ends.
until_true() { n=0; until eval "$1"; do n=$((n + 1)); [ $n -lt 600 ] || { echo "never: $1" >&2; cat /run/worker /run/applied /run/said >&2; exit 1; }; sleep 0.05; done; }
mkdir -p /var/lib/concourse/bin /var/lib/concourse-worker
install -m 755 /etc/staged/concourse /etc/staged/containerd /var/lib/concourse/bin/
printf 'CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG=linux\nCONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir\n' > /var/lib/concourse-worker/worker-config.env
: > /run/worker
"#;

impl Stage {
    /// Puts the worker's unit in its place, and its programs where [`WORKER_SET_UP`] takes them from.
    ///
    /// # Panics
    /// Where they cannot be written.
    pub fn put_worker(&self) {
        self.put("etc/systemd/system/concourse-worker.service", UNIT);
        self.put("etc/staged/concourse", WORKER);
        self.put("etc/staged/containerd", CONTAINERD);
    }
}
