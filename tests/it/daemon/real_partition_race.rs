//! Two hundred creates of real runc race while another program divides the card: SPX, CPX, SPX, and no event says so. The
//! daemon writes the policy that the wrapper reads; both see the card of a synthetic driver, and no program opens its nodes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use inventory::partitioning::Compute;
use serde_json::json;
use support::partitioned::{Driver, Partitioned};
use support::{fuse, real};

use crate::daemon::running::{applied, eventually};
use crate::partition::machine::answered;
use crate::setup::laid::Laid;

const CREATES: usize = 200;
const WORKERS: usize = 3;

/// A mount namespace with the laid-out machine's /sys, /etc and /run, real cgroups, and nodes of the numbers that the
/// machine records. It stays until its stdin ends.
const SETUP: &str = r#"
set -e
place=$1 root=$2
mount -t tmpfs -o mode=755 none $place/dev
cd $place/dev
mknod -m 666 null c 1 3; mknod -m 666 zero c 1 5; mknod -m 666 full c 1 7
mknod -m 666 random c 1 8; mknod -m 666 urandom c 1 9; mknod -m 666 tty c 5 0
mkdir pts shm dri
mount --bind /dev/pts pts
mknod -m 660 kfd c 511 0
for n in 0 1 2 3 4 5 6 7; do mknod -m 660 dri/card$n c 226 $n; mknod -m 660 dri/renderD$((128 + n)) c 226 $((128 + n)); done
cd /
mount --rbind /sys/fs/cgroup $place/cgroup
mount --bind $root/sys /sys
mount --rbind $place/cgroup /sys/fs/cgroup
mount --bind $root/etc /etc
mount --bind $root/run /run
mount --move $place/dev /dev
echo ready
exec cat
"#;

struct Host {
    place: tempfile::TempDir,
    keeper: Child,
    wrapper: PathBuf,
    cgroup: String,
}

impl Host {
    fn new(root: &Path, wrapper: PathBuf) -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["dev", "cgroup", "R"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        let mut keeper = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", SETUP, "sh"])
            .args([place.path(), root])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let cgroup = format!("/rocworker-partitions-{}", std::process::id());
        Self { place, keeper, wrapper, cgroup }
    }

    fn call(&self, program: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.keeper.id()));
        command.args(["--", "env", "--ignore-environment", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
        command.arg(program).arg("--root").arg(self.place.path().join("R")).args(arguments);
        // The container has its creator's stdout and stderr for as long as it lives.
        let reported = self.place.path().join(arguments.last().unwrap()).with_extension("stderr");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&reported).unwrap());
        let status = command.status().unwrap();
        Output { status, stdout: Vec::new(), stderr: fs::read(reported).unwrap() }
    }

    /// Creates a container: the numbers of its render nodes, or why there is none.
    fn create(&self, id: &str, request: &str) -> Result<Vec<u32>, String> {
        let bundle = self.place.path().join(id);
        fs::create_dir_all(bundle.join("rootfs/bin")).unwrap();
        fs::copy("/bin/busybox", bundle.join("rootfs/bin/sleep")).unwrap();
        let namespaces = ["pid", "mount", "ipc", "uts", "network"].map(|kind| json!({"type": kind}));
        let config = json!({
            "ociVersion": "1.0.2",
            "process": {"terminal": false, "user": {"uid": 0, "gid": 0}, "cwd": "/", "args": ["sleep", "1000"],
                        "env": ["PATH=/bin", request], "capabilities": {}, "noNewPrivileges": true},
            "root": {"path": "rootfs"},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            ],
            "linux": {
                "cgroupsPath": format!("{}/{id}", self.cgroup),
                "resources": {"devices": [{"allow": false, "access": "rwm"}]},
                "namespaces": namespaces,
            },
        });
        fs::write(bundle.join("config.json"), config.to_string()).unwrap();
        let output = self.call(&self.wrapper, &["create", "--bundle", bundle.to_str().unwrap(), id]);
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        let state = fs::read_to_string(self.place.path().join(format!("R/{id}/state.json"))).unwrap();
        Ok((128..136).filter(|n| state.contains(&format!("/dev/dri/renderD{n}\""))).collect())
    }

    fn delete(&self, id: &str) {
        let output = self.call(Path::new("runc"), &["delete", "--force", id]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for container in fs::read_dir(self.place.path().join("R")).into_iter().flatten().flatten() {
            self.call(Path::new("runc"), &["delete", "--force", &container.file_name().to_string_lossy()]);
        }
        let folders = ["/sys/fs/cgroup", "-depth", "-type", "d", "-path", &format!("*{}*", self.cgroup)]
            .map(str::to_owned);
        Command::new("find")
            .args(folders)
            .args(["-exec", "rmdir", "{}", "+"])
            .stderr(Stdio::null())
            .status()
            .ok();
        drop(self.keeper.stdin.take());
        self.keeper.wait().ok();
    }
}

struct Race<'m> {
    host: Host,
    machine: &'m Partitioned,
    /// Containers that are to be created still.
    left: AtomicUsize,
    /// Names of containers, of those too that are refused.
    names: AtomicUsize,
    /// Raised before and after each switch: 0 and 4 are SPX, 2 is CPX, an odd number is a switch under way.
    switches: AtomicUsize,
    has_ended: AtomicBool,
    account: Mutex<Account>,
}

