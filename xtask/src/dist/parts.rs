//! The parts that the package and the tarball hand out.

use std::path::Path;

use anyhow::{Context, Result};

use super::crates::Crate;
use super::files::{Files, in_folder, name, read};
use super::{copyright, units};
use crate::command::Command;
use crate::programs::Programs;
use crate::repository;

/// Files by name.
type Named = Vec<(String, Vec<u8>)>;

#[derive(Debug)]
pub(super) struct Parts {
    pub(super) rocworker: Vec<u8>,
    pub(super) wrapper: Vec<u8>,
    pub(super) exporter: Vec<u8>,
    pub(super) man: Named,
    pub(super) bash: Vec<u8>,
    pub(super) zsh: Vec<u8>,
    pub(super) fish: Vec<u8>,
    /// Units for the program at /usr/bin.
    pub(super) units: Named,
    /// Files that an operator may replace, by their path beneath templates/.
    pub(super) templates: Named,
    /// Prometheus' rules and Grafana's dashboard, by their path beneath deploy/.
    pub(super) monitoring: Named,
    /// Sets up the exporter and checks it.
    pub(super) install_exporter: Vec<u8>,
    /// The commented configuration, the rules of health, and what a report keeps of a file.
    pub(super) samples: Named,
    /// README.md, docs/ and charm/examples/.
    pub(super) docs: Named,
    pub(super) licence: Vec<u8>,
    pub(super) changelog: Vec<u8>,
    /// The licences of what is linked in.
    pub(super) notices: Vec<u8>,
    /// The stored files that the program reads, with the newest schema_version of each: lines of `PATH
    /// VERSION`.
    pub(super) formats: String,
}

/// The places of the common parts in the package, or in the tarball.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) program: &'static str,
    pub(super) wrapper: &'static str,
    pub(super) share: &'static str,
    /// The folder of zsh's completions, beneath `share/zsh`.
    pub(super) zsh: &'static str,
    /// The folder of the commented sample, the templates and the files for monitoring. It ends in a slash,
    /// because it may be the top.
    pub(super) samples: &'static str,
    pub(super) docs: &'static str,
}

impl Parts {
    /// The files that the package and the tarball share.
    pub(super) fn placed(&self, at: &Places) -> Files {
        let mut files = Files::default();
        for (folder, name, program) in [
            (at.program, "rocworker", &self.rocworker),
            (at.program, "rocworker-exporter", &self.exporter),
            (at.wrapper, "runc-amd-wrapper", &self.wrapper),
        ] {
            files.put_program(format!("{folder}/{name}"), program.clone());
        }
        let share = at.share;
        files.put(format!("{share}/bash-completion/completions/rocworker"), self.bash.clone());
        files.put(format!("{share}/zsh/{}/_rocworker", at.zsh), self.zsh.clone());
        files.put(format!("{share}/fish/vendor_completions.d/rocworker.fish"), self.fish.clone());
        files.put_all(&format!("{}templates", at.samples), &self.templates);
        files.put_all(at.samples, &self.monitoring);
        files.put_program(format!("{}install-rocm-exporter.sh", at.samples), self.install_exporter.clone());
        files.put_all(at.samples, &self.samples);
        files.put_all(at.docs, &self.docs);
        files
    }

    pub(super) fn collect(programs: &Programs, crates: &[Crate], work: &Path) -> Result<Self> {
        let top = repository::top();
        let said = |arguments: &[&str]| Command::new([&programs.rocworker]).arguments(arguments).read();
        let man = work.join("man");
        std::fs::create_dir(&man).with_context(|| format!("making {}", man.display()))?;
        Command::new([&programs.rocworker]).arguments(["man", "--into"]).arguments([&man]).read()?;
        Ok(Self {
            rocworker: read(&programs.rocworker)?,
            wrapper: read(&programs.wrapper)?,
            exporter: read(&programs.exporter)?,
            man: man_pages(&man, top)?,
            bash: said(&["completions", "bash"])?.into_bytes(),
            zsh: said(&["completions", "zsh"])?.into_bytes(),
            fish: said(&["completions", "fish"])?.into_bytes(),
            units: units::rendered(&programs.rocworker, work)?,
            templates: templates(&top.join("templates"))?,
            monitoring: monitoring(top)?,
            install_exporter: read(&top.join("deploy/install-rocm-exporter.sh"))?,
            samples: samples(top)?,
            docs: docs(top)?,
            licence: read(&top.join("LICENSE"))?,
            changelog: read(&top.join("CHANGELOG.md"))?,
            notices: copyright::notices(crates)?,
            formats: said(&["deb", "formats"])?,
        })
    }
}

/// Manual pages of rocworker's commands, which it prints itself, and the exporter's page.
fn man_pages(folder: &Path, top: &Path) -> Result<Named> {
    let mut pages = in_folder(folder, ".8")?;
    pages.extend(in_folder(&top.join("packaging"), ".8")?);
    named(&pages, "")
}

/// The documents by their paths in the repository, so that links between them hold.
fn docs(top: &Path) -> Result<Named> {
    let mut docs = named(&in_folder(&top.join("docs"), ".md")?, "docs/")?;
    docs.extend(named(&in_folder(&top.join("charm/examples"), "")?, "charm/examples/")?);
    docs.push(("README.md".to_owned(), read(&top.join("README.md"))?));
    Ok(docs)
}

fn samples(top: &Path) -> Result<Named> {
    let samples = [
        ("config.yaml", "templates/config.yaml"),
        ("health-rules.toml", "crates/gpu-health/rules.toml"),
        ("report-words.txt", "src/report/words.txt"),
    ];
    samples.into_iter().map(|(name, path)| Ok((name.to_owned(), read(&top.join(path))?))).collect()
}

fn monitoring(top: &Path) -> Result<Named> {
    let mut files = named(&in_folder(&top.join("deploy/prometheus"), ".yaml")?, "prometheus/")?;
    files.extend(named(&in_folder(&top.join("deploy/grafana"), ".json")?, "grafana/")?);
    Ok(files)
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

#[cfg(test)]
mod tests {
    use std::path::Component;

    use super::*;

    /// Documents to which the README links for people who have the sources.
    const SOURCES: [&str; 3] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];

    #[test]
    fn documents_that_are_handed_out_link_to_documents_that_are_too() {
        let docs = docs(repository::top()).unwrap();
        let mut lacking = Vec::new();
        for (name, text) in docs.iter().filter(|(name, _)| name.ends_with(".md")) {
            let text = std::str::from_utf8(text).unwrap();
            let targets = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
            for target in targets.filter(|target| !target.starts_with("http")) {
                let file = target.split_once('#').map_or(target, |(file, _)| file);
                let path = plain(&Path::new(name).with_file_name(file));
                let is_there = docs.iter().any(|(name, _)| Path::new(name).starts_with(&path));
                let is_of_sources = name == "README.md" && SOURCES.contains(&file);
                if file.ends_with(".md") && !is_there && !is_of_sources {
                    lacking.push(format!("{name}: {target}"));
                }
            }
        }
        assert!(lacking.is_empty(), "{}", lacking.join("\n"));
    }

    /// The path without `..`.
    fn plain(path: &Path) -> std::path::PathBuf {
        let mut plain = std::path::PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => assert!(plain.pop(), "{}", path.display()),
                part => plain.push(part),
            }
        }
        plain
    }
}
