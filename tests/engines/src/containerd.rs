//! Runs containerd, and `ctr` of its release to drive it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use layout::Machine;
use serde_json::Value;

use crate::engine::{Engine, SHIM_FOLDER, Unpacked};
use support::said::Said;

use crate::host::Host;
use crate::{look, machine};

/// The namespace that Concourse uses.
const CONCOURSE: &str = "concourse";
/// The message with which containerd is ready (its `main.go`).
const READY: &str = "containerd successfully booted";
/// The program between containerd and a container.
pub const SHIM: &str = "containerd-shim-runc-v2";
/// A shim ends a little after its container was deleted.
const PATIENCE: Duration = Duration::from_secs(60);

/// How containerd is started, at first and again.
#[derive(Clone, Debug)]
pub struct Start {
    /// containerd's PATH, which is all of its environment.
    pub path: String,
    pub argv: Vec<String>,
}

/// containerd on a [`Host`].
#[derive(Debug)]
pub struct Containerd {
    engine: Engine,
    /// The namespace of the containers.
    namespace: &'static str,
    start: Start,
    host: Host,
    daemon: Child,
    log: Arc<Mutex<String>>,
}

impl Containerd {
    /// containerd on the demo machine, with this policy and the wrapper as its shims' runc.
    ///
    /// # Panics
    /// Where containerd does not start.
    pub fn on_demo(engine: &Engine, unpacked: &Unpacked, policy: &str) -> Self {
        Self::on(&Machine::demo(), engine, unpacked, policy)
    }

    /// containerd on another machine.
    ///
    /// # Panics
    /// Where containerd does not start.
    pub fn on(machine: &Machine, engine: &Engine, unpacked: &Unpacked, policy: &str) -> Self {
        Self::start(machine, engine, unpacked, policy, true)
    }

    /// containerd on the demo machine, which has the wrapper, but where containerd does not find it.
    ///
    /// # Panics
    /// Where containerd does not start.
    pub fn without_wrapper(engine: &Engine, unpacked: &Unpacked, policy: &str) -> Self {
        Self::start(&Machine::demo(), engine, unpacked, policy, false)
    }

    fn start(
        machine: &Machine,
        engine: &Engine,
        unpacked: &Unpacked,
        policy: &str,
        with_wrapper: bool,
    ) -> Self {
        let stage = machine::stage(machine, policy);
        look::lay_out(&machine::rootfs(&stage));
        let seen = stage.folder().join("seen");
        fs::create_dir(&seen).unwrap();
        // The root of a user namespace writes there too.
        fs::set_permissions(&seen, fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(stage.folder().join("config.toml"), engine.config(with_wrapper)).unwrap();
        let host = Host::set(stage, unpacked);
        let path = if with_wrapper { engine.path() } else { engine.plain_path() };
        let argv = ["/usr/bin/containerd", "--config", "/stage/config.toml"].map(str::to_owned).into();
        Self::begin(engine, host, Start { path, argv })
    }

    /// containerd on a host that is already set up, by a program of the host.
    ///
    /// # Panics
    /// Where containerd does not start.
    pub fn begin(engine: &Engine, host: Host, start: Start) -> Self {
        let (daemon, log) = boot(&host, &start);
        Self { engine: *engine, namespace: CONCOURSE, start, host, daemon, log }
    }

    /// Looks at the containers of another namespace than Concourse's.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &'static str) -> Self {
        self.namespace = namespace;
        self
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// A name for failed assertions to show beside their values.
    pub fn name(&self) -> &'static str {
        self.engine.name
    }

