//! Two network namespaces and a cable between them.

use std::process::Command;

use crate::is_alive;

/// Names that no other run has. Dropping it removes both namespaces, and with them the cable.
#[derive(Debug)]
pub struct Namespaces {
    pub client: String,
    pub worker: String,
}

impl Namespaces {
    /// The worker's address in its namespace.
    pub const WORKER: &str = "10.111.0.2";

    pub fn new() -> Self {
        remove_those_of_the_dead();
        let pid = std::process::id();
        let both = Self { client: format!("hip-c-{pid}"), worker: format!("hip-w-{pid}") };
        ip(&format!("netns add {}", both.client));
        ip(&format!("netns add {}", both.worker));
        ip(&format!("link add hip0 netns {} type veth peer name hip0 netns {}", both.client, both.worker));
        for (name, address) in [(&both.client, "10.111.0.1"), (&both.worker, Self::WORKER)] {
            ip(&format!("-n {name} address add {address}/24 dev hip0"));
            ip(&format!("-n {name} link set hip0 up"));
            ip(&format!("-n {name} link set lo up"));
        }
        both
    }

    /// A command that runs in one of them.
    pub fn inside(namespace: &str, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", namespace]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }
}

impl Default for Namespaces {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.client, &self.worker] {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// A run that was killed leaves its own.
fn remove_those_of_the_dead() {
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for name in listed.lines().filter_map(|line| line.split(' ').next()) {
        let pid = name.strip_prefix("hip-c-").or_else(|| name.strip_prefix("hip-w-"));
        if pid.and_then(|pid| pid.parse().ok()).is_some_and(|pid| !is_alive(pid)) {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(done.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}
