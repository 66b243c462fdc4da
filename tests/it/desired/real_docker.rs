//! Real dockerd of three releases: it takes what is made of its daemon.json, and what undo leaves of that; a reload is
//! enough for a runtime, and CDI is there after a start.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use config::Config;
use edit::{Edit, Format, Key, Set};
use engines::docker::desired::actions;
use engines::docker::{Docker, Installed};
use engines::{CommandLine, Version};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reconcile::Kind;
use serde_json::{Value, json};
use support::real;
use tempfile::TempDir;

/// Names the unpacked containerd, beside which the same suite's dockerd lies: set by `cargo xtask test`.
const BOOKWORM: (&str, &str) = ("ROCWORKER_CONTAINERD_BOOKWORM", "20.10.24");
const TRIXIE: (&str, &str) = ("ROCWORKER_CONTAINERD_TRIXIE", "26.1.5");
const SID: (&str, &str) = ("ROCWORKER_CONTAINERD_SID", "28.5.2");

const WRAPPER: &str = "/usr/bin/runc-amd-wrapper";

/// Runs a program of `$1`, a copy on write of which becomes its root, in a mount and network namespace of its own.
/// `$2` is the test's folder, which stands at /work there.
const STAGE: &str = r#"
set -e
tree=$1 work=$2; shift 2
mkdir -p "$work/stage"
mount -t tmpfs none "$work/stage"
cd "$work/stage"
mkdir upper under root
mount -t overlay none -o "lowerdir=$tree,upperdir=$PWD/upper,workdir=$PWD/under" root
mkdir -p root/proc root/sys root/dev root/work root/tmp root/run root/etc/docker root/var/lib/docker
mount --rbind /proc root/proc; mount --rbind /sys root/sys; mount --rbind /dev root/dev
mount --bind "$work/shared" root/work
for folder in tmp run var/lib/docker; do mount -t tmpfs none root/$folder; done
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot root "$@"
"#;

/// A dockerd, and a folder that it sees as /work.
struct Engine {
    tree: PathBuf,
    version: &'static str,
    work: TempDir,
}

