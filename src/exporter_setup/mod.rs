//! The exporter on this machine, as `rocworker remote` has it installed, checked and removed: rocworker's package, the
//! configuration's key `exporter`, and the unit.

mod install;
mod revert;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, result};

use anyhow::{Context as _, Result, bail};
use config::Config;
use fleet::remote::scrape::{nearest, scrape};
use fleet::remote::{Found, Scrape, Unit};
use printable::printable;
use reconcile::command::{self, Programs, Stream};
use reconcile::dpkg::{self, Database};
use root::{Attributes, Root, if_there};

use crate::exporter_unit::{self, NAME};
use crate::own_program::PACKAGED;
use crate::run::ConfigFile;

pub use install::Install;

/// How the machine was before the first install. The folder appears and disappears by one rename; uninstall removes it last.
/// `package`: dpkg's state of rocworker. `etc`, `lib`: copies of the two folders. `own`: the unit was rocworker's.
/// `config.after`: the configuration that install wrote. `applied`: install has begun to apply. `how`: what uninstall does
/// with the package.
const STATE: &str = "/var/lib/rocworker-remote";
/// What a run writes until it ends.
const WORK: &str = "/var/lib/rocworker-remote.tmp";
const LOCK: &str = "/run/rocworker-remote.lock";

const ETC: &str = "/etc/rocworker";
const LIB: &str = "/var/lib/rocworker";
const RECEIPT: &str = "/var/lib/rocworker/receipt.json";

/// How long a program may take: the connection ends then.
const PATIENCE: Duration = fleet::ssh::LIMIT;
/// How long another run on this machine is waited for.
const WAIT: Duration = Duration::from_secs(60);
/// The most bytes of a file with keys for TLS and passwords, and of a file in [`STATE`].
const LIMIT: usize = 1 << 20;