    /// `ctr` in the containers' namespace.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn ctr(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    /// `ctr` in the containers' namespace, not yet run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.host.command(
            "/usr/sbin:/usr/bin",
            &[&["/usr/bin/ctr", "--namespace", self.namespace], arguments].concat(),
        )
    }

    /// Runs a container from the root file system to its end, and removes it.
    ///
    /// # Panics
    /// Where [`Containerd::ctr`] panics.
    pub fn run(&self, flags: &[&str], id: &str, argv: &[&str]) -> Said {
        self.run_command(&[&["--rm"], flags].concat(), id, argv).output().unwrap().into()
    }

    /// The GPUs that a new container sees.
    ///
    /// # Panics
    /// Where the container fails.
    #[track_caller]
    pub fn look(&self, flags: &[&str], id: &str) -> String {
        self.run(flags, id, &look::look(id)).well();
        self.seen(id)
    }

    /// The result of opening a node that a new container makes itself.
    ///
    /// # Panics
    /// Where the container fails.
    #[track_caller]
    pub fn forge(&self, flags: &[&str], id: &str, major: &str, minor: &str) -> String {
        self.run(flags, id, &look::forge(id, major, minor)).well();
        self.seen(id)
    }

    /// The GPUs that a further process of a container sees.
    ///
    /// # Panics
    /// Where the process fails.
    #[track_caller]
    pub fn look_in(&self, id: &str, process: &str) -> String {
        self.exec(id, process, &look::look(process)).well();
        self.seen(process)
    }

    /// The text that was written into [`look::SEEN`] under this name; removes it.
    ///
    /// # Panics
    /// Where no text was written.
    #[track_caller]
    pub fn seen(&self, name: &str) -> String {
        let file = self.outside(look::SEEN).join(name);
        let seen = fs::read_to_string(&file).unwrap();
        fs::remove_file(file).unwrap();
        seen
    }

    /// `ctr run` from the root file system, not yet run.
    pub fn run_command(&self, flags: &[&str], id: &str, argv: &[&str]) -> Command {
        let cgroup = self.cgroup_of(id);
        self.command(
            &[
                &["run", "--cgroup", &cgroup, "--mount", look::MOUNT],
                flags,
                &["--rootfs", "/stage/rootfs", id],
                argv,
            ]
            .concat(),
        )
    }

    /// Starts a container that stays until it is killed.
    ///
    /// # Panics
    /// Where it does not start.
    #[track_caller]
    pub fn start_sleeping(&self, flags: &[&str], id: &str) {
        let output = self.run_command(&[&["--detach"], flags].concat(), id, &["/bin/sleep", "1000"]).output();
        Said::from(output.unwrap()).well();
    }

    /// Runs a further process in a container: the shim writes its process file for that.
    ///
    /// # Panics
    /// Where [`Containerd::ctr`] panics.
    pub fn exec(&self, id: &str, process: &str, argv: &[&str]) -> Said {
        self.ctr(&[&["task", "exec", "--exec-id", process, id], argv].concat())
    }

    /// Kills a container and removes all of it.
    ///
    /// # Panics
    /// Where containerd refuses.
    #[track_caller]
    pub fn remove(&self, id: &str) {
        self.ctr(&["task", "kill", "--signal", "SIGKILL", id]).well();
        self.until(&format!("{id} has stopped"), || {
            let tasks = self.ctr(&["task", "list"]).stdout;
            !tasks.lines().any(|line| line.starts_with(&format!("{id} ")) && line.contains("RUNNING"))
        });
        // ctr ends with a killed task's own exit status.
        let deleted = self.ctr(&["task", "delete", id]);
        assert!(!deleted.stderr.contains("ctr: "), "{deleted:?}");
        self.ctr(&["container", "delete", id]).well();
    }

    /// Removes a container of which it is not known how far it came.
    ///
    /// # Panics
    /// Where it stays.
    #[track_caller]
    pub fn remove_whatever_it_is(&self, id: &str) {
        self.until(&format!("{id} can be removed"), || {
            self.ctr(&["task", "kill", "--signal", "SIGKILL", id]);
            self.ctr(&["task", "delete", "--force", id]);
            self.ctr(&["container", "delete", id]);
            !self.ctr(&["container", "list", "--quiet"]).stdout.lines().any(|listed| listed == id)
        });
    }

    /// The spec that this containerd makes for a container, to be changed and given back in a file.
    ///
    /// # Panics
    /// Where it makes none.
    pub fn spec(&self, flags: &[&str], argv: &[&str]) -> Value {
        let create = ["container", "create", "--mount", look::MOUNT];
        self.ctr(&[&create[..], flags, &["--rootfs", "/stage/rootfs", "spec"], argv].concat()).well();
        let info: Value = serde_json::from_str(&self.ctr(&["container", "info", "spec"]).well()).unwrap();
        self.ctr(&["container", "delete", "spec"]).well();
        let mut spec = info["Spec"].clone();
        assert!(spec.is_object(), "{info:#}");
        spec["linux"]["cgroupsPath"] = self.cgroup_of("spec").into();
        spec
    }

    /// Kills containerd, which cannot prevent it, and starts it again.
    ///
    /// # Panics
    /// Where it does not start again.
    pub fn kill_and_start_again(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Kills containerd; shims and containers go on.
    ///
    /// # Panics
    /// Where there is none.
    pub fn kill(&mut self) {
        self.host.kill_all("containerd");
        self.daemon.wait().unwrap();
    }

    /// # Panics
    /// Where it does not start again.
    pub fn start_again(&mut self) {
        (self.daemon, self.log) = boot(&self.host, &self.start);
    }

    /// Waits for something that containerd and its shims do in their own time.
    ///
    /// # Panics
    /// Where it does not come.
    #[track_caller]
    pub fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        let log = || self.log.lock().unwrap().clone();
        assert!(comes_true(is_so), "{}: not so: {what}; containerd said:\n{}", self.name(), log());
    }

    /// Checks that nothing is left of all containers: shims, mounts, runc's state, cgroups, the wrapper's
    /// records.
    ///
    /// # Panics
    /// With the leftovers.
    #[track_caller]
    pub fn assert_nothing_is_left(&self) {
        let containers = self.ctr(&["container", "list", "--quiet"]).well();
        assert_eq!(containers, "", "{}", self.name());
        let mut left = Vec::new();
        let gone = comes_true(|| {
            left = self.left();
            left.is_empty()
        });
        assert!(gone, "{}: left: {left:#?}", self.name());
    }

    /// Removes what containerd itself has forgotten, as an administrator would: containerd 1.6 and 1.7, killed while a
    /// shim starts, leave that shim and its container to nobody.
    ///
    /// # Panics
    /// Where it stays.
    #[track_caller]
    pub fn remove_forgotten(&self) {
        if !self.host.pids_of(SHIM).is_empty() {
            self.host.kill_all(SHIM);
        }
        let root = format!("/run/containerd/runc/{}", self.namespace);
        let path = format!("{SHIM_FOLDER}:/usr/sbin:/usr/bin");
        for id in self.host.names_in(&root) {
            self.host
                .call(&path, &["/opt/rocworker/shim/runc", "--root", &root, "delete", "--force", &id])
                .well();
        }
    }

    fn left(&self) -> Vec<String> {
        let mounts = self.host.busybox(&["cat", "/proc/mounts"]).stdout;
        let mounts = mounts.lines().filter(|line| line.contains("io.containerd.")).map(str::to_owned);
        let shims = self.host.pids_of(SHIM);
        let named = |what: &str, names: Vec<String>| {
            let what = what.to_owned();
            names.into_iter().map(move |name| format!("{what} {name}")).collect::<Vec<_>>()
        };
        let cgroups = crate::cgroups::of(&self.host.cgroup());
        let cgroups = cgroups.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let cgroups =
            cgroups.filter(|entry| entry.path().is_dir()).map(|entry| format!("cgroup {:?}", entry.path()));
        mounts
            .chain(shims.into_iter().map(|pid| format!("shim {pid}")))
            .chain(named("record", self.host.records()))
            .chain(named(
                "runc's state of",
                self.host.names_in(&format!("/run/containerd/runc/{}", self.namespace)),
            ))
            .chain(cgroups)
            .collect()
    }

    fn cgroup_of(&self, id: &str) -> String {
        format!("/{}/{id}", self.host.cgroup())
    }

    /// The path on this machine of an engine's file below `/stage`.
    ///
    /// # Panics
    /// For a path elsewhere.
    pub fn outside(&self, path: &str) -> std::path::PathBuf {
        self.host.folder().join(Path::new(path).strip_prefix("/stage").unwrap())
    }
}

/// Looks again and again, since neither containerd nor its shims tell when they are done.
fn comes_true(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Starts containerd and waits until it answers.
fn boot(host: &Host, start: &Start) -> (Child, Arc<Mutex<String>>) {
    let argv: Vec<&str> = start.argv.iter().map(String::as_str).collect();
    let mut command = host.command(&start.path, &argv);
    let mut daemon = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let log = Arc::new(Mutex::new(String::new()));
    let mut lines = BufReader::new(daemon.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(READY) {
        line.clear();
        let length = lines.read_line(&mut line).unwrap();
        log.lock().unwrap().push_str(&line);
        assert!(length > 0, "containerd ended before it answered:\n{}", log.lock().unwrap());
    }
    let kept = Arc::clone(&log);
    thread::spawn(move || keep(lines, &kept));
    (daemon, log)
}

/// Reads on, since containerd would stop at a full pipe, until its last copy is closed.
fn keep(mut lines: BufReader<ChildStderr>, log: &Mutex<String>) {
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
        log.lock().unwrap().push_str(&line);
        line.clear();
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        // nsenter ends with what it runs; the rest of the namespace ends with the host.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
