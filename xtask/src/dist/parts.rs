//! What is handed out, whatever it is packed into.

use std::path::Path;

use anyhow::{Context, Result};

use super::crates::Crate;
use super::files::{in_folder, name, read};
use super::{Programs, copyright, units};
use crate::command::Command;
use crate::repository;

/// Each file by its name.
type Named = Vec<(String, Vec<u8>)>;

#[derive(Debug)]
pub(super) struct Parts {
    pub(super) rocworker: Vec<u8>,
    pub(super) wrapper: Vec<u8>,
    pub(super) man: Named,
    pub(super) bash: Vec<u8>,
    pub(super) zsh: Vec<u8>,
    pub(super) fish: Vec<u8>,
    /// For the program at /usr/bin.
    pub(super) units: Named,
    /// By their path beneath templates/: what an operator may replace.
    pub(super) templates: Named,
    /// The commented sample.
    pub(super) config: Vec<u8>,
    /// README.md and docs/.
    pub(super) docs: Named,
    pub(super) licence: Vec<u8>,
    pub(super) changelog: Vec<u8>,
    /// The licences of what is linked in.
    pub(super) notices: Vec<u8>,
    /// Which stored files the program reads, up to which schema_version: `PATH VERSION` lines.
    pub(super) formats: String,
}

impl Parts {
    pub(super) fn collect(programs: &Programs, crates: &[Crate], work: &Path) -> Result<Self> {
        let top = repository::top();
        let said = |arguments: &[&str]| Command::new([&programs.rocworker]).arguments(arguments).read();
        let man = work.join("man");
        std::fs::create_dir(&man).with_context(|| format!("making {}", man.display()))?;
        Command::new([&programs.rocworker]).arguments(["man", "--into"]).arguments([&man]).read()?;
        let mut docs = named(&in_folder(&top.join("docs"), ".md")?, "docs/")?;
        docs.push(("README.md".to_owned(), read(&top.join("README.md"))?));
        Ok(Self {
            rocworker: read(&programs.rocworker)?,
            wrapper: read(&programs.wrapper)?,
            man: named(&in_folder(&man, ".8")?, "")?,
            bash: said(&["completions", "bash"])?.into_bytes(),
            zsh: said(&["completions", "zsh"])?.into_bytes(),
            fish: said(&["completions", "fish"])?.into_bytes(),
            units: units::rendered(&programs.rocworker, work)?,
            templates: templates(&top.join("templates"))?,
            config: read(&top.join("templates/config.yaml"))?,
            docs,
            licence: read(&top.join("LICENSE"))?,
            changelog: read(&top.join("CHANGELOG.md"))?,
            notices: copyright::notices(crates)?,
            formats: said(&["deb", "formats"])?,
        })
    }
}

fn named(paths: &[impl AsRef<Path>], before: &str) -> Result<Named> {
    let one = |path: &Path| Ok((format!("{before}{}", name(path)?), read(path)?));
    paths.iter().map(|path| one(path.as_ref())).collect()
}

/// Everything in the folders of templates/, but what only the demo uses.
fn templates(top: &Path) -> Result<Named> {
    let entries = std::fs::read_dir(top).with_context(|| format!("listing {}", top.display()))?;
    let folders: std::io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut folders = folders.with_context(|| format!("listing {}", top.display()))?;
    folders.retain(|folder| folder.is_dir() && !folder.ends_with("demo"));
    folders.sort();
    let mut templates = Named::new();
    for folder in folders {
        templates.extend(named(&in_folder(&folder, "")?, &format!("{}/", name(&folder)?))?);
    }
    templates.push(("wrapper.json".to_owned(), read(&top.join("wrapper.json"))?));
    Ok(templates)
}
