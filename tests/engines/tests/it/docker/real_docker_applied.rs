//! A machine on which `rocworker apply` ran and nothing else: what `docker run --runtime amd` gives there, as AMD's
//! documentation has it, and what changes where our runtime becomes docker's default.

use std::fs;

use layout::Machine;
use real_engines::dockerd::{Dockerd, SOCKET};
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_1_7, CONTAINERD_2_1, Engine};
use real_engines::host::Host;
use real_engines::look;
use real_engines::machine::{self, seen_on_demo};
use support::real;
use support::said::Said;
use support::stage::Stage;

const PATH: &str = "/usr/sbin:/usr/bin";
const DAEMON_JSON: &str = "/etc/docker/daemon.json";
const CONFIG: &str = "/etc/rocworker/config.yaml";
const WARNING: &str =
    "docker's default runtime is the wrapper (/etc/docker/daemon.json): any image could ask";

struct Docker(Dockerd);

impl Docker {
    fn start(engine: &Engine) -> Option<Self> {
        let program = real::require_root_and_built("ROCWORKER_PROGRAM", &["unshare", "busybox"])?;
        let unpacked = engine.unpacked()?;
        let stage = Stage::set(&Machine::demo());
        let (folder, rootfs) = (stage.folder(), machine::rootfs(&stage));
        look::lay_out(&rootfs);
        fs::create_dir_all(rootfs.join("etc")).unwrap();
        // The group of the demo machine's render nodes (tests/layout/src/drm.rs).
        fs::write(rootfs.join("etc/group"), "root:x:0:\nrender:x:992:\n").unwrap();
        fs::create_dir(folder.join("bin")).unwrap();
        fs::copy(program, folder.join("bin/rocworker")).unwrap();
        fs::copy(&unpacked.wrapper, folder.join("bin/runc-amd-wrapper")).unwrap();
        let seen = folder.join("seen");
        fs::create_dir(&seen).unwrap();
        fs::set_permissions(&seen, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let mut image = tar::Builder::new(fs::File::create(folder.join("look.tar")).unwrap());
        image.follow_symlinks(false);
        image.append_dir_all(".", &rootfs).unwrap();
        image.finish().unwrap();
        let host = Host::set(stage, &unpacked);
        host.busybox(&["mkdir", "-p", "/etc/docker", "/etc/rocworker"]).well();
        put(&host, DAEMON_JSON, "{\"data-root\": \"/stage/docker\"}\n");
        let applied = host.call(PATH, &["/stage/bin/rocworker", "apply"]);
        assert!(!applied.stdout.contains("wrapper.requests"), "{applied:?}");
        let cgroup = format!("--cgroup-parent=/{}", host.cgroup());
        let docker = Self(Dockerd::start(host, &[&cgroup]));
        docker.docker(&["import", "/stage/look.tar", "look"]).well();
        Some(docker)
    }

    fn docker(&self, argv: &[&str]) -> Said {
        let argv = [&["/usr/bin/docker", "--host", SOCKET], argv].concat();
        self.0.host.call(PATH, &argv)
    }

    fn run(&self, flags: &[&str]) -> Said {
        let seen = format!("{}:/seen", look::SEEN);
        let always = ["run", "--rm", "--network=none", "--volume", &seen];
        self.docker(&[&always[..], flags, &["look"], &look::look("one")].concat())
    }

    /// The GPUs that a container with these flags sees.
    fn look(&self, flags: &[&str]) -> String {
        self.run(flags).well();
        let file = self.0.host.folder().join("seen/one");
        let seen = fs::read_to_string(&file).unwrap();
        fs::remove_file(file).unwrap();
        seen
    }

    fn apply(&self) -> String {
        self.0.host.call(PATH, &["/stage/bin/rocworker", "apply"]).stdout
    }
}

fn put(host: &Host, path: &str, text: &str) {
    fs::write(host.folder().join("text"), text).unwrap();
    host.busybox(&["cp", "/stage/text", path]).well();
}

fn gives_what_is_asked_for_until_the_runtime_is_the_default(engine: &Engine) {
    let Some(docker) = Docker::start(engine) else { return };
    let named = ["--runtime", "amd", "-e", "AMD_VISIBLE_DEVICES=0"];
    assert_eq!(docker.look(&named), seen_on_demo([0], "open"));
    // The wrapper adds the groups; by its name too a group does no harm.
    for user in [&["--user", "1000:1000"][..], &["--user", "1000:1000", "--group-add", "render"]] {
        assert_eq!(docker.look(&[&named[..], user].concat()), seen_on_demo([0], "open"), "{user:?}");
    }
    let two = docker.look(&["--runtime", "amd", "-e", "AMD_GPU_COUNT=2"]);
    assert_eq!(two.matches("renderD").count(), 2, "{two}");
    assert_eq!(docker.look(&["--runtime", "amd"]), "");
    // Another runtime passes the variable by.
    assert_eq!(docker.look(&named[2..]), "");

    let text = docker.0.host.busybox(&["cat", DAEMON_JSON]).well();
    put(&docker.0.host, DAEMON_JSON, &text.replacen('{', "{\"default-runtime\": \"amd\",", 1));
    let said = docker.apply();
    assert!(said.contains(WARNING), "{said}");
    let refused = docker.run(&named);
    assert!(refused.stderr.contains("the policy honours no requests (requests: deny)"), "{refused:?}");
    assert_eq!(docker.look(&["--runtime", "amd"]), "");

    put(&docker.0.host, CONFIG, "wrapper: {requests: all}\n");
    let said = docker.apply();
    assert!(!said.contains(WARNING), "{said}");
    assert_eq!(docker.look(&named), seen_on_demo([0], "open"));
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_docker_20_10_gives_what_is_asked_for_after_apply_alone() {
    gives_what_is_asked_for_until_the_runtime_is_the_default(&CONTAINERD_1_6);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_docker_26_1_gives_what_is_asked_for_after_apply_alone() {
    gives_what_is_asked_for_until_the_runtime_is_the_default(&CONTAINERD_1_7);
}

#[test]
fn real_docker_28_5_gives_what_is_asked_for_after_apply_alone() {
    gives_what_is_asked_for_until_the_runtime_is_the_default(&CONTAINERD_2_1);
}
