//! rocm-exporter.service as it is on the machine: the program that it runs, and a unit of this name that another wrote.

use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{Config, ExistingUnit};
use host::unit::{FOLDERS, Unit};
use reconcile::command::Programs;
use reconcile::{Effect, Receipt};
use root::Root;

use crate::own_program;

pub const NAME: &str = "rocm-exporter.service";
pub const FILE: &str = "/etc/systemd/system/rocm-exporter.service";

/// How the template begins, whatever is configured.
const OWN: &str = "# Written by rocworker:";

/// The longest unit that is read, in bytes: more than any unit has.
const LIMIT: usize = 256 << 10;

/// How long systemd may take for an answer: as a rule it answers at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// What decides about the unit beside the configuration.
#[derive(Debug)]
pub struct ExporterUnit {
    /// What it is to run, or why there is nothing.
    pub program: Result<PathBuf, String>,
    /// A unit of its name that rocworker neither wrote nor has in its receipt.
    pub foreign: Option<Foreign>,
    /// Whether the foreign unit ran before rocworker's took its place: undo starts it again.
    pub foreign_ran: bool,
    pub web_config: WebConfig,
}

/// A unit of the exporter's name that rocworker does not manage.
#[derive(Debug, PartialEq, Eq)]
pub struct Foreign {
    pub path: PathBuf,
    /// `runs /usr/local/bin/rocm_smi_exporter`
    pub what: String,
    /// Whether a link is where rocworker's unit would be: none is replaced.
    pub is_link: bool,
    /// Drop-ins of that unit, which apply to rocworker's unit too.
    pub drop_ins: Vec<PathBuf>,
}

/// Who may read the file of the key `exporter.web-config`.
#[derive(Debug, PartialEq, Eq)]
pub enum WebConfig {
    /// Everybody, or none is configured.
    Readable,
    /// The exporter, as a member of this group.
    ByGroup(u32),
    /// The exporter cannot read it, for this reason.
    Unreadable(String),
}

impl ExporterUnit {
    /// `running`: the program that runs, as in [`own_program::find`].
    pub fn read(
        root: &Root,
        config: &Config,
        receipt: &Receipt,
        running: Option<&Path>,
        programs: Option<&Programs>,
    ) -> Self {
        let entry = receipt.entry(Path::new(FILE));
        let foreign = if entry.is_none() { foreign(root) } else { None };
        let starts_again = |effect: &Effect| matches!(effect, Effect::Start { .. });
        let foreign_ran = match entry {
            Some(entry) => entry.effects.iter().any(starts_again),
            // Nobody else needs to know, and asking takes longer than all else.
            None if foreign.is_some() && config.exporter.existing == ExistingUnit::Replace => {
                let argv = ["systemctl", "is-active", "--quiet", NAME];
                programs.is_some_and(|programs| programs.run(&argv, PATIENCE).is_ok())
            }
            None => false,
        };
        let program = own_program::exporter(root, running);
        Self { program, foreign, foreign_ran, web_config: WebConfig::read(root, config) }
    }
}

/// The unit that systemd would run by the name, unless rocworker wrote it.
pub(crate) fn foreign(root: &Root) -> Option<Foreign> {
    let mut paths = FOLDERS.iter().map(|folder| Path::new(folder).join(NAME));
    let path = paths.find(|path| root.is_there(path))?;
    if root.read_text(&path, LIMIT).is_ok_and(|text| text.starts_with(OWN)) {
        return None;
    }
    let (what, drop_ins) = match Unit::read(root, NAME, None) {
        Ok(Some(unit)) => match unit.exec_start.first() {
            // Arguments may hold a password.
            Some(program) => (format!("runs {program}"), unit.drop_ins),
            None => ("runs nothing".to_owned(), Vec::new()),
        },
        Ok(None) => ("runs nothing".to_owned(), Vec::new()),
        Err(why) if why.ends_with("is masked") => ("is masked".to_owned(), Vec::new()),
        Err(why) => (format!("cannot be read: {why}"), Vec::new()),
    };
    let is_link = root.read_link(FILE).is_ok();
    Some(Foreign { path, what, is_link, drop_ins })
}

impl WebConfig {
    fn read(root: &Root, config: &Config) -> Self {
        let Some(path) = &config.exporter.web_config else { return Self::Readable };
        match root.stat(path) {
            Ok(meta) if meta.len == 0 => Self::Unreadable(format!(
                "{} is empty and protects nothing: write it, or leave the key out, then apply again",
                root.shown(path).display()
            )),
            Ok(meta) if meta.mode & 0o004 != 0 => Self::Readable,
            Ok(meta) if meta.mode & 0o040 != 0 && meta.gid != 0 => Self::ByGroup(meta.gid),
            Ok(_) => {
                let shown = root.shown(path);
                let path = shown.display();
                Self::Unreadable(format!(
                    "only root can read {path}, and the exporter is not root: give it and its key to a group with \
                     `groupadd --system --force rocm-exporter-tls`, `chgrp rocm-exporter-tls {path} KEY` and \
                     `chmod 640 {path} KEY`, then apply again"
                ))
            }
            Err(error) => Self::Unreadable(format!("{error}: put it there, then apply again")),
        }
    }
}
