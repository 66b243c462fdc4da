use std::path::{Path, PathBuf};

use allocation::cdi::{DeviceNode, Spec};
use anyhow::{Context, anyhow, bail};
use cdi::{self, KIND, Siblings, Wanted, wanted};
use clap::Subcommand;
use config::Config;
use config::selection::select;
use printable::{counted, printable};
use root::{Attributes, Root, Written};
use serde::Serialize;

use super::Outcome;
use super::options::Format;
use super::output::{BAD, GOOD, print_text, styled};
use super::session::{Misuse, Session, absolute, caller, callers_file};
use super::table::Columns;
use crate::desired::{require_known_gpus, spec_file};
use crate::run::siblings_at_apply;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the spec of the GPUs that containers may be given
    Generate {
        /// Write it here (a path of this machine, also with --root), or to stdout with -
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// List the devices that the spec names
    List,
    /// Check a spec: right by CDI's grammar, true of the machine now, its names in no other spec
    Validate {
        /// The spec; the configured one unless given
        file: Option<PathBuf>,
    },
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Generate { file } => generate(session, file.as_deref()),
        Command::List => list(session),
        Command::Validate { file } => validate(session, file.as_deref()),
    }
}

#[derive(Serialize)]
struct Generated {
    schema_version: u32,
    path: PathBuf,
    changed: bool,
    devices: Vec<String>,
    /// Why there is no spec.
    reason: Option<String>,
}

fn generate(session: &Session, file: Option<&Path>) -> anyhow::Result<Outcome> {
    let config = session.config()?;
    let facts = session.facts()?;
    require_known_gpus(&config, &facts)?;
    let selection = select(&config, &facts)?;
    session.warn_of_left_out(&selection);
    let configured = session.root.shown(&config.cdi.path);
    let left = if session.root.exists(&config.cdi.path) {
        format!("; {} still offers GPUs: remove it", configured.display())
    } else {
        String::new()
    };
    let spec = match wanted(&config, &selection, &facts.inventory) {
        Wanted::Spec(spec) => spec,
        Wanted::NoGpu => bail!(
            "no CDI spec is made: a container can be given none of this machine's GPUs, and rocworker detect says why{left}"
        ),
        Wanted::Off(why) => {
            let (devices, reason) = (Vec::new(), Some(why.to_string()));
            let answer = Generated { schema_version: 1, path: configured, changed: false, devices, reason };
            session.format.print(&answer, || format!("no CDI spec is made: {why}{left}\n"))?;
            return Ok(Outcome::Done);
        }
    };
    let text = cdi::text(&session.templates(), &spec)?;
    let (shown, written) = match file {
        Some(path) if path == Path::new("-") => {
            print_text(&text)?;
            return Ok(Outcome::Done);
        }
        // The caller's own file: no engine reads it, and rocworker does not manage it.
        Some(path) => {
            let (root, path) = (caller()?, callers_file(path)?);
            cdi::may_replace(&root, &path, true).map_err(anyhow::Error::msg)?;
            if cdi::is_read_by_engines(&path) {
                refuse_conflicts(&root, &path, &spec)?;
            }
            let written = root.write(&path, text.as_bytes(), Attributes { mode: cdi::MODE, owner: None })?;
            (path, written)
        }
        None => {
            cdi::may_replace(&session.root, &config.cdi.path, false).map_err(anyhow::Error::msg)?;
            refuse_conflicts(&session.root, &config.cdi.path, &spec).map_err(|refusal| {
                let at_apply = siblings_at_apply(&session.root, &config.cdi.path).conflicts(spec.names());
                match cdi::refusal(&at_apply) {
                    Some(_) => refusal,
                    None => anyhow!("the spec at an earlier cdi.path has these names: run rocworker apply, which replaces it"),
                }
            })?;
            let action = spec_file(&config, text);
            (configured, session.pipeline(&config)?.generate(&action)?)
        }
    };
    let answer = Generated {
        schema_version: 1,
        path: shown,
        changed: written == Written::Changed,
        devices: spec.devices.iter().map(|device| format!("{KIND}={}", device.name)).collect(),
        reason: None,
    };
    session.format.print(&answer, || {
        let what = if answer.changed { "written" } else { "already right, not touched" };
        let gpus = counted(selection.gpus.len(), "GPU");
        format!("{} {what}: {gpus} under {} names\n", answer.path.display(), spec.devices.len())
    })?;
    Ok(Outcome::Done)
}

/// A spec is not written that would end what engines find now.
fn refuse_conflicts(root: &Root, path: &Path, spec: &cdi::Spec) -> anyhow::Result<()> {
    let conflicts = Siblings::read(root, path, |_| false).conflicts(spec.names());
    cdi::refusal(&conflicts).map_or(Ok(()), |refusal| Err(anyhow!("{refusal}")))
}

#[derive(Serialize)]
struct Listed {
    name: String,
    nodes: Vec<String>,
}

