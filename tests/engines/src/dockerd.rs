//! A dockerd that runs on a [`Host`].

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::host::Host;

const PATH: &str = "/usr/sbin:/usr/bin";

/// The address at which dockerd listens, for its clients on the stage; the socket is below the stage's folder
/// on this machine.
pub const SOCKET: &str = "unix:///stage/docker.sock";

/// The daemon, as long as this value lives.
#[derive(Debug)]
pub struct Dockerd {
    pub host: Host,
    daemon: Child,
}

impl Dockerd {
    /// Starts the host's dockerd with these options, and waits until it answers. dockerd sees nothing of this
    /// machine's network.
    ///
    /// # Panics
    /// With dockerd's output, where it does not start.
    pub fn start(host: Host, options: &[&str]) -> Self {
        let always = [
            "/usr/sbin/dockerd",
            "--host",
            SOCKET,
            "--storage-driver=vfs",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "--ip-forward=false",
        ];
        let dockerd = host.command(PATH, &[&always, options].concat());
        let mut daemon = Command::new("/usr/bin/unshare");
        daemon.arg("--net").arg(dockerd.get_program()).args(dockerd.get_args());
        daemon.env_clear().env("PATH", PATH).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut daemon = daemon.spawn().unwrap();
        let mut log = BufReader::new(daemon.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("API listen on") {
            assert!(log.read_line(&mut said).unwrap() > 0, "dockerd ended: {said}");
        }
        // Read on, so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { host, daemon }
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        // What it has entered the namespaces by; dockerd and what it started end with the host's process namespace.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