/// Who has which render node, by the race's own account.
#[derive(Debug, Default)]
struct Account {
    holders: BTreeMap<u32, String>,
    created: usize,
    refused: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Race<'_> {
    fn work(&self) {
        while self.left.load(Ordering::Relaxed) > 0 {
            let n = self.names.fetch_add(1, Ordering::Relaxed);
            let id = format!("c{n}");
            let named = format!("AMD_VISIBLE_DEVICES={}", n % 8);
            let request = if n.is_multiple_of(3) { &named } else { "AMD_GPU_COUNT=1" };
            let before = self.switches.load(Ordering::SeqCst);
            let created = self.host.create(&id, request);
            let is_steady = before == self.switches.load(Ordering::SeqCst);
            let in_spx = is_steady && before.is_multiple_of(4);
            match created {
                Ok(nodes) => {
                    self.has(&id, &nodes, in_spx);
                    std::thread::sleep(Duration::from_millis(u64::try_from(n % 7).unwrap() * 20));
                    self.account.lock().unwrap().holders.retain(|_, holder| *holder != id);
                    self.host.delete(&id);
                }
                Err(reported) => {
                    *self.account.lock().unwrap().refused.entry(reason(&reported)).or_default() += 1;
                    // The GPUs are the others' for a while, or the policy is the last mode's.
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    fn has(&self, id: &str, nodes: &[u32], in_spx: bool) {
        let mut account = self.account.lock().unwrap();
        account.created += 1;
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
        if nodes.len() != 1 {
            account.wrong.push(format!("{id} has {nodes:?}"));
        }
        for node in nodes {
            if let Some(other) = account.holders.insert(*node, id.to_owned()) {
                account.wrong.push(format!("renderD{node} is {other}'s and {id}'s"));
            }
            if in_spx && *node != 128 {
                account.wrong.push(format!("{id} has renderD{node}, which is no device in SPX"));
            }
        }
    }

    fn switch(&self, mode: Compute) {
        self.switches.fetch_add(1, Ordering::SeqCst);
        self.machine.change(|driver| driver.switch(0, mode));
        self.switches.fetch_add(1, Ordering::SeqCst);
    }

    /// By `partition set`, of which the daemon hears as little.
    fn set(&self, mode: Compute) {
        self.switches.fetch_add(1, Ordering::SeqCst);
        let command = format!("partition set {}", mode.name().to_lowercase());
        let output = answered(self.machine.root(), &command);
        if !output.status.success() {
            // Without a switch that ends, no create of the others would.
            self.left.store(0, Ordering::Relaxed);
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.switches.fetch_add(1, Ordering::SeqCst);
    }

    /// Divides the card and joins it again, at intervals that the daemon's look falls into now and then. A machine that is
    /// too slow for a create within such an interval has the time for one.
    fn switch_until_the_end(&self) {
        for n in 0.. {
            let before = self.left.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(500 + n % 5 * 300));
            let began = Instant::now();
            while self.left.load(Ordering::Relaxed) == before && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(20));
            }
            if self.has_ended.load(Ordering::Relaxed) {
                return;
            }
            let mode = if n % 2 == 0 { Compute::Cpx } else { Compute::Spx };
            if n % 4 < 2 { self.set(mode) } else { self.switch(mode) }
        }
    }
}

/// Why a create was refused, in a few words; what is not expected comes whole.
fn reason(reported: &str) -> String {
    let known = ["its card is in", "are free:", "which is not free", "has no GPU"];
    let known = known.iter().find(|part| reported.contains(**part));
    known.map_or_else(|| reported.to_owned(), |it| (*it).to_owned())
}

#[test]
fn real_two_hundred_creates_race_while_a_card_is_divided_and_joined() {
    let needed = ["runc", "unshare", "nsenter", "busybox", "find"];
    let Some(wrapper) = real::require_root_and_built("ROCWORKER_WRAPPER", &needed) else { return };
    if !fuse::require() {
        return;
    }
    let driver = Driver::new(1);
    let config = "wrapper: {requests: all, sharing: exclusive, wait-limit-s: 5}
partitions: {profiles: {cpx: [{cards: all, compute: CPX}], spx: [{cards: all, compute: SPX}]}}
";
    let laid = Laid::out(&driver.machine(), config);
    let machine = Partitioned::at(&laid.path(""), driver);
    let daemon = applied(&laid);
    let race = Race {
        host: Host::new(&laid.path(""), wrapper),
        machine: &machine,
        left: AtomicUsize::new(CREATES),
        names: AtomicUsize::new(0),
        switches: AtomicUsize::new(0),
        has_ended: AtomicBool::new(false),
        account: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let switcher = scope.spawn(|| race.switch_until_the_end());
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(|| race.work())).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        race.has_ended.store(true, Ordering::Relaxed);
        switcher.join().unwrap();
    });
    // Each GPU can be given again: none is lost.
    for (mode, nodes) in [(Compute::Cpx, (128..136).collect::<Vec<_>>()), (Compute::Spx, vec![128])] {
        race.switch(mode);
        let mut last = Err(String::new());
        eventually("all GPUs can be given", || {
            last = race.host.create("last", "AMD_VISIBLE_DEVICES=all");
            last.as_ref().is_ok_and(|given| *given == nodes)
        });
        race.host.delete("last");
    }
    let account = race.account.into_inner().unwrap();
    let switches = race.switches.into_inner() / 2;
    eprintln!("{} created across {switches} switches; refused: {:#?}", account.created, account.refused);
    assert!(account.wrong.is_empty(), "{:#?}", account.wrong);
    let strange: Vec<&String> = account.refused.keys().filter(|it| it.len() > 20).collect();
    assert!(strange.is_empty(), "{strange:#?}");
    // Else it was no race.
    assert!(
        account.created >= CREATES && switches >= 10 && account.refused.contains_key("its card is in"),
        "{account:#?}"
    );
    drop(race.host);
    drop(daemon);
}
