//! Somebody else who is installing something: real apt-get in the middle of it, with apt's and dpkg's locks.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use crate::machine::Machine;
use crate::package::{Package, Script};

/// Fails in the end, so that nothing of the package stays.
const PREINST: &str = "#!/bin/sh\necho the locks are held\nread -r _ || true\nexit 1\n";

/// apt-get that holds /var/lib/dpkg/lock-frontend, and dpkg that holds /var/lib/dpkg/lock.
#[derive(Debug)]
pub struct Holder {
    apt_get: Child,
}

impl Holder {
    /// Returns once both are held.
    ///
    /// # Panics
    /// Where apt-get ends before that.
    pub fn on(machine: &Machine) -> Self {
        let package = Package::new("rocworker-lab-holder", "1.0").script(Script::Preinst, PREINST);
        let file = package.build(&machine.shared());
        let file = machine.shared_name(&file);
        let mut command =
            machine.command(&["apt-get", "--quiet", "--yes", "-o", "Dpkg::Use-Pty=0", "install", &file]);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        let mut apt_get =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(apt_get.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "the locks are held"), "apt-get ended: {:?}", apt_get.wait());
        // apt-get must not block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { apt_get }
    }

    /// Lets both locks go, as the installation ends.
    ///
    /// # Panics
    /// Where apt-get cannot be waited for.
    pub fn let_go(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.apt_get.stdin.take());
        self.apt_get.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.end();
    }
}
