//! A machine to which a driver can be brought, by real apt, dpkg and dkms: a trivial module under AMD's name.

use std::path::Path;

use lab::headers::Headers;
use lab::key::Key;
use lab::machine::Machine;
use lab::package::Package;
use lab::repository::Repository;
use lab::server::Server;
use lab::standins;
use packages::driver::Dkms;
use packages::driver::dkms::State;
use root::Root;
use serde_json::Value;
use support::said::Said;

pub(crate) const PROGRAM: &str = "/usr/bin/rocworker";
pub(crate) const DRIVER: &str = "1:6.16.13.30300300-2327507.22.04";
pub(crate) const SOURCE: &str = "6.16.13-2327507.22.04";

/// A machine that runs the kernel whose headers are to be had, if they are to be had.
pub(crate) struct Worker {
    pub(crate) machine: Machine,
    pub(crate) release: String,
    /// Where the driver is: apt is not told of it yet.
    pub(crate) amd: Served,
}

/// A repository on a server.
pub(crate) struct Served {
    pub(crate) key: Key,
    repository: Repository,
    pub(crate) server: Server,
}

impl Served {
    fn new(mut repository: Repository) -> Self {
        let key = Key::generate("Laboratory");
        let folder = repository.release(&key);
        std::fs::write(folder.join("key.asc"), key.armored()).unwrap();
        let server = Server::start(&folder);
        Self { key, repository, server }
    }

    fn tell(&self, machine: &Machine) {
        machine.add_source(&self.repository, &self.server.url(), &self.key);
        machine.apt_get(&["update"]).well();
    }
}

impl Worker {
    /// `offers_headers`: whether the distribution has them.
    pub(crate) fn new(machine: Machine, headers: &Headers, offers_headers: bool) -> (Self, Served) {
        let release = headers.release().to_owned();
        machine.seem_to_run(&release);
        // The one that this system may have is the test's own, not the machine's.
        machine.call(&["rm", "-f", "/.dockerenv"]).well();
        machine.put_program(env!("CARGO_BIN_EXE_rocworker").as_ref(), PROGRAM);
        machine.put_script("/usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
        let setuptools = Package::new("python3-setuptools", "66.1.1-1");
        let mut debian = Repository::new("Debian", "bookworm", "main").with([setuptools]);
        if offers_headers {
            headers.offer_in(&mut debian);
        }
        let debian = Served::new(debian);
        debian.tell(&machine);
        let driver = [standins::amdgpu_dkms(DRIVER)];
        let amd = Served::new(Repository::new(standins::ORIGIN, "jammy", "main").with(driver));
        // What is served goes with its value.
        (Self { machine, release, amd }, debian)
    }

    /// The driver that is asked for; engines are left alone.
    pub(crate) fn configure(&self) {
        self.configure_as("30.30.3", &self.amd.server.url());
    }

    /// `release`: of AMD's driver, from this repository.
    pub(crate) fn configure_as(&self, release: &str, repository: &str) {
        self.machine.put("/etc/rocworker/config.yaml", self.configuration(release, repository));
    }

    pub(crate) fn configuration(&self, release: &str, repository: &str) -> String {
        let (url, fingerprint) = (self.amd.server.url(), self.amd.key.fingerprint());
        let off =
            "containerd: {configure: never}\ndocker: {configure: never}\nconcourse: {configure: never}\n";
        format!(
            "{off}driver: {{install: amdgpu-dkms, version: {release}}}\nrepositories:\n  key: {url}/key.asc\n  \
             fingerprints: [{fingerprint}]\n  amdgpu: {{url: {repository}}}\n"
        )
    }

    /// AMD's repository beside the distribution's.
    pub(crate) fn tell_of_amd(&self) {
        let keyring = Path::new("/etc/apt/keyrings/amd.gpg");
        self.machine.put("/etc/apt/keyrings/amd.gpg", self.amd.key.binary());
        let source = self.amd.repository.source(&self.amd.server.url(), keyring);
        self.machine.put("/etc/apt/sources.list.d/amd.list", source);
        self.machine.apt_get(&["update"]).well();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.machine.call(&[&[PROGRAM], arguments].concat())
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let said = self.run(&[arguments, &["--output", "json"]].concat());
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    /// Status, evidence and remedy of a check of doctor's.
    #[track_caller]
    pub(crate) fn check(&self, subject: &str) -> [String; 3] {
        let answer = self.json(&["doctor"]);
        let checks = answer["checks"].as_array().unwrap().iter();
        let mut checks = checks.filter(|check| check["name"] == "dkms" && check["subject"] == subject);
        let check = checks.next().unwrap_or_else(|| panic!("no {subject}: {answer:#}"));
        ["status", "evidence", "remedy"].map(|key| check[key].as_str().unwrap_or("").to_owned())
    }

    /// What the library reads of dkms' tree, in dkms' words.
    pub(crate) fn state(&self) -> String {
        let root = Root::open(&self.machine.outside("/")).unwrap();
        let dkms = Dkms::read(&root).unwrap();
        let release = &self.release;
        match dkms.state(release) {
            State::Unknown => String::new(),
            State::SourceGone(version) | State::Added(version) => format!("amdgpu/{}: added\n", version.name),
            State::Built(version, build) => {
                format!("amdgpu/{}, {release}, {}: built\n", version.name, build.arch)
            }
            State::Installed(version, build) => {
                format!("amdgpu/{}, {release}, {}: installed\n", version.name, build.arch)
            }
        }
    }
}