const PRIVATE: Attributes = Attributes { mode: 0o600, owner: None };

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
        let environment = [
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("LANGUAGE", ""),
            ("DEBIAN_FRONTEND", "noninteractive"),
        ];
        Self { root, programs: programs.with_environment(&environment) }
    }

    /// What the machine has, and whether the exporter can be installed.
    ///
    /// # Errors
    /// What the exporter lacks here.
    pub fn look(&self) -> Result<Found> {
        if self.programs.find("dpkg").is_none() {
            bail!("dpkg is missing: rocworker's package needs Debian or Ubuntu");
        }
        if !host::runs_systemd(self.root) {
            bail!("systemd is not running: the exporter runs as a systemd unit");
        }
        if amdgpu::read(self.root).amd().next().is_none() {
            bail!("it has no AMD GPU: `rocworker detect` there lists what it has");
        }
        let found = self.found()?;
        if !self.root.exists(STATE) && found.version().is_none() && self.root.exists(RECEIPT) {
            bail!(
                "a rocworker that dpkg did not install manages this machine: run its `rocworker undo`, or install the package"
            );
        }
        Ok(found)
    }

    /// How the exporter is.
    ///
    /// # Errors
    /// dpkg cannot be asked.
    pub fn check(&self) -> Result<Found> {
        Ok(Found { scrape: Some(self.scrape(Duration::ZERO)), ..self.found()? })
    }

    /// Removes what install brought, and restores what was there before. `force`: also reverts a unit that was edited.
    ///
    /// # Errors
    /// What stays, and why; the next run continues.
    pub fn uninstall(&self, force: bool) -> Result<Found> {
        let _work = self.begin()?;
        let is_nothing = !self.root.exists(STATE);
        let kept = if is_nothing { Vec::new() } else { self.revert(force)? };
        Ok(Found { kept, is_nothing, ..self.found()? })
    }

    fn found(&self) -> Result<Found> {
        let unit = match exporter_unit::foreign(self.root) {
            Some(foreign) => Unit::Foreign { file: foreign.path, what: foreign.what },
            None if exporter_unit::path(self.root).is_some() => Unit::Own,
            None => Unit::None,
        };
        let argv = ["systemctl", "show", "--property=ActiveState", "--value", NAME];
        let state = host::runs_systemd(self.root).then(|| self.programs.run(&argv, PATIENCE));
        let active = state.transpose()?.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
        Ok(Found { package: self.package()?, unit, active, ..Found::default() })
    }

    /// rocworker's state and version as dpkg has them: `installed 0.1.0-1`, or `not-installed`.
    fn package(&self) -> Result<String> {
        let database = match Database::read(self.root) {
            Err(dpkg::Error::None(_)) => return Ok("not-installed".to_owned()),
            database => database?,
        };
        let known = database.there("rocworker").map(|it| format!("{} {}", it.status, it.version));
        Ok(known.unwrap_or_else(|| "not-installed".to_owned()))
    }

    fn scrape(&self, wait: Duration) -> result::Result<Scrape, String> {
        let config = ConfigFile::default().in_force(self.root).map_err(|error| error.to_string())?;
        let tls = self.has_tls(&config).map_err(|error| format!("{error:#}"))?;
        let listen = config.exporter.listen;
        scrape(nearest(listen), tls, wait).map_err(|why| format!("{listen}: {why}"))?;
        Ok(Scrape { listen, tls })
    }

    /// Whether the file of `exporter.web-config` asks for TLS.
    fn has_tls(&self, config: &Config) -> Result<bool> {
        let Some(path) = &config.exporter.web_config else { return Ok(false) };
        let text = self.root.read_text(path, LIMIT)?;
        let document: yaml_serde::Value =
            yaml_serde::from_str(&text).with_context(|| path.display().to_string())?;
        Ok(document.get("tls_server_config").is_some_and(|keys| !keys.is_null()))
    }

    /// Lets one run work at a time, and removes what a killed run left.
    fn begin(&self) -> Result<Work<'s>> {
        let lock = self.root.lock(LOCK, WAIT);
        let lock = lock.context("another `rocworker remote` may be running on this machine")?;
        let work = Work { root: self.root, _lock: lock };
        self.root.remove_tree(WORK)?;
        self.root.make_folder(WORK, Attributes { mode: 0o700, owner: None })?;
        Ok(work)
    }

    fn has(&self, name: &str) -> bool {
        self.root.exists(state(name))
    }

    /// A file's bytes; `None`: it is not there.
    fn bytes(&self, path: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
        Ok(if_there(self.root.read(path, LIMIT))?)
    }

    /// Runs a program, and passes its lines on to stderr.
    fn call(&self, argv: &[&str]) -> result::Result<(), Failed> {
        let mut stderr = Vec::new();
        let ended = self.programs.follow(argv, PATIENCE, &mut |stream, line| {
            writeln!(anstream::stderr(), "{}", printable(line)).ok();
            if stream == Stream::Stderr {
                stderr.push(line.to_owned());
            }
        });
        ended.map(drop).map_err(|error| Failed { error, stderr })
    }

    /// Copies a folder with its modes, owners, ACLs and times.
    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let [from, to] = [from, to].map(|path| path.to_string_lossy());
        Ok(self.programs.run(&["cp", "-a", &from, &to], PATIENCE).map(drop)?)
    }
}

fn state(name: &str) -> PathBuf {
    Path::new(STATE).join(name)
}

/// The folder and the lock of a run.
struct Work<'w> {
    root: &'w Root,
    _lock: root::Lock,
}

impl Drop for Work<'_> {
    /// What cannot be removed, the next run removes.
    fn drop(&mut self) {
        self.root.remove_tree(WORK).ok();
    }
}

/// A program that failed, with its lines on stderr.
#[derive(Debug)]
struct Failed {
    error: command::Error,
    stderr: Vec<String>,
}

impl fmt::Display for Failed {
    /// dpkg's last line names only the archive or the package: its reason stands before that.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_reason = |line: &String| line.starts_with("dpkg: ") && line.contains("error");
        match self.stderr.iter().position(is_reason).and_then(|at| self.stderr.get(at..)) {
            Some([first, second, ..]) => write!(f, "{first} {}", second.trim()),
            Some([first]) => f.write_str(first),
            _ => self.error.fmt(f),
        }
    }
}
