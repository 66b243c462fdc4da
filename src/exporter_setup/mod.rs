//! The exporter on this machine, as `rocworker remote` has it installed, checked and removed.

mod revert;

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use config::Config;
use fleet::remote::exporter_config::{Listen, with_exporter};
use fleet::remote::scrape::{nearest, scrape};
use printable::{printable, shortened};
use reconcile::Digest;
use reconcile::command::{self, Programs, Stream};
use reconcile::dpkg::{self, Database};
use root::{Attributes, Root, if_there};
use serde::{Deserialize, Serialize};

use crate::exporter_unit::{self, NAME};
use crate::memory::Memory;
use crate::own_program::PACKAGED;
use crate::run::ConfigFile;

/// How the machine was before the first install. The folder appears and disappears by one rename; uninstall removes it last.
/// `package`: dpkg's state of rocworker. `etc`, `lib`: copies of the two folders. `own`: the unit was rocworker's.
/// `config.after`: the configuration that install wrote. `applied`: install has begun to apply. `how`: what uninstall does
/// with the package: `--purge`, `--remove`, `stays`.
const STATE: &str = "/var/lib/rocworker-remote";
/// What a run needs until it ends.
const WORK: &str = "/var/lib/rocworker-remote.tmp";
const ARCHIVE: &str = "/var/lib/rocworker-remote.tmp/rocworker.deb";
const LOCK: &str = "/run/rocworker-remote.lock";

const ETC: &str = "/etc/rocworker";
const LIB: &str = "/var/lib/rocworker";
const RECEIPT: &str = "/var/lib/rocworker/receipt.json";

/// How long a question may take.
const PATIENCE: Duration = fleet::ssh::LIMIT;
/// How long dpkg and rocworker may take. They end also where the connection has ended.
const AT_WORK: Duration = Duration::from_secs(3600);
/// The most bytes of a configuration and of its file for TLS.
const LIMIT: usize = 1 << 20;

const NOTHING: &str = "remote install did not set up this host; nothing to do";

/// The exit code by which rocworker refuses its arguments or its configuration, before any change.
const REFUSED: i32 = 2;

const FILE: Attributes = Attributes { mode: 0o600, owner: None };
const FOLDER: Attributes = Attributes { mode: 0o700, owner: None };

/// What a machine has of the exporter.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Found {
    /// The version of rocworker's package, where dpkg has installed it.
    pub version: Option<String>,
    /// What `systemctl is-active` prints for the unit.
    pub active: Option<String>,
    pub unit: Option<Unit>,
    /// Where the exporter answers.
    pub listen: Option<SocketAddr>,
    pub problems: Vec<String>,
    pub notes: Vec<String>,
    /// Whether the exporter answers by TLS, for the rocworker that asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
    /// What `look` says of a foreign unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
}

/// Who wrote the machine's rocm-exporter.service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Own,
    Foreign,
}

/// The exporter on a machine.
#[derive(Debug)]
pub struct Setup<'s> {
    root: &'s Root,
    programs: Programs,
}

impl<'s> Setup<'s> {
    #[must_use]
    pub fn new(root: &'s Root, programs: &Programs) -> Self {
        // dpkg needs the sbin folders, which a login may lack, and its scripts must ask nothing.
        let path = ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        let programs =
            programs.with_environment(&[path, ("LANGUAGE", ""), ("DEBIAN_FRONTEND", "noninteractive")]);
        Self { root, programs }
    }

    /// Whether the exporter can be installed.
    pub fn look(&self) -> Result<Found> {
        if self.programs.find("dpkg").is_none() {
            bail!("dpkg is missing: rocworker's package needs Debian or Ubuntu");
        }
        if !host::runs_systemd(self.root) {
            bail!("systemd is not running: the exporter runs as a systemd unit");
        }
        if amdgpu::read(self.root).amd().next().is_none() {
            bail!("it has no AMD GPU: `rocworker --host HOST detect` lists what it has");
        }
        let found = self.found()?;
        if !self.root.exists(STATE) && found.version.is_none() && self.root.exists(RECEIPT) {
            bail!(
                "a rocworker that dpkg did not install manages this machine: run its `rocworker undo`, or install the package"
            );
        }
        Ok(Found { foreign: self.foreign(), ..found })
    }

    /// How the exporter is. `wait`: how long it may take to answer.
    pub fn check(&self, wait: Duration) -> Result<Found> {
        let scraped = if self.unit() == Some(Unit::Own) { self.scrape(wait) } else { Ok((None, false)) };
        let mut found = self.found()?;
        if found.version.is_none() {
            found.problems.push("rocworker's package is not installed".to_owned());
        }
        let state = found.active.as_deref().unwrap_or("in an unknown state");
        found.problems.extend(match found.unit {
            None => Some(format!("there is no {NAME}")),
            Some(Unit::Foreign) => self.foreign(),
            Some(Unit::Own) => (state != "active").then(|| format!("{NAME} is {state}")),
        });
        match scraped {
            Ok(answer) => (found.listen, found.tls) = answer,
            Err(why) => found.problems.push(format!("the exporter does not answer on its host: {why:#}")),
        }
        Ok(found)
    }

