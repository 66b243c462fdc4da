//! A default runtime of docker that its file has no longer: undo asks the dockerd that runs before the wrapper goes.

use std::fs;
use std::time::{Duration, Instant};

use layout::Machine;
use real_engines::dockerd::{Dockerd, SOCKET};
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_1_7, CONTAINERD_2_1, Engine};
use real_engines::host::Host;
use support::real;
use support::said::Said;

const PATH: &str = "/usr/sbin:/usr/bin";
const WRAPPER: &str = "/usr/local/lib/rocworker/runc-amd-wrapper";
const DAEMON_JSON: &str = "/etc/docker/daemon.json";

/// A machine with rocworker of the tarball, and a dockerd with an image.
struct Docker(Dockerd);

impl Docker {
    /// rocworker has been applied, and then our runtime was made the default.
    fn start(engine: &Engine) -> Option<Self> {
        let program = real::require_root_and_built("ROCWORKER_PROGRAM", &["unshare", "busybox"])?;
        let unpacked = engine.unpacked()?;
        let host = Host::of(&Machine::demo(), &unpacked);
        let folder = host.folder();
        fs::create_dir(folder.join("bin")).unwrap();
        fs::copy(program, folder.join("bin/rocworker")).unwrap();
        fs::copy(&unpacked.wrapper, folder.join("bin/runc-amd-wrapper")).unwrap();
        let mut image = tar::Builder::new(fs::File::create(folder.join("image.tar")).unwrap());
        image.append_path_with_name(real::program("busybox").unwrap(), "busybox").unwrap();
        image.finish().unwrap();
        host.busybox(&["mkdir", "-p", "/etc/docker"]).well();
        put(&host, "{\"data-root\": \"/stage/docker\"}\n");
        host.call(PATH, &["/stage/bin/rocworker", "apply"]);
        let applied = host.busybox(&["cat", DAEMON_JSON]).well();
        assert!(applied.contains(WRAPPER), "{applied}");
        put(&host, &applied.replacen('{', "{\n    \"default-runtime\": \"amd\",", 1));
        let cgroup = format!("--cgroup-parent=/{}", host.cgroup());
        let docker = Self(Dockerd::start(host, &[&cgroup]));
        docker.docker(&["import", "/stage/image.tar", "box"]).well();
        Some(docker)
    }

    fn docker(&self, argv: &[&str]) -> Said {
        let argv = [&["/usr/bin/docker", "--host", SOCKET], argv].concat();
        self.0.host.call(PATH, &argv)
    }

    fn run(&self) -> Said {
        self.docker(&["run", "--rm", "--network=none", "box", "/busybox", "true"])
    }

    fn undo(&self) -> Said {
        self.0.host.call(PATH, &["/stage/bin/rocworker", "undo"])
    }

    fn has_wrapper(&self) -> bool {
        self.0.host.busybox(&["test", "-x", WRAPPER]).status.code() == Some(0)
    }

    fn text(&self) -> String {
        self.0.host.busybox(&["cat", DAEMON_JSON]).well()
    }

    /// Has dockerd read its file again, and waits until one that it answers by was read.
    fn reload(&self, text: &str) {
        let label = format!("n={}", text.len());
        put(&self.0.host, &text.replacen('{', &format!("{{\n    \"labels\": [\"{label}\"],"), 1));
        self.0.host.busybox(&["killall", "-HUP", "dockerd"]).well();
        let until = Instant::now() + Duration::from_secs(20);
        while !self.docker(&["info", "--format", "{{.Labels}}"]).well().contains(&label) {
            assert!(Instant::now() < until, "dockerd does not read its file again");
        }
        put(&self.0.host, text);
    }

    fn default(&self) -> String {
        self.docker(&["info", "--format", "{{.DefaultRuntime}}"]).well().trim().to_owned()
    }
}

fn put(host: &Host, text: &str) {
    fs::write(host.folder().join("daemon.json"), text).unwrap();
    host.busybox(&["cp", "/stage/daemon.json", DAEMON_JSON]).well();
}

fn is_undone_once_the_default_is_another(engine: &Engine) {
    let Some(docker) = Docker::start(engine) else { return };
    docker.run().well();
    docker.docker(&["create", "--network=none", "--name", "web", "box", "/busybox", "true"]).well();
    let undone = docker.undo();
    let advice = "set \"default-runtime\": \"runc\" in /etc/docker/daemon.json, then systemctl reload docker";
    assert!(undone.status.code() == Some(1) && undone.stdout.contains(advice), "{undone:?}");
    assert!(docker.has_wrapper());
    docker.run().well();

    let without = docker.text().replacen("\n    \"default-runtime\": \"amd\",", "", 1);
    docker.reload(&without);
    assert_eq!(docker.default(), "amd", "a default that is only taken out stays in effect");
    let undone = docker.undo();
    let why = "The running dockerd still uses default runtime amd; without it every `docker run` fails";
    let restart = "or systemctl restart docker";
    let said = &undone.stdout;
    assert!(undone.status.code() == Some(1) && said.contains(why) && said.contains(restart), "{undone:?}");
    // The wrapper's own text names the spec, and does not need it.
    assert!(!said.contains("amd.json"), "{said}");
    assert!(docker.has_wrapper());
    docker.run().well();
    docker.reload(&docker.text().replacen('{', "{\n    \"default-runtime\": \"runc\",", 1));
    assert_eq!(docker.default(), "runc");
    let undone = docker.undo();
    let web = "docker made these containers with runtime amd, and cannot start them again without it: web";
    assert!(undone.status.code() == Some(0) && undone.stdout.contains(web), "{undone:?}");
    assert!(!docker.has_wrapper());
    docker.run().well();
    docker.reload(&docker.text());
    docker.run().well();
    let started = docker.docker(&["start", "web"]);
    assert!(started.status.code() != Some(0), "{started:?}");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_undo_keeps_the_wrapper_while_dockerd_20_10_has_it_as_its_default() {
    is_undone_once_the_default_is_another(&CONTAINERD_1_6);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_undo_keeps_the_wrapper_while_dockerd_26_1_has_it_as_its_default() {
    is_undone_once_the_default_is_another(&CONTAINERD_1_7);
}

#[test]
fn real_undo_keeps_the_wrapper_while_dockerd_28_5_has_it_as_its_default() {
    is_undone_once_the_default_is_another(&CONTAINERD_2_1);
}

/// A dockerd that hangs may run by the package's program or by a copy, and each question to it costs its time
/// limit.
#[test]
fn real_a_removal_asks_a_dockerd_that_hangs_once_and_keeps_the_package() {
    let Some(docker) = Docker::start(&CONTAINERD_2_1) else { return };
    let host = &docker.0.host;
    put(host, &docker.text().replacen("\n    \"default-runtime\": \"amd\",", "", 1));
    host.busybox(&["killall", "-STOP", "dockerd"]).well();
    let began = Instant::now();
    let left = host.call(PATH, &["/stage/bin/rocworker", "deb", "leave"]);
    let took = began.elapsed();
    host.busybox(&["killall", "-CONT", "dockerd"]).well();
    let said = left.stdout.clone() + &left.stderr;
    assert_eq!(left.status.code(), Some(1), "{left:?}");
    let why = "dockerd runs and does not say which default runtime it has";
    assert!(said.contains(why) && said.contains("Package kept; nothing was reverted"), "{said}");
    assert!(docker.has_wrapper());
    assert!((10..20).contains(&took.as_secs()), "asked once, for 10 s: {took:?}");
}
