//! A thousand creates race for eight GPUs, and processes die in every state: no lease may be stolen from a
//! container that lives, and none may stay with one that is dead.
//!
//! Each container's first process takes an exclusive flock on a file of the name of each render node that it
//! sees, and keeps it until it ends. So two containers with one GPU at the same time show as a flock that
//! fails, whatever the leases say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use support::real;

use crate::machine::{Like, Machine, Program, config};

const CREATES: usize = 1000;
const WORKERS: usize = 6;
const IDS_OF_A_WORKER: usize = 5;

/// Takes the lock of every GPU that is there, and says so where one is taken.
const HOLD: &str = "fd=3; for n in /dev/dri/renderD*; do [ -e $n ] || { echo none >> /locks/WITHOUT; exit; }; \
                    eval \"exec $fd>>/locks/${n##*/}\"; /usr/bin/flock -n $fd || echo $n >> /locks/STOLEN; fd=$((fd+1)); done; \
                    echo >> /locks/STARTED; exec sleep 1000";

/// Marsaglia's xorshift64: repeatable by its seed, as far as threads and processes are.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    fn up_to(&mut self, microseconds: u64) -> Duration {
        Duration::from_micros(self.below(microseconds))
    }
}

struct Race<'m> {
    machine: &'m Machine,
    cgroup: String,
    figures: Mutex<BTreeMap<String, usize>>,
    left: AtomicUsize,
}

impl Race<'_> {
    fn count(&self, what: impl Into<String>) {
        *self.figures.lock().unwrap().entry(what.into()).or_default() += 1;
    }

    fn figure(&self, what: &str) -> usize {
        self.figures.lock().unwrap().get(what).copied().unwrap_or_default()
    }

    fn write_bundle(&self, bundle: &Path, id: &str, env: &[&str]) {
        let mut config =
            config(&format!("{}/{id}", self.cgroup), Like { args: &["sh", "-c", HOLD], env, mapping: &[] });
        let mounts = config["mounts"].as_array_mut().unwrap();
        let bind = |from: PathBuf, to: &str, mode: &str| json!({"destination": to, "type": "bind", "source": from, "options": ["bind", mode]});
        mounts.push(bind(self.machine.path("locks"), "/locks", "rw"));
        // flock is util-linux', with its libraries.
        for folder in ["/usr", "/lib", "/lib64"].map(Path::new).into_iter().filter(|folder| folder.exists()) {
            mounts.push(bind(folder.to_owned(), folder.to_str().unwrap(), "ro"));
        }
        std::fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    }

    /// Works with a worker's own ids, and now and then with another worker's.
    fn work(&self, worker: usize, dice: &mut Dice) {
        let bundles: Vec<PathBuf> = (0..IDS_OF_A_WORKER)
            .map(|n| {
                let id = format!("w{worker}-{n}");
                let bundle = self.machine.bundle(&id, Like::default());
                self.write_bundle(&bundle, &id, &["AMD_GPU_COUNT=1"]);
                bundle
            })
            .collect();
        while self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
        {
            let n = usize::try_from(dice.below(IDS_OF_A_WORKER as u64)).unwrap();
            let anothers = dice.percent(6);
            let owner = if anothers { (worker + 1) % WORKERS } else { worker };
            let id = format!("w{owner}-{n}");
            if !anothers && dice.percent(70) {
                self.machine.wrapper(&["delete", "--force", &id]);
            } else if !anothers {
                self.count("deletes lost");
            }
            if dice.percent(90) {
                let env = request(dice);
                self.write_bundle(&bundles[n], &id, &env.iter().map(String::as_str).collect::<Vec<_>>());
            } else {
                self.count("bundles tried again as they were");
            }
            self.create(&bundles[n], &id, dice);
        }
    }

    fn create(&self, bundle: &Path, id: &str, dice: &mut Dice) {
        let (pid_file, reported) = (bundle.join("pid"), bundle.join("stderr"));
        // runc writes the second first, and leaves it where it is killed before the rename. What a killed one has started may
        // write into the third still.
        for file in [&pid_file, &bundle.join(".pid"), &reported] {
            let _ = std::fs::remove_file(file);
        }
        let arguments =
            ["create", "--bundle", bundle.to_str().unwrap(), "--pid-file", pid_file.to_str().unwrap(), id];
        let mut child = self
            .machine
            .command(&Program::Wrapper.path(), &arguments)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&reported).unwrap())
            .spawn()
            .unwrap();
        let exe = format!("/proc/{}/exe", child.id());
        let kill = match dice.below(100) {
            0..=14 => Some(dice.up_to(9_000)),
            15..=34 => {
                // runc's own time begins when the wrapper has become it, however busy the machine is.
                let is_runc = || std::fs::read_link(&exe).is_ok_and(|exe| exe.ends_with("runc"));
                while !is_runc() && child.try_wait().unwrap().is_none() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Some(dice.up_to(60_000))
            }
            _ => None,
        };
        if let Some(after) = kill {
            std::thread::sleep(after);
            let program = std::fs::read_link(&exe).unwrap_or_default();
            child.kill().unwrap();
            if child.wait().unwrap().code().is_none() {
                let name = program.file_name().map(|name| name.to_string_lossy().into_owned());
                self.count(format!("killed as {}", name.unwrap_or_else(|| "it ended".to_owned())));
                return;
            }
        }
        if !child.wait().unwrap().success() {
            self.count(reason(&std::fs::read_to_string(&reported).unwrap()));
            return;
        }
        self.count("created");
        if dice.percent(92) {
            self.machine.wrapper(&["start", id]);
        }
        std::thread::sleep(dice.up_to(60_000));
        match dice.below(100) {
            0..=39 => {
                let pid = std::fs::read_to_string(&pid_file).unwrap_or_default();
                if Command::new("kill").args(["-9", &pid]).stderr(Stdio::null()).status().unwrap().success() {
                    self.count("killed as init");
                }
            }
            40..=64 => drop(self.machine.wrapper(&["delete", "--force", id])),
            65..=79 => drop(self.machine.runc(&["delete", "--force", id])),
            _ => self.count("left running"),
        }
    }

    /// Ends all that still runs, by SIGKILL alone, and by their cgroups. A create that was killed early can leave a
    /// `runc init` that no state names. It holds the GPUs rightly while it lives.
    fn kill_the_rest(&self) {
        let kill =
            r#"find /sys/fs/cgroup -path "*$1/*/cgroup.procs" -exec cat {} + | sort -u | xargs -r kill -9"#;
        Command::new("sh").args(["-c", kill, "kill", &self.cgroup]).stderr(Stdio::null()).status().unwrap();
    }
}

