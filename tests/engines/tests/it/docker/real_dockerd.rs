//! Real dockerd with what is made of its daemon.json: a container has the GPUs that it asks for, by our runtime and by
//! CDI, and one that asks for none has none.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use config::Config;
use engines::docker::desired::actions;
use engines::docker::{self, Installed};
use engines::{CommandLine, Version};
use layout::Machine;
use real_engines::dockerd::Dockerd;
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_1_7, CONTAINERD_2_1, Engine, SHIM_FOLDER};
use real_engines::host::Host;
use real_engines::look;
use real_engines::machine::{self, ASKED, seen_on_demo};
use reconcile::Kind;
use serde_json::{Value, json};

struct Docker(Dockerd);

impl Docker {
    /// The dockerd of this containerd's suite on the demo machine. `version`: dockerd's version, which
    /// decides about its configuration.
    fn start(engine: &Engine, version: &str) -> Option<Self> {
        let unpacked = engine.unpacked()?;
        let stage = machine::stage(&Machine::demo(), ASKED);
        look::lay_out(&machine::rootfs(&stage));
        fs::create_dir(stage.folder().join("seen")).unwrap();
        fs::write(stage.folder().join("daemon.json"), daemon_json(version)).unwrap();
        let host = Host::set(stage, &unpacked);
        let docker = Self(Dockerd::start(host, &["--config-file=/stage/daemon.json"]));
        docker.import();
        Some(docker)
    }

    /// Asks its API, and returns the status and the answer.
    fn ask(&self, line: &str, body: &[u8], kind: &str) -> (u16, String) {
        let mut stream = UnixStream::connect(self.0.host.folder().join("docker.sock")).unwrap();
        let length = body.len();
        write!(
            stream,
            "{line} HTTP/1.0\r\nHost: docker\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The root file system that can look, as the image `look`.
    fn import(&self) {
        let mut archive = tar::Builder::new(Vec::new());
        archive.follow_symlinks(false);
        archive.append_dir_all(".", self.0.host.folder().join("rootfs")).unwrap();
        let archive = archive.into_inner().unwrap();
        let (status, said) =
            self.ask("POST /images/create?fromSrc=-&repo=look", &archive, "application/x-tar");
        assert_eq!(status, 200, "{said}");
    }

    /// The GPUs that a container sees, or docker's message on why there is no container.
    fn look(&self, file: &str, env: &[&str], host: &Value) -> Result<String, String> {
        let mut host = host.clone();
        host["NetworkMode"] = json!("none");
        host["Binds"] = json!([format!("{}:/seen", look::SEEN)]);
        host["CgroupParent"] = json!(format!("/{}", self.0.host.cgroup()));
        let container = json!({"Image": "look", "Cmd": look::look(file), "Env": env, "HostConfig": host});
        let body = container.to_string();
        let (status, said) = self.ask("POST /containers/create", body.as_bytes(), "application/json");
        assert_eq!(status, 201, "{said}");
        let created: Value = serde_json::from_str(&said).unwrap();
        let id = created["Id"].as_str().unwrap();
        let (status, said) = self.ask(&format!("POST /containers/{id}/start"), b"", "application/json");
        if status != 204 {
            return Err(said);
        }
        let (_, said) = self.ask(&format!("POST /containers/{id}/wait"), b"", "application/json");
        let ended: Value = serde_json::from_str(said.trim()).unwrap();
        assert_eq!(ended["StatusCode"], 0, "{said}");
        let (status, said) = self.ask(&format!("DELETE /containers/{id}"), b"", "application/json");
        assert_eq!(status, 204, "{said}");
        Ok(fs::read_to_string(self.0.host.folder().join("seen").join(file)).unwrap())
    }
}

fn daemon_json(version: &str) -> String {
    let config = Config::parse(Path::new("/etc/rocworker/config.yaml"), "").unwrap();
    let installed = Installed {
        program: "/usr/sbin/dockerd".into(),
        version: Ok(Version::find(version).unwrap()),
        config: "/etc/docker/daemon.json".into(),
        text: Ok(None),
        unit: Some(CommandLine::new("/usr/sbin/dockerd")),
        notes: Vec::new(),
        ends_with: Vec::new(),
    };
    let docker = docker::Docker { installed: Some(installed), is_snap: false };
    let wrapper = Path::new(SHIM_FOLDER).join("runc");
    match actions(&config, &docker, &wrapper).actions.pop().unwrap().kind {
        Kind::Edited(edit) => edit.apply("").unwrap(),
        other => panic!("{other:?}"),
    }
}

fn gives_what_is_asked_for(docker: &Docker) {
    let ours = json!({"Runtime": "amd"});
    assert_eq!(docker.look("named", &["AMD_VISIBLE_DEVICES=2"], &ours).unwrap(), seen_on_demo([2], "open"));
    assert_eq!(docker.look("silent", &[], &ours).unwrap(), "");
    // The default runtime is docker's own.
    assert_eq!(docker.look("plain", &["AMD_VISIBLE_DEVICES=2"], &json!({})).unwrap(), "");
    let refused = docker.look("none", &["AMD_VISIBLE_DEVICES=77"], &ours).unwrap_err();
    assert!(refused.contains("runc-amd-wrapper: the policy has no GPU \\\"77\\\""), "{refused}");
}

fn gives_what_cdi_names(docker: &Docker) {
    let request = json!({"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["amd.com/gpu=1"]}]});
    assert_eq!(docker.look("cdi", &[], &request).unwrap(), seen_on_demo([1], "open"));
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_dockerd_20_10_gives_a_container_the_gpus_that_it_asks_for() {
    Docker::start(&CONTAINERD_1_6, "20.10.24").iter().for_each(gives_what_is_asked_for);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_dockerd_26_1_gives_a_container_the_gpus_that_it_asks_for() {
    if let Some(docker) = Docker::start(&CONTAINERD_1_7, "26.1.5") {
        gives_what_is_asked_for(&docker);
        gives_what_cdi_names(&docker);
    }
}

#[test]
fn real_dockerd_28_5_gives_a_container_the_gpus_that_it_asks_for() {
    if let Some(docker) = Docker::start(&CONTAINERD_2_1, "28.5.2") {
        gives_what_is_asked_for(&docker);
        gives_what_cdi_names(&docker);
    }
}