impl Engine {
    #[track_caller]
    fn unpacked<const N: usize>(which: [(&'static str, &'static str); N]) -> Option<[Self; N]> {
        if !real::require_root(&["unshare", "chroot", "busybox"]) {
            return None;
        }
        let containerds = real::require_made(which.map(|(variable, _)| variable), &[])?;
        let mut versions = which.iter().map(|(_, version)| *version);
        Some(containerds.map(|containerd| {
            let work = tempfile::tempdir().unwrap();
            fs::create_dir(work.path().join("shared")).unwrap();
            // TREE/usr/bin/containerd
            let tree = containerd.ancestors().nth(3).unwrap().to_owned();
            Self { tree, version: versions.next().unwrap(), work }
        }))
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.work.path().join("shared").join(name), text).unwrap();
    }

    fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--net", "sh", "-c", STAGE, "stage"]);
        command.arg(&self.tree).arg(self.work.path()).args(argv);
        command
    }

    /// What dockerd says of each of the files in its folder.
    fn validate(&self, names: &[String]) -> Vec<String> {
        let script = "for name; do dockerd --validate --config-file /work/$name 2>&1 | tail -n 1; done";
        // The trees have no shell; busybox is static.
        let busybox = real::program("busybox").unwrap();
        fs::copy(busybox, self.work.path().join("shared/busybox")).unwrap();
        let output = self
            .command(&[
                "/work/busybox",
                "ash",
                "-c",
                &script.replace("tail", "/work/busybox tail"),
                "validate",
            ])
            .args(names)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let said: Vec<String> = said.lines().map(str::to_owned).collect();
        assert_eq!(said.len(), names.len(), "{said:?} {}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// The edit of a daemon.json with this text.
    fn edit(&self, config: &str, text: &str) -> Option<Edit> {
        let config = Config::parse(Path::new("/etc/rocworker/config.yaml"), config).unwrap();
        let installed = Installed {
            program: "/usr/sbin/dockerd".into(),
            version: Ok(Version::find(self.version).unwrap()),
            config: "/etc/docker/daemon.json".into(),
            text: Ok(Some(text.to_owned())),
            unit: Some(CommandLine::new("/usr/sbin/dockerd -H fd://")),
            notes: Vec::new(),
            ends_with: Vec::new(),
        };
        let docker = Docker { installed: Some(installed), is_snap: false };
        match actions(&config, &docker, Path::new(WRAPPER)).actions.pop()?.kind {
            Kind::Edited(edit) => Some(edit),
            other => panic!("{other:?}"),
        }
    }
}

/// daemon.json as people, packages and other vendors' tools write it.
const STARTS: [&str; 14] = [
    "",
    "\n",
    "{}",
    "{\n}\n",
    "\u{feff}{\"debug\": true}\n",
    "{\r\n\t\"log-driver\" : \"journald\",\r\n\t\"storage-driver\" : \"overlay2\"\r\n}\r\n",
    // NVIDIA's toolkit writes it so.
    "{\n    \"default-runtime\": \"nvidia\",\n    \"runtimes\": {\n        \"nvidia\": {\n            \"args\": [],\n            \
     \"path\": \"nvidia-container-runtime\"\n        }\n    }\n}",
    "{\"features\":{\"buildkit\":true,\"cdi\":true},\"runtimes\":{\"runsc\":{\"path\":\"/usr/local/bin/runsc\",\
     \"runtimeArgs\":[\"--net-raw\"]}}}",
    "{ \"live-restore\": true, \"features\": { \"containerd-snapshotter\": true } }",
    // kubeadm's documentation has this.
    "{\n  \"exec-opts\": [\"native.cgroupdriver=systemd\"],\n  \"log-driver\": \"json-file\",\n  \"log-opts\": {\n    \
     \"max-size\": \"100m\"\n  },\n  \"storage-driver\": \"overlay2\"\n}\n",
    "{\"mtu\": 1400, \"shutdown-timeout\": 15, \"registry-mirrors\": [\"https://mirror.example\"],\n \"dns\": [\n  \
     \"10.0.0.1\"\n ] }",
    "{\"features\": null, \"runtimes\": null, \"cdi-spec-dirs\": null}",
    "{\n  \"cdi-spec-dirs\": [\n    \"/etc/cdi\",\n    \"/opt/cdi\"\n  ],\n  \"features\": {\n  }\n}\n",
    "{\"\\u0066eatures\": {\"cdi\": true}, \"labels\": [\"a=\\u00e9\", \"b={[\"]}",
];

#[test]
fn real_dockerd_takes_its_file_before_and_after_and_once_it_is_taken_back() {
    let Some(engines) = Engine::unpacked([TRIXIE, SID]) else { return };
    for engine in engines {
        let mut names = Vec::new();
        let mut put = |name: String, text: &str| {
            engine.put(&name, text);
            names.push(name);
        };
        for (nth, before) in STARTS.iter().enumerate() {
            put(format!("{nth}-before.json"), before);
            for (place, config) in [("here", ""), ("elsewhere", "cdi: {path: /srv/cdi/amd.json}")] {
                let edit = engine.edit(config, before).unwrap();
                let after = edit.apply(before).unwrap();
                assert!(after.contains(WRAPPER), "{after}");
                assert_eq!(engine.edit(config, &after).unwrap().apply(&after).unwrap(), after);
                put(format!("{nth}-{place}.json"), &after);
                assert_eq!(edit.revert(&after, Some(before)).unwrap().text.as_deref(), Some(*before));
                // Beside somebody else's edit the managed keys are taken out one by one.
                let theirs = Edit::new(edit.format, vec![theirs()]);
                let taken = edit.revert(&theirs.apply(&after).unwrap(), Some(before)).unwrap();
                put(format!("{nth}-{place}-taken-back.json"), &taken.text.unwrap());
            }
        }
        for (name, said) in names.iter().zip(engine.validate(&names)) {
            assert_eq!(said, "configuration OK", "docker {} on {name}", engine.version);
        }
    }
}

/// What somebody else writes in the meantime.
fn theirs() -> Key {
    let set = Set::Value(json!(7));
    Key { path: vec!["max-concurrent-uploads".to_owned()], set }
}

#[test]
fn real_dockerd_refuses_what_is_refused_as_no_json() {
    let Some(engines) = Engine::unpacked([TRIXIE, SID]) else { return };
    let texts = [
        "[]",
        "\"x\"",
        "{\"debug\": true,}",
        "// mine\n{}",
        "{} {}",
        "{'debug': true}",
        "{\"features\": [1]}",
    ];
    for engine in engines {
        let names: Vec<String> = (0..texts.len()).map(|nth| format!("{nth}.json")).collect();
        for (name, text) in names.iter().zip(texts) {
            engine.put(name, text);
            let keys = engine.edit("", "{\"features\": {}}").unwrap().keys;
            let features = Key { path: vec!["features".into(), "x".into()], set: keys[0].set.clone() };
            let edit = Edit::new(Format::Json, vec![features]);
            assert!(edit.apply(text).is_err(), "{text}");
        }
        for (name, said) in names.iter().zip(engine.validate(&names)) {
            assert!(said.contains("unable to configure"), "docker {} on {name}: {said}", engine.version);
        }
    }
}

/// A dockerd that runs, with a configuration of its own and no network.
struct Running {
    child: Child,
    log: BufReader<std::process::ChildStderr>,
    socket: PathBuf,
}

impl Running {
    fn start(engine: &Engine) -> Self {
        let mut child = engine
            .command(&["dockerd", "--config-file", "/work/daemon.json", "--host", "unix:///work/docker.sock"])
            .args(["--bridge", "none", "--iptables=false", "--ip6tables=false", "--storage-driver", "vfs"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let mut running = Self { child, log, socket: engine.work.path().join("shared/docker.sock") };
        running.until("API listen on");
        running
    }

    /// Reads on in its log, up to a line that holds this.
    #[track_caller]
    fn until(&mut self, wanted: &str) {
        let mut said = String::new();
        let mut line = String::new();
        while self.log.read_line(&mut line).unwrap() > 0 {
            if line.contains(wanted) {
                return;
            }
            said.push_str(&std::mem::take(&mut line));
        }
        panic!("dockerd ended before it said {wanted:?}:\n{said}");
    }

    fn reload(&mut self) {
        self.signal(Signal::SIGHUP);
        self.until("Reloaded configuration");
    }

    /// Whether it comes to know our runtime, or to know it no longer: it says that it has reloaded a little before.
    fn comes_to(&self, knows: bool) -> bool {
        comes_true(|| self.knows_ours() == knows)
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// What `docker info` asks for.
    fn info(&self) -> Value {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(b"GET /info HTTP/1.0\r\nHost: docker\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn knows_ours(&self) -> bool {
        let info = self.info();
        // The wrapper is never the default.
        assert_eq!(info["DefaultRuntime"], "runc");
        info["Runtimes"]["amd"]["path"] == WRAPPER
    }

    fn spec_folders(&self) -> Value {
        self.info()["CDISpecDirs"].clone()
    }
}

fn comes_true(mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        if Instant::now() > until {
            return false;
        }
    }
    true
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
        self.child.wait().unwrap();
    }
}

#[test]
fn real_dockerd_learns_of_the_runtime_by_a_reload_and_of_cdi_by_a_start() {
    let Some(engines) = Engine::unpacked([BOOKWORM, TRIXIE, SID]) else { return };
    let usual = json!(["/etc/cdi", "/var/run/cdi"]);
    // The folders of specs before, and after a start with the managed key.
    let expected = [(Value::Null, Value::Null), (json!([]), usual.clone()), (usual.clone(), usual)];
    for (engine, (at_first, then)) in engines.iter().zip(expected) {
        // Without any runtime in it a reload keeps those that were there.
        let before = "{\"runtimes\": {\"other\": {\"path\": \"/usr/sbin/runc\"}}}";
        let edit = engine.edit("", before).unwrap();
        let after = edit.apply(before).unwrap();
        engine.put("daemon.json", before);
        let mut docker = Running::start(engine);
        let said = docker.info()["ServerVersion"].as_str().map(str::to_owned).unwrap();
        assert!(!docker.knows_ours() && said.starts_with(engine.version), "{said}");
        assert_eq!(docker.spec_folders(), at_first, "docker {said}");

        engine.put("daemon.json", &after);
        docker.reload();
        assert!(docker.comes_to(true), "docker {said}");
        assert_eq!(docker.spec_folders(), at_first, "docker {said} took CDI in on a reload");

        // dockerd takes in on a reload, too, that containers outlive it, and says so only then: its file is not enough
        // to restart it by.
        engine.put("daemon.json", &after.replacen('{', "{\"live-restore\": true,", 1));
        assert_eq!(docker.info()["LiveRestoreEnabled"], false, "docker {said}");
        docker.reload();
        assert!(comes_true(|| docker.info()["LiveRestoreEnabled"] == true), "docker {said}");
        engine.put("daemon.json", &after);
        drop(docker);

        let mut docker = Running::start(engine);
        assert!(docker.knows_ours(), "docker {said}");
        assert_eq!(docker.spec_folders(), then, "docker {said}");
        engine.put("daemon.json", &edit.revert(&after, Some(before)).unwrap().text.unwrap());
        docker.reload();
        assert!(docker.comes_to(false), "docker {said}");
    }
}
