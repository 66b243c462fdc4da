//! What is asked: which GPU a container is to get and how, and which device it must not reach.

use std::path::PathBuf;

use allocation::policy::{Ask, Setting, Sharing};
use allocation::request::{Request, VISIBLE_DEVICES};
use cdi::KIND;
use check::Check;
use config::selection::select;
use config::{Config, Managed, NamedBy};
use host::facts::Facts;
use inventory::Gpu;

use super::sandbox::{ANSWER, PROGRAM};
use super::{CanaryContext, display};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The GPU's name: CDI's behind `amd.com/gpu=`, and one that the wrapper takes.
    pub(crate) name: String,
    pub(crate) kfd: PathBuf,
    pub(crate) render: PathBuf,
    /// The render node's number on this machine.
    pub(crate) number: (u64, u64),
    /// The number of a device that the container is not given.
    pub(crate) stranger: (u64, u64),
    /// What has the number `stranger`, as words behind that number.
    pub(crate) stranger_of: String,
    /// Options by which the engine's command line asks for the GPU.
    pub(crate) flags: Vec<String>,
    /// How the command line asks for the GPU, in words.
    pub(crate) way: String,
}

/// DRM's render nodes have the minors 128 to 191 (include/drm/drm_file.h, `DRM_MINOR_RENDER`).
const RENDER_MINORS: std::ops::RangeInclusive<u64> = 128..=191;

impl Question {
    /// Asks for the first GPU that the configuration offers and no container leases, by its name in the CDI spec, which
    /// the engine reads itself. `leased`: names of render nodes.
    pub(crate) fn of(config: &Config, facts: &Facts, leased: &[String]) -> Result<Self, String> {
        if let Managed::Off(why) = config.gpus {
            return Err(why.to_string());
        }
        let selection = select(config, facts).map_err(|error| error.to_string())?;
        let is_leased = |gpu: &Gpu| {
            let render = gpu.render.as_ref().and_then(|node| node.path.file_name()?.to_str());
            render.is_some_and(|render| leased.iter().any(|leased| leased == render))
        };
        let none = "there is no usable GPU to give to a container: see the checks above";
        let gpu =
            selection.gpus.iter().find(|gpu| !is_leased(gpu)).ok_or(match selection.gpus.as_slice() {
                [] => none,
                _ => "every GPU is leased to a container (rocworker lease list): try again when one is free",
            })?;
        let name = name(config, gpu, &selection.gpus)
            .ok_or("no name of the CDI spec names one GPU alone (cdi.names): no container can ask for one")?;
        let render = gpu.render.as_ref().ok_or(none)?;
        let number = render.number().ok_or(none)?;
        let (stranger, stranger_of) = stranger(facts, &[number])?;
        let device = format!("{KIND}={name}");
        Ok(Self {
            name,
            kfd: facts.inventory.kfd.node.path.clone(),
            render: render.path.clone(),
            number,
            stranger,
            stranger_of,
            way: format!("asked for by the CDI name {device}"),
            flags: vec!["--device".to_owned(), device],
        })
    }

    /// Asks through the wrapper, in the way that this machine's policy allows: by the container's environment, else by
    /// what the policy gives every container, else by CDI, where the engine knows it: `cdi` says why not.
    pub(crate) fn through_wrapper(
        context: &CanaryContext<'_>,
        cdi: impl FnOnce() -> Result<(), Check>,
    ) -> Result<Self, Check> {
        let policy = context.policy().map_err(|why| context.failed(why, "rocworker apply"))?;
        let leased =
            (context.leased)(context.root).map_err(|why| context.failed(why, "rocworker lease list"))?;
        let is_exclusive = policy.as_ref().is_some_and(|policy| policy.sharing == Sharing::Exclusive);
        let leased = if is_exclusive { leased } else { Vec::new() };
        let question = Self::of(context.config, context.facts, &leased);
        let question = question.map_err(|why| context.skipped(why))?;
        let variable = format!("{VISIBLE_DEVICES}={}", question.name);
        let request = Request::from_env([variable.as_str()]).ok().flatten();
        let ask = policy.as_ref().zip(request.as_ref());
        let ask = ask.and_then(|(policy, request)| policy.ask(Some(request), Setting::default()).ok());
        if let Some(Ask::Explicit(_)) = ask {
            let way = format!("asked for by {variable}");
            return Ok(Self { flags: vec!["--env".to_owned(), variable], way, ..question });
        }
        let default = policy.as_ref().and_then(|policy| policy.ask(None, Setting::default()).ok());
        if default == Some(Ask::Default) {
            // The container gets every GPU that the configuration offers.
            let selection = select(context.config, context.facts);
            let gpus = selection.map_or_else(|_| Vec::new(), |selection| selection.gpus);
            let given: Vec<_> = gpus.into_iter().filter_map(number).collect();
            let (stranger, stranger_of) =
                stranger(context.facts, &given).map_err(|why| context.skipped(why))?;
            let way = "given by the policy's default".to_owned();
            return Ok(Self { flags: Vec::new(), way, stranger, stranger_of, ..question });
        }
        cdi()?;
        let way = question.way.clone() + ", since the policy lets no container ask";
        Ok(Self { way, ..question })
    }

    /// What the container runs: the probe.
    pub(crate) fn command(&self) -> Vec<String> {
        let (major, minor) = self.stranger;
        let (kfd, render) = (display(&self.kfd), display(&self.render));
        let stranger = format!("{major}:{minor}");
        let asked = ["--kfd", &kfd, "--render", &render, "--stranger", &stranger, "--into", ANSWER];
        [PROGRAM, "probe"].into_iter().chain(asked).map(str::to_owned).collect()
    }
}

fn number(gpu: &Gpu) -> Option<(u64, u64)> {
    gpu.render.as_ref()?.number()
}

/// A name of the CDI spec for this GPU and no other.
fn name(config: &Config, gpu: &Gpu, all: &[&Gpu]) -> Option<String> {
    let has = |by| config.cdi.names.contains(&by);
    let index = gpu.index.filter(|_| has(NamedBy::Index)).map(|index| index.to_string());
    let uuid = gpu.uuid.as_ref().ok().filter(|_| has(NamedBy::Uuid)).map(ToString::to_string);
    let is_alone = all.iter().filter(|other| other.pci == gpu.pci).count() == 1;
    let pci = gpu.pci.filter(|_| has(NamedBy::Pci) && is_alone).map(|address| address.to_string());
    index.or(uuid).or(pci)
}

/// Another GPU's render node, of whatever vendor; else a number of a render node that no GPU has. Its refusal says as
/// much: a device cgroup goes by numbers.
fn stranger(facts: &Facts, given: &[(u64, u64)]) -> Result<((u64, u64), String), String> {
    let others = facts.inventory.gpus.iter().filter_map(|gpu| Some((gpu, number(gpu)?)));
    let mut others = others.filter(|(_, number)| !given.contains(number));
    if let Some((gpu, number)) = others.next() {
        let whose = match (gpu.index, gpu.pci) {
            (Some(index), _) => format!("GPU {index}'s"),
            (None, Some(address)) => format!("the {} card's at {address}", gpu.vendor.name()),
            (None, None) => "another GPU's".to_owned(),
        };
        return Ok((number, whose));
    }
    let major = given.first().map(|(major, _)| *major);
    let free = RENDER_MINORS.rev().find(|minor| !given.iter().any(|(_, given)| given == minor));
    let number = major.zip(free).ok_or("every number of a render node is given to the container")?;
    Ok((number, "which no GPU of this machine has".to_owned()))
}