fn list(session: &Session) -> anyhow::Result<Outcome> {
    #[derive(Serialize)]
    struct Answer {
        schema_version: u32,
        path: PathBuf,
        devices: Vec<Listed>,
    }
    let config = session.config()?;
    let path = &config.cdi.path;
    let shown = session.root.shown(path);
    let text = match read(&session.root, path) {
        Err(error) if is_missing(&error) => {
            bail!(
                "there is no CDI spec: {} is not there; {}",
                shown.display(),
                what_writes_it(session, &config)?
            )
        }
        read => read?,
    };
    let spec = Spec::parse(&text).with_context(|| format!("{}", shown.display()))?;
    let everywhere = &spec.edits.device_nodes;
    let devices = spec.devices.iter().map(|device| {
        let nodes = device.edits.device_nodes.iter().chain(everywhere);
        let nodes = nodes.map(DeviceNode::host).map(printable).collect();
        Listed { name: printable(&format!("{}={}", spec.kind, device.name)), nodes }
    });
    let answer = Answer { schema_version: 1, path: shown, devices: devices.collect() };
    session.format.print(&answer, || {
        let mut columns = Columns::new(&["DEVICE", "NODES"]).shortened(&[1]);
        for device in &answer.devices {
            let nodes = if session.format == Format::Wide {
                device.nodes.join(" ")
            } else {
                nodes_in_short(&device.nodes)
            };
            columns.row([device.name.clone().into(), nodes.into()]);
        }
        columns.shown(session.format)
    })?;
    Ok(Outcome::Done)
}

/// What has to happen before there is a spec.
fn what_writes_it(session: &Session, config: &Config) -> anyhow::Result<String> {
    let facts = session.facts()?;
    let selection = select(config, &facts)?;
    Ok(match wanted(config, &selection, &facts.inventory) {
        Wanted::Spec(spec) => {
            let siblings = siblings_at_apply(&session.root, &config.cdi.path);
            let refusal = cdi::refusal(&siblings.conflicts(spec.names()));
            refusal.map_or_else(|| "rocworker apply writes it".to_owned(), |refusal| refusal.to_string())
        }
        Wanted::Off(why) => why.to_string(),
        Wanted::NoGpu if facts.inventory.may_lack_gpus() => {
            "which GPUs this machine has is not known, and rocworker detect says why".to_owned()
        }
        Wanted::NoGpu if facts.amd().next().is_none() => "this machine has no AMD GPU".to_owned(),
        Wanted::NoGpu => {
            "a container can be given none of this machine's GPUs, and rocworker detect says why".to_owned()
        }
    })
}

/// As many nodes as fit a line; `-o wide` prints all.
fn nodes_in_short(nodes: &[String]) -> String {
    const MOST: usize = 4;
    match nodes {
        [first, second, .., last] if nodes.len() > MOST => {
            format!("{first} {second} … {last} ({} nodes)", nodes.len())
        }
        nodes => nodes.join(" "),
    }
}

fn validate(session: &Session, file: Option<&Path>) -> anyhow::Result<Outcome> {
    #[derive(Serialize)]
    struct Answer {
        schema_version: u32,
        path: PathBuf,
        valid: bool,
        findings: Vec<String>,
    }
    let config = session.config()?;
    let facts = session.facts()?;
    let selection = select(&config, &facts)?;
    let wanted = wanted(&config, &selection, &facts.inventory);
    let (elsewhere, path) = place(session, file, &config.cdi.path)?;
    let root = elsewhere.as_ref().unwrap_or(&session.root);
    // Where engines look, another spec may have its names.
    let is_read = elsewhere.is_none() && (path == config.cdi.path || cdi::is_read_by_engines(&path));
    let findings = match read(root, &path) {
        Ok(text) => {
            let shared = if is_read { shared(&session.root, &path) } else { Vec::new() };
            [cdi::check(&session.root, &text, &wanted), shared].concat()
        }
        Err(error) if file.is_none() && is_missing(&error) && !matches!(wanted, Wanted::Spec(_)) => {
            Vec::new()
        }
        Err(error) if file.is_some() && is_missing(&error) => {
            return Err(Misuse(format!("{} is not there", root.shown(&path).display())).into());
        }
        Err(error) => vec![format!("{error:#}")],
    };
    let path = root.shown(&path);
    let answer = Answer { schema_version: 1, path, valid: findings.is_empty(), findings };
    session.format.print(&answer, || {
        let path = answer.path.display();
        if answer.valid {
            let state = match wanted {
                Wanted::Spec(_) => "valid, true of this machine, its names in no other spec".to_owned(),
                Wanted::Off(_) | Wanted::NoGpu => "not there, and there is nothing to offer".to_owned(),
            };
            return format!("{} {path}: {state}\n", styled(GOOD, "✓"));
        }
        answer.findings.iter().map(|finding| format!("{} {path}: {finding}\n", styled(BAD, "✗"))).collect()
    })?;
    Ok(if answer.valid { Outcome::Done } else { Outcome::Findings })
}

/// What other specs make of the names of the one at a path.
fn shared(root: &Root, path: &Path) -> Vec<String> {
    let siblings = Siblings::read(root, path, |_| false);
    let conflicts = siblings.conflicts(siblings.present.iter().map(String::as_str));
    let texts = conflicts.iter().filter(|it| it.breaks());
    texts.map(|it| format!("{}: {}", it.text(), it.remedy())).chain(siblings.unknown()).collect()
}

/// Whether the spec does not exist, which is right where there is no GPU to offer.
fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<root::Error>().is_some_and(root::Error::is_not_found)
}

/// The place of a spec: a path beneath the session's Root, or the Root of the caller's machine with a path on it.
fn place(
    session: &Session,
    file: Option<&Path>,
    configured: &Path,
) -> anyhow::Result<(Option<Root>, PathBuf)> {
    let Some(file) = file else { return Ok((None, configured.to_owned())) };
    let path = absolute(file)?;
    let top = absolute(&session.root.shown("/"))?;
    Ok(match path.strip_prefix(&top) {
        Ok(beneath) => (None, Path::new("/").join(beneath)),
        Err(_) => (Some(caller()?), path),
    })
}

fn read(root: &Root, path: &Path) -> anyhow::Result<String> {
    let bytes = root.read_trusted(path, cdi::LIMIT)?;
    String::from_utf8(bytes).with_context(|| format!("{} is not text", root.shown(path).display()))
}