impl Drop for Race<'_> {
    /// runc removes the cgroups of those that it knows; a create that was killed leaves one that it does not.
    fn drop(&mut self) {
        self.kill_the_rest();
        for container in std::fs::read_dir(self.machine.path("R")).into_iter().flatten().flatten() {
            self.machine.runc(&["delete", "--force", &container.file_name().to_string_lossy()]);
        }
        let _ = Command::new("find")
            .args(["/sys/fs/cgroup", "-depth", "-type", "d", "-path", &format!("*{}*", self.cgroup)])
            .args(["-exec", "rmdir", "{}", "+"])
            .stderr(Stdio::null())
            .status();
    }
}

/// A container's request: mostly one GPU, by number or by name, and some with a wait.
fn request(dice: &mut Dice) -> Vec<String> {
    let first = dice.below(8);
    let mut env = vec![match dice.below(10) {
        0..=4 => "AMD_GPU_COUNT=1".to_owned(),
        5 => format!("AMD_GPU_COUNT={}", 2 + dice.below(2)),
        6..=8 => format!("AMD_VISIBLE_DEVICES={first}"),
        _ => format!("AMD_VISIBLE_DEVICES={first},{}", (first + 1) % 8),
    }];
    if dice.percent(30) {
        env.push("AMD_GPU_WAIT=1".to_owned());
    }
    env
}

