//! `doctor --canary` on a machine with several engines: one call tries each, and no engine hinders another.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use layout::Machine;
use real_engines::cgroups;
use real_engines::dockerd::{Dockerd, SOCKET};
use real_engines::engine::{CONTAINERD_1_6, releases};
use real_engines::host::Host;
use real_engines::machine::{self, ASKED};
use serde_json::Value;
use support::real;
use support::stage::stdout;

/// Where the package puts it (crates/engines/src/program.rs).
const WRAPPER: &str = "/usr/lib/rocworker/runc-amd-wrapper";
const PATH: &str = "/usr/sbin:/usr/bin";
const DAEMON_JSON: &str = r#"{"runtimes": {"amd": {"path": "/usr/lib/rocworker/runc-amd-wrapper"}}}"#;

/// What each engine's container sees of the demo machine that was given GPU 0, as doctor/real_canary.rs of rocworker's
/// tests has it.
fn in_order(way: &str) -> Vec<[String; 2]> {
    let none = "no driver answers inside (ENXIO, No such device or address)";
    vec![
        ["warning".to_owned(), format!("/dev/kfd is let through, and {none}, {way}")],
        ["warning".to_owned(), format!("/dev/dri/renderD129 of GPU 0 is let through, and {none}")],
        ["ok".to_owned(), "the device 226:130, GPU 1's, was not given, and is refused inside".to_owned()],
    ]
}

