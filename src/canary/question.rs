//! What is asked: which GPU a container is to get, and which device it must not reach.

use std::path::PathBuf;

use amdgpu::Gpu;

use crate::cdi::KIND;
use crate::config::{Config, NamedBy};
use crate::facts::Facts;
use crate::selection::{is_off, select};

/// What a container is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Granted {
    /// The GPU that it asks for.
    One,
    /// Every GPU that the configuration offers.
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The GPU's name: CDI's behind `amd.com/gpu=`, and one that the wrapper takes.
    pub(crate) name: String,
    pub(crate) kfd: PathBuf,
    pub(crate) render: PathBuf,
    /// The render node's number on this machine.
    pub(crate) number: (u64, u64),
    pub(crate) stranger: Stranger,
}

/// A device that the container was not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stranger {
    pub(crate) number: (u64, u64),
    /// Whose it is, to be read behind its number.
    pub(crate) whose: String,
}

/// DRM's render nodes have the minors 128 to 191 (include/drm/drm_file.h, `DRM_MINOR_RENDER`).
const RENDER_MINORS: std::ops::RangeInclusive<u64> = 128..=191;

impl Question {
    /// About the first GPU that the configuration offers and nobody has by a lease. `leased`: names of render nodes.
    pub(crate) fn of(
        config: &Config,
        facts: &Facts,
        granted: Granted,
        leased: &[String],
    ) -> Result<Self, String> {
        if is_off(config) {
            return Err("the configuration leaves AMD's GPUs alone (compute-runtime)".to_owned());
        }
        let selection = select(config, facts).map_err(|error| error.to_string())?;
        let is_leased = |gpu: &Gpu| {
            let render = gpu.render.as_ref().and_then(|node| node.path.file_name()?.to_str());
            render.is_some_and(|render| leased.iter().any(|leased| leased == render))
        };
        let none = "there is no usable GPU to give to a container: see the checks above";
        let asked = selection.gpus.iter().copied().filter(|gpu| !is_leased(gpu));
        let gpu = asked.into_iter().next().ok_or(match selection.gpus.as_slice() {
            [] => none,
            _ => "every GPU is leased to a container (rocworker lease list): try again when one is free",
        })?;
        let name = name(config, gpu, &selection.gpus).ok_or(
            "no name of the CDI spec stands for one GPU alone (cdi.names): no container can ask for one",
        )?;
        let render = gpu.render.as_ref().ok_or(none)?;
        let given: Vec<(u64, u64)> = match granted {
            Granted::One => [gpu].into_iter().filter_map(number).collect(),
            Granted::All => selection.gpus.iter().copied().filter_map(number).collect(),
        };
        Ok(Self {
            name,
            kfd: facts.machine.kfd.node.path.clone(),
            render: render.path.clone(),
            number: render.number().ok_or(none)?,
            stranger: Stranger::of(facts, &given)?,
        })
    }

    /// The GPU as CDI names it.
    pub(crate) fn device(&self) -> String {
        format!("{KIND}={}", self.name)
    }

    /// The probe's command line, behind the program.
    pub(crate) fn arguments(&self, into: &str) -> Vec<String> {
        let (major, minor) = self.stranger.number;
        let path = |path: &PathBuf| path.display().to_string();
        let mut arguments = vec!["probe".to_owned()];
        for (flag, value) in [
            ("--kfd", path(&self.kfd)),
            ("--render", path(&self.render)),
            ("--stranger", format!("{major}:{minor}")),
            ("--into", into.to_owned()),
        ] {
            arguments.extend([flag.to_owned(), value]);
        }
        arguments
    }
}

fn number(gpu: &Gpu) -> Option<(u64, u64)> {
    gpu.render.as_ref()?.number()
}

/// A name of the CDI spec that stands for this GPU and no other.
fn name(config: &Config, gpu: &Gpu, all: &[&Gpu]) -> Option<String> {
    let has = |by| config.cdi.names.contains(&by);
    let index = gpu.index.filter(|_| has(NamedBy::Index)).map(|index| index.to_string());
    let uuid = gpu.uuid.as_ref().ok().filter(|_| has(NamedBy::Uuid)).map(ToString::to_string);
    let is_alone = all.iter().filter(|other| other.pci == gpu.pci).count() == 1;
    let pci = gpu.pci.filter(|_| has(NamedBy::Pci) && is_alone).map(|address| address.to_string());
    index.or(uuid).or(pci)
}

impl Stranger {
    /// Another GPU's render node, of whatever vendor; else a number of a render node that no GPU has. Its refusal
    /// says as much: a device cgroup goes by numbers.
    fn of(facts: &Facts, given: &[(u64, u64)]) -> Result<Self, String> {
        let others = facts.machine.gpus.iter().filter_map(|gpu| Some((gpu, number(gpu)?)));
        let mut others = others.filter(|(_, number)| !given.contains(number));
        if let Some((gpu, number)) = others.next() {
            let whose = match (gpu.index, gpu.pci) {
                (Some(index), _) => format!("GPU {index}'s"),
                (None, Some(address)) => format!("the {} card's at {address}", gpu.vendor.name()),
                (None, None) => "another GPU's".to_owned(),
            };
            return Ok(Self { number, whose });
        }
        let major = given.first().map(|(major, _)| *major);
        let free = RENDER_MINORS.rev().find(|minor| !given.iter().any(|(_, given)| given == minor));
        let number = major.zip(free).ok_or("every number of a render node is given to the container")?;
        Ok(Self { number, whose: "which no GPU of this machine has".to_owned() })
    }
}