    /// Installs the package unless one is installed, adds the key `exporter`, and applies the exporter's unit. Where the
    /// first install fails, it is reverted. `package`: the digest of what comes on stdin.
    pub fn install(&self, listen: Listen, replaces: bool, package: Option<&str>) -> Result<Found> {
        self.exclusively(|| {
            // A killed uninstall may have purged folders: only the state still holds them.
            let mut notes = Vec::new();
            if self.root.exists(state("how")) {
                notes.extend(self.revert(false)?.into_iter().skip(1));
            }
            let is_fresh = !self.root.exists(STATE);
            match self.install_and_apply(listen, replaces, package) {
                Ok(is_applied) => {
                    let found = self.verify(is_applied)?;
                    Ok(Found { notes: [notes, found.notes].concat(), ..found })
                }
                Err(error) if is_fresh => {
                    let kept =
                        self.give_up().with_context(|| format!("{error:#}; and this was not reverted"))?;
                    match kept.get(1..) {
                        None | Some([]) => bail!("{error:#}; the machine is unchanged"),
                        Some(kept) => bail!("{error:#}; this was reverted, except: {}", kept.join("; ")),
                    }
                }
                Err(error) => Err(error),
            }
        })
    }

    /// Reverts a first install.
    fn give_up(&self) -> Result<Vec<String>> {
        // Where the disk is full, dpkg needs room to remove.
        self.root.remove(ARCHIVE)?;
        if !self.root.exists(STATE) {
            return Ok(Vec::new());
        }
        self.root.remove(state("applied"))?;
        self.revert(false)
    }

    /// Removes what install brought, and restores what was there before. `force`: also reverts a unit that was edited.
    pub fn uninstall(&self, force: bool) -> Result<Found> {
        if !self.root.exists(STATE) && !self.root.exists(WORK) {
            return Ok(Found { notes: vec![NOTHING.to_owned()], ..self.found()? });
        }
        self.exclusively(|| {
            let notes = match self.root.exists(STATE) {
                true => self.revert(force)?,
                false => vec![NOTHING.to_owned()],
            };
            Ok(Found { notes, ..self.found()? })
        })
    }

    /// Returns whether all of the exporter's unit was applied. After an error, nothing of it was.
    fn install_and_apply(&self, listen: Listen, replaces: bool, package: Option<&str>) -> Result<bool> {
        if let Some(other) = Memory::read(self.root)?.config.and_then(|applied| applied.other) {
            let other = other.display();
            bail!(
                "this machine was set up with --config {other}: set exporter there, then rocworker --config {other} apply"
            );
        }
        let config = with_exporter(&Config::read(self.root)?, listen, replaces).map_err(Error::msg)?;
        let before = self.package()?;
        if !is_installed(&before) {
            self.receive(package)?;
        }
        if !self.root.exists(STATE) {
            self.keep_state(&before)?;
        }
        // dpkg also fails if the trigger of another package fails.
        if !is_installed(&before)
            && let Err((_, why)) = self.call(&["dpkg", "--install", ARCHIVE])
            && !is_installed(&self.package()?)
        {
            bail!("dpkg cannot install the package: {why}");
        }
        if let Some(text) = config {
            self.root.write(state("config.after"), text.as_bytes(), FILE)?;
            self.write_config(text.as_bytes())?;
        }
        self.root.write(state("applied"), b"", FILE)?;
        match self.call(&[PACKAGED, "apply", "--only", "exporter"]) {
            Err((Some(REFUSED), why)) => bail!(
                "{} refuses, maybe because it is too old: {why}; install a newer package there, or name one with --package",
                self.package()?.replace("installed", "rocworker")
            ),
            applied => Ok(applied.is_ok()),
        }
    }

    fn write_config(&self, bytes: &[u8]) -> Result<(), root::Error> {
        let how = match if_there(self.root.stat(config::PATH))? {
            Some(meta) => Attributes { mode: meta.mode, owner: Some((meta.uid, meta.gid)) },
            None => Attributes { mode: 0o644, owner: None },
        };
        self.root.write(config::PATH, bytes, how).map(drop)
    }

    fn receive(&self, digest: Option<&str>) -> Result<()> {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        if Some(Digest::of(&bytes).as_str()) != digest {
            bail!("no package came, or it was damaged in transfer");
        }
        self.root.write(ARCHIVE, &bytes, FILE)?;
        match self.answer(&["dpkg-deb", "--field", ARCHIVE, "Package"])?.as_str() {
            "rocworker" => Ok(()),
            name => bail!("the package is {name}, not rocworker: name another with --package"),
        }
    }

    fn keep_state(&self, had: &str) -> Result<()> {
        let new = Path::new(WORK).join("state");
        self.root.make_folder(&new, FOLDER)?;
        self.root.write(new.join("package"), format!("{had}\n").as_bytes(), FILE)?;
        for (name, folder) in [("etc", ETC), ("lib", LIB)] {
            if self.root.exists(folder) {
                self.copy(folder.as_ref(), &new.join(name))?;
            }
        }
        if self.unit() == Some(Unit::Own) {
            self.root.write(new.join("own"), b"", FILE)?;
        }
        self.root.sync(WORK)?;
        Ok(self.root.rename_new(new, STATE)?)
    }