/// Status and evidence of the canary's checks of an engine.
#[track_caller]
fn checks(said: &str, engine: &str) -> Vec<[String; 2]> {
    let answer: Value = serde_json::from_str(said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let checks = answer["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|check| check["name"] == "canary" && check["subject"] == engine);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    checks.map(|check| ["status", "evidence"].map(|key| text(&check[key]))).collect()
}

#[test]
fn real_a_canary_tries_docker_behind_containerd_in_the_same_call() {
    for engine in releases() {
        let Some(unpacked) = engine.unpacked() else { return };
        let Some(program) = real::require_root_and_built("ROCWORKER_PROGRAM", &["unshare"]) else { return };
        let stage = machine::stage(&Machine::demo(), ASKED);
        fs::copy(program, stage.folder().join("rocworker")).unwrap();
        fs::write(stage.folder().join("daemon.json"), DAEMON_JSON).unwrap();
        fs::write(stage.folder().join("config.toml"), engine.config(false)).unwrap();
        let host = Host::set(stage, &unpacked);
        host.busybox(&["mkdir", "-p", "/usr/lib/rocworker", "/etc/docker"]).well();
        host.busybox(&["cp", "/opt/rocworker/shim/runc", WRAPPER]).well();
        host.busybox(&["cp", "/stage/daemon.json", "/etc/docker/daemon.json"]).well();

        // dockerd takes this one for its own: it looks whether the system's containerd listens.
        let mut containerd = host.command(PATH, &["/usr/bin/containerd", "--config", "/stage/config.toml"]);
        let mut containerd = containerd.stderr(Stdio::null()).spawn().unwrap();
        let answers = || host.call(PATH, &["/usr/bin/ctr", "version"]).status.success();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !answers() {
            assert!(Instant::now() < deadline, "{} does not answer", engine.name);
            thread::sleep(Duration::from_millis(50));
        }
        let cgroup = format!("--cgroup-parent=/{}", host.cgroup());
        let docker = Dockerd::start(host, &["--data-root=/stage/docker", &cgroup]);

        let doctor = ["/stage/rocworker", "--output", "json", "doctor", "--canary"];
        let said = docker.host.command(PATH, &doctor).env("DOCKER_HOST", SOCKET).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout);
        let way = "asked for by AMD_VISIBLE_DEVICES=0";
        assert_eq!(checks(&said, "containerd"), in_order(way), "{}: {said}", engine.name);
        let way = "asked for by AMD_VISIBLE_DEVICES=0 of the runtime amd";
        assert_eq!(checks(&said, "docker"), in_order(way), "{}: {said}", engine.name);
        let left = docker.host.names_in("/run/rocworker");
        assert!(!left.iter().any(|name| name.contains("canary")), "{}: {left:?}", engine.name);
        drop(docker);
        containerd.wait().unwrap();
    }
}

/// The daemons of Debian 12, started on a stage that is otherwise this machine, with its podman.
const THREE: &str = r#"
exec 3>&1 >&2
mkdir -p /usr/lib/rocworker /etc/docker
cp "$WRAPPER" /usr/lib/rocworker/runc-amd-wrapper
export PATH="$TREE/usr/sbin:$TREE/usr/bin:$PATH" DOCKER_HOST="unix://$FOLDER/docker.sock"
until_it_answers() {
    tries=0
    until "$@" >/dev/null 2>&1; do tries=$((tries + 1)); [ $tries -lt 200 ]; sleep 0.1; done
}
containerd --config "$FOLDER/config.toml" 2>"$FOLDER/containerd.log" &
until_it_answers ctr version
unshare --net dockerd --host "$DOCKER_HOST" --storage-driver=vfs --bridge=none --iptables=false --ip6tables=false \
    --ip-forward=false --data-root="$FOLDER/docker" --exec-root="$FOLDER/docker-run" --pidfile="$FOLDER/docker.pid" \
    --cgroup-parent="/$CGROUP" 2>"$FOLDER/dockerd.log" &
until_it_answers docker version
"$ROCWORKER" --output json doctor --canary >&3 || [ $? = 3 ]
[ -z "$(podman ps --all --quiet)$(docker ps --all --quiet)$(docker images --all --quiet)" ]
[ -z "$(ctr --namespace rocworker containers list --quiet)" ]
! ls -d /run/rocworker/*canary*
"#;

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_canary_tries_podman_containerd_and_docker_in_the_same_call() {
    let Some(unpacked) = CONTAINERD_1_6.unpacked() else { return };
    let needed = ["podman", "conmon", "runc", "unshare"];
    let Some(program) = real::require_root_and_built("ROCWORKER_PROGRAM", &needed) else { return };
    let stage = machine::stage(&Machine::demo(), ASKED);
    let folder = stage.folder().to_str().unwrap();
    stage.put("etc/docker/daemon.json", DAEMON_JSON);
    stage.put(
        "etc/containers/storage.conf",
        &format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{folder}/podman\"\nrunroot = \"{folder}/podman-run\"\n"
        ),
    );
    stage.put(
        "etc/containers/containers.conf",
        "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_backend = \"none\"\nruntime = \"runc\"\n",
    );
    let config = CONTAINERD_1_6.config(false).replace("/stage/", &format!("{folder}/"));
    fs::write(stage.folder().join("config.toml"), config).unwrap();
    let cgroup = format!("rocworker{}", Path::new(folder).file_name().unwrap().to_str().unwrap());
    // A process namespace of its own: with its first process everything ends that was started there.
    let argv = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", THREE];
    let mut command = stage.command(&argv);
    command.env("FOLDER", folder).env("TREE", &unpacked.tree).env("WRAPPER", &unpacked.wrapper);
    command.env("ROCWORKER", program).env("CGROUP", &cgroup);
    let said = command.output().unwrap();
    cgroups::remove(&cgroup);
    let said = stdout(&said);
    let way = "asked for by the CDI name amd.com/gpu=0";
    assert_eq!(checks(&said, "podman"), in_order(way), "{said}");
    let way = "asked for by AMD_VISIBLE_DEVICES=0";
    assert_eq!(checks(&said, "containerd"), in_order(way), "{said}");
    let way = "asked for by AMD_VISIBLE_DEVICES=0 of the runtime amd";
    assert_eq!(checks(&said, "docker"), in_order(way), "{said}");
}
