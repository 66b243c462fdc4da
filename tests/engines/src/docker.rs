//! A dockerd on the demo machine, and the `docker` of its suite to drive it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use layout::Machine;
use support::said::Said;

use crate::dockerd::{Dockerd, SOCKET};
use crate::engine::{Engine, SHIM_FOLDER};
use crate::host::Host;
use crate::{look, machine};

const PATH: &str = "/usr/sbin:/usr/bin";

/// A dockerd with the image `look` (see [`look`]).
#[derive(Debug)]
pub struct Docker {
    daemon: Dockerd,
    cgroup: String,
}

impl Docker {
    /// The dockerd of the suite that this containerd is of, with the wrapper as runtime `amd` under this policy.
    /// `keys`: what else its daemon.json has. None where the calling test is to be skipped.
    ///
    /// # Panics
    /// Where it does not start.
    #[must_use = "a test that cannot run must return"]
    #[track_caller]
    pub fn start(engine: &Engine, policy: &str, keys: &str) -> Option<Self> {
        let unpacked = engine.unpacked()?;
        let stage = machine::stage(&Machine::demo(), policy);
        look::lay_out(&machine::rootfs(&stage));
        let seen = stage.folder().join("seen");
        fs::create_dir(&seen).unwrap();
        // A container's user writes there too.
        fs::set_permissions(&seen, fs::Permissions::from_mode(0o777)).unwrap();
        let config = format!("{{{keys}\"runtimes\": {{\"amd\": {{\"path\": \"{SHIM_FOLDER}/runc\"}}}}}}");
        fs::write(stage.folder().join("daemon.json"), config).unwrap();
        let mut archive = tar::Builder::new(fs::File::create(stage.folder().join("look.tar")).unwrap());
        archive.follow_symlinks(false);
        archive.append_dir_all(".", machine::rootfs(&stage)).unwrap();
        archive.finish().unwrap();
        let host = Host::set(stage, &unpacked);
        let cgroup = format!("--cgroup-parent=/{}", host.cgroup());
        let options = ["--data-root=/stage/docker", "--config-file=/stage/daemon.json", &cgroup];
        let docker = Self { daemon: Dockerd::start(host, &options), cgroup };
        docker.call(&[], &["import", "/stage/look.tar", "look"]).well();
        Some(docker)
    }

    pub fn host(&self) -> &Host {
        &self.daemon.host
    }

    /// The parent of dockerd's containers' cgroups, as an argument of `docker run` and `docker build`.
    pub fn cgroup_parent(&self) -> &str {
        &self.cgroup
    }

    /// `docker` with these variables.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn call(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Said {
        let mut command = self.host().command(PATH, &[&["/usr/bin/docker"], arguments].concat());
        command.env("DOCKER_HOST", SOCKET).env("HOME", "/tmp").envs(variables.iter().copied());
        command.output().unwrap().into()
    }
}
