use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use config::Config;
use fleet::remote::exporter_config::{Listen, with_exporter};
use fleet::remote::{Found, Unit};
use reconcile::Digest;
use reconcile::command;
use root::{Attributes, if_there};

use super::{ETC, LIB, PACKAGED, PRIVATE, STATE, Setup, WORK, state};
use crate::exporter_unit::{self, NAME};
use crate::memory::Memory;

/// The package while it is installed.
const ARCHIVE: &str = "/var/lib/rocworker-remote.tmp/rocworker.deb";

/// The most bytes of a package.
const LARGEST: u64 = 512 << 20;

/// How long the exporter may take to answer after its start.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// The exit code by which rocworker refuses its arguments or its configuration, before any change.
const REFUSED: i32 = 2;

/// What install is to bring.
#[derive(Debug)]
pub struct Install<'i> {
    pub listen: Listen,
    /// Whether a foreign unit is replaced.
    pub replaces: bool,
    /// The digest of the package that comes on stdin; `None`: dpkg has installed rocworker already.
    pub package: Option<&'i str>,
}

impl Setup<'_> {
    /// Installs the package unless one is installed, adds the key `exporter`, and applies the exporter's unit. Where this
    /// fails the first time, it reverts what it began.
    ///
    /// # Errors
    /// What failed, and whether it was reverted.
    pub fn install(&self, wanted: &Install<'_>) -> Result<Found> {
        let _work = self.begin()?;
        // A killed uninstall may have purged folders: only the state still holds them.
        if self.has("how") {
            self.revert(false)?;
        }
        let is_fresh = !self.root.exists(STATE);
        match self.bring(wanted) {
            Ok(is_applied) => self.verify(is_applied),
            Err(error) if is_fresh => {
                // Where the disk is full, dpkg needs room to remove.
                self.root.remove(ARCHIVE)?;
                if self.root.exists(STATE) {
                    self.root.remove(state("applied"))?;
                    self.revert(false)?;
                }
                bail!("{error:#}; the machine is unchanged")
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether all of the exporter's unit was applied. After an error, nothing of it was.
    fn bring(&self, wanted: &Install<'_>) -> Result<bool> {
        let had = self.package()?;
        let config = self.config_with_exporter(wanted)?;
        let is_there = had.starts_with("installed ");
        if !is_there {
            self.receive(wanted.package)?;
        }
        if !self.root.exists(STATE) {
            self.keep_state(&had)?;
        }
        // dpkg also fails if the trigger of another package fails.
        if !is_there
            && let Err(why) = self.call(&["dpkg", "--install", ARCHIVE])
            && !self.package()?.starts_with("installed ")
        {
            bail!("dpkg cannot install the package: {why}");
        }
        if let Some(text) = config {
            let how = match if_there(self.root.stat(config::PATH))? {
                Some(meta) => Attributes { mode: meta.mode, owner: Some((meta.uid, meta.gid)) },
                None => Attributes { mode: 0o644, owner: None },
            };
            self.root.write(state("config.after"), text.as_bytes(), PRIVATE)?;
            self.root.write(config::PATH, text.as_bytes(), how)?;
        }
        self.root.write(state("applied"), b"", PRIVATE)?;
        let applied = self.call(&[PACKAGED, "apply", "--only", "exporter"]);
        if let Err(why) = &applied
            && matches!(why.error, command::Error::Failed { status, .. } if status.code() == Some(REFUSED))
        {
            let package = self.package()?;
            let version = package.split(' ').next_back().unwrap_or_default();
            bail!(
                "rocworker {version} may be too old, and refused: {why}; install a newer package there first, or name one with --package"
            );
        }
        Ok(applied.is_ok())
    }

    /// The configuration's text with the key `exporter`; `None`: the key has these values already.
    fn config_with_exporter(&self, wanted: &Install<'_>) -> Result<Option<String>> {
        if let Some(other) = Memory::read(self.root)?.config.and_then(|applied| applied.other) {
            let other = other.display();
            bail!(
                "this machine was set up with --config {other}: set exporter there, then rocworker --config {other} apply"
            );
        }
        // Only this file is saved and restored.
        with_exporter(&Config::read(self.root)?, wanted.listen, wanted.replaces).map_err(Error::msg)
    }

    fn receive(&self, digest: Option<&str>) -> Result<()> {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(LARGEST).read_to_end(&mut bytes)?;
        if Some(Digest::of(&bytes).as_str()) != digest {
            bail!("the package was damaged in transfer");
        }
        self.root.write(ARCHIVE, &bytes, PRIVATE)?;
        let name = self.programs.run(&["dpkg-deb", "--field", ARCHIVE, "Package"], super::PATIENCE)?;
        match String::from_utf8_lossy(&name.stdout).trim() {
            "rocworker" => Ok(()),
            name => bail!("the package is {name}, not rocworker: name another with --package"),
        }
    }

    fn keep_state(&self, had: &str) -> Result<()> {
        let new = Path::new(WORK).join("state");
        self.root.make_folder(&new, Attributes { mode: 0o700, owner: None })?;
        self.root.write(new.join("package"), format!("{had}\n").as_bytes(), PRIVATE)?;
        for (name, folder) in [("etc", ETC), ("lib", LIB)] {
            if self.root.exists(folder) {
                self.copy(folder.as_ref(), &new.join(name))?;
            }
        }
        if exporter_unit::path(self.root).is_some() && exporter_unit::foreign(self.root).is_none() {
            self.root.write(new.join("own"), b"", PRIVATE)?;
        }
        self.root.sync(WORK)?;
        Ok(self.root.rename_new(new, STATE)?)
    }

    /// `is_applied`: whether all of the unit was applied.
    fn verify(&self, is_applied: bool) -> Result<Found> {
        let scraped = self.scrape(STARTS_WITHIN);
        let found = self.found()?;
        let problem = match (&found.unit, &scraped, found.active.as_deref()) {
            (Unit::Own, Ok(_), Some("active")) if is_applied => {
                return Ok(Found { scrape: Some(scraped), ..found });
            }
            (Unit::Own, Ok(_), Some("active")) => {
                bail!(
                    "the exporter answers, but `rocworker apply --only exporter` failed: the lines above say why"
                )
            }
            (Unit::Own, Ok(_), active) => {
                let active = active.unwrap_or_default();
                format!("{NAME} is {active}, but another program answers on its port")
            }
            (Unit::Own, Err(why), _) => format!(
                "the exporter does not answer: {why}; fix this and install again, or run `rocworker remote uninstall`"
            ),
            _ => format!("{NAME} is not rocworker's: the lines above say why"),
        };
        let unit = format!("--unit={NAME}");
        // The journal explains; the problem is another.
        self.call(&["journalctl", &unit, "--no-pager", "--lines=20", "--output=short-iso"]).ok();
        bail!(problem)
    }
}