/// Why a create failed, in a few words; what is not expected comes whole.
fn reason(reported: &str) -> String {
    let known = [
        ("are free:", "refused: too few free"),
        ("which is not free:", "refused: too few free"),
        ("another create of the container", "refused: another create of this id"),
        ("are left in its cgroup", "refused: processes of this id left"),
        ("make the bundle anew", "refused: the bundle of an earlier try"),
        ("container with id exists", "refused by runc: the id exists"),
        ("already exists", "refused by runc: the id exists"),
        // The owner of the id deletes by force what another worker just makes.
        ("msg=\"runc create failed: ", "failed in runc"),
    ];
    let reason = known.iter().find(|(part, _)| reported.contains(part)).map(|(_, reason)| *reason);
    reason.map_or_else(|| format!("failed: {}", reported.trim()), str::to_owned)
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_thousand_creates_race_for_eight_leases() {
    if !real::require_root(&["runc", "unshare", "nsenter", "busybox", "find", "flock"]) {
        return;
    }
    let began = Instant::now();
    let machine = Machine::with_eight_gpus();
    let locks = machine.path("locks");
    std::fs::create_dir(&locks).unwrap();
    let seed = u64::from(std::process::id()) << 20 | 0xACE1;
    let race = Race {
        machine: &machine,
        cgroup: format!("/rocworker-race-{}", std::process::id()),
        figures: Mutex::default(),
        left: AtomicUsize::new(CREATES),
    };
    // The locks show a GPU that two containers have: where GPUs are shared, they are seen.
    machine.policy_of_eight(&json!({"sharing": "shared"}));
    for id in ["both-0", "both-1"] {
        let bundle = machine.bundle(id, Like::default());
        race.write_bundle(&bundle, id, &["AMD_VISIBLE_DEVICES=3"]);
        machine.start_sleeping(Program::Wrapper, &bundle, id);
        wait_for(|| lines(&locks.join("STARTED")) == usize::from(id == "both-1") + 1);
    }
    assert_eq!(std::fs::read_to_string(locks.join("STOLEN")).unwrap(), "/dev/dri/renderD131\n");
    for id in ["both-0", "both-1"] {
        machine.wrapper(&["delete", "--force", id]);
    }
    std::fs::remove_file(locks.join("STOLEN")).unwrap();

    machine.policy_of_eight(&json!({"wait_limit_s": 5}));
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let race = &race;
            let seed = seed.wrapping_mul(2 * u64::try_from(worker).unwrap() + 3);
            scope.spawn(move || race.work(worker, &mut Dice(seed)));
        }
    });
    let raced = began.elapsed();
    race.kill_the_rest();
    let ended = Instant::now();
    let bundle = machine.bundle("last", Like::default());
    race.write_bundle(&bundle, "last", &["AMD_VISIBLE_DEVICES=all", "AMD_GPU_WAIT=1"]);
    let create = ["create", "--bundle", bundle.to_str().unwrap(), "last"];
    let reported = bundle.join("stderr");
    let status = machine
        .command(&Program::Wrapper.path(), &create)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&reported).unwrap())
        .status()
        .unwrap();
    let freed = ended.elapsed();

    let figures = race.figures.lock().unwrap().clone();
    eprintln!(
        "seed {seed:#x}, {:.1} s, {} holders, all free after {} ms",
        raced.as_secs_f64(),
        lines(&locks.join("STARTED")) - 2,
        freed.as_millis()
    );
    figures.iter().for_each(|(what, count)| eprintln!("{count:6} {what}"));
    let stolen = std::fs::read_to_string(locks.join("STOLEN"));
    assert!(stolen.is_err(), "stolen leases: {stolen:?}");
    assert!(!locks.join("WITHOUT").exists(), "a container that asked for GPUs started without");
    assert!(status.success(), "not free: {}", std::fs::read_to_string(&reported).unwrap());
    assert!(freed <= Duration::from_secs(1), "free only after {freed:?}");
    let strange: Vec<&String> = figures.keys().filter(|what| what.starts_with("failed: ")).collect();
    assert!(strange.is_empty(), "{strange:#?}");
    assert!(race.figure("failed in runc") <= 20, "runc itself fails too often for a chance meeting");
    // Else it was no race.
    for (what, least) in
        [("created", 150), ("killed as runc", 30), ("killed as runc-amd-wrapper", 1), ("killed as init", 30)]
    {
        assert!(race.figure(what) >= least, "{what}: {}", race.figure(what));
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

fn wait_for(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < deadline, "waited for 10 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}