    /// `is_applied`: whether all of the unit was applied.
    fn verify(&self, is_applied: bool) -> Result<Found> {
        let mut found = self.check(Duration::from_secs(10))?;
        if !is_applied {
            let problem = "`rocworker apply --only exporter` failed: the lines above say why";
            found.problems.push(problem.to_owned());
        }
        if !found.problems.is_empty() {
            let problems = found.problems.join("; ");
            // What journalctl says is shown. Its own failure is not the problem to report.
            self.call(&["journalctl", "--unit", NAME, "--no-pager", "--lines=20", "--output=short-iso"]).ok();
            bail!("{problems}; fix this and install again, or run `rocworker remote uninstall`");
        }
        Ok(found)
    }

    fn found(&self) -> Result<Found> {
        let package = self.package()?;
        let version = package.strip_prefix("installed ").map(str::to_owned);
        let argv = ["systemctl", "show", "--property=ActiveState", "--value", NAME];
        let active = host::runs_systemd(self.root).then(|| self.answer(&argv)).transpose()?;
        Ok(Found { version, active, unit: self.unit(), ..Found::default() })
    }

    fn unit(&self) -> Option<Unit> {
        match self.foreign() {
            Some(_) => Some(Unit::Foreign),
            None => self.root.exists(exporter_unit::FILE).then_some(Unit::Own),
        }
    }

    /// A sentence on a foreign unit.
    fn foreign(&self) -> Option<String> {
        let foreign = exporter_unit::foreign(self.root)?;
        Some(format!("{NAME} is not rocworker's: {} {}", foreign.path.display(), foreign.what))
    }

    /// rocworker's state and version as dpkg has them: `installed 0.1.0-1`, or `not-installed`.
    fn package(&self) -> Result<String> {
        let database = match Database::read(self.root) {
            Err(dpkg::Error::None(_)) => None,
            database => Some(database?),
        };
        let known = database.as_ref().and_then(|it| it.there("rocworker"));
        Ok(known.map_or_else(|| "not-installed".to_owned(), |it| format!("{} {}", it.status, it.version)))
    }

    /// Asks the exporter for metrics. Returns its address, and whether it answers by TLS.
    fn scrape(&self, wait: Duration) -> Result<(Option<SocketAddr>, bool)> {
        let config = ConfigFile::default().in_force(self.root)?.exporter;
        let tls = match &config.web_config {
            None => false,
            Some(path) => {
                let text = self.root.read_text(path, LIMIT)?;
                let document: yaml_serde::Value =
                    yaml_serde::from_str(&text).with_context(|| path.display().to_string())?;
                document.get("tls_server_config").is_some_and(|keys| !keys.is_null())
            }
        };
        let listen = config.listen;
        scrape(nearest(listen), tls, wait).map_err(|why| anyhow!("{listen}: {why}"))?;
        Ok((Some(listen), tls))
    }

    /// Lets one run work at a time, and removes what it leaves, or a killed run left.
    fn exclusively(&self, work: impl FnOnce() -> Result<Found>) -> Result<Found> {
        let lock = self.root.lock(LOCK, Duration::from_secs(60));
        let lock = lock
            .context("another `rocworker remote` may be running on this machine: wait until it finishes")?;
        lock.share_with_children()?;
        self.root.remove_tree(WORK)?;
        self.root.make_folder(WORK, FOLDER)?;
        let ended = work();
        // What cannot be removed, the next run removes.
        self.root.remove_tree(WORK).ok();
        drop(lock);
        ended
    }

    /// Runs a program, and passes its lines on to stderr. An error has the exit code and what the program wrote to stderr.
    fn call(&self, argv: &[&str]) -> Result<(), (Option<i32>, String)> {
        let mut words = String::new();
        let ended = self.programs.follow(argv, AT_WORK, &mut |stream, line| {
            writeln!(anstream::stderr(), "{}", printable(line)).ok();
            if stream == Stream::Stderr {
                words = [&words, line.trim()].join(if words.is_empty() { "" } else { " " });
            }
        });
        ended.map(drop).map_err(|error| {
            let code = if let command::Error::Failed { status, .. } = &error { status.code() } else { None };
            (code, if words.is_empty() { error.to_string() } else { shortened(words, 300) })
        })
    }

    /// What a program prints.
    fn answer(&self, argv: &[&str]) -> Result<String> {
        let output = self.programs.run(argv, PATIENCE)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Copies a folder with its modes, owners, ACLs and times.
    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        self.answer(&["cp", "-a", &from.to_string_lossy(), &to.to_string_lossy()]).map(drop)
    }
}

fn state(name: &str) -> PathBuf {
    Path::new(STATE).join(name)
}

fn is_installed(package: &str) -> bool {
    package.starts_with("installed ")
}
