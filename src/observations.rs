//! Everything that a plan stands on, read once: the machine, its engines, and what of rocworker is there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reconcile::{Receipt, Store};
use root::Root;

use crate::cdi::{NotOurs, may_replace};
use crate::component::Component;
use crate::config::{Config, Configure};
use crate::driver::Ground;
use crate::engines::Engines;
use crate::engines::undo_constraints::named_by_dockerd;
use crate::facts::Facts;
use crate::groups::Groups;
use crate::own_program;
use crate::packages::Packages;
use crate::program::Program;
use crate::render::Templates;
use crate::selection::is_off;
use crate::version::{Known, Versions};

/// Facts beyond the GPUs that decide what should be.
#[derive(Debug)]
pub struct Observations {
    pub facts: Facts,
    /// Whether the machine's PCI devices could be looked at: without them nobody knows that there is no GPU.
    pub has_pci: bool,
    pub groups: Groups,
    /// This program's path, for the unit that runs it at each start, or why none can be named.
    pub own_program: Result<PathBuf, String>,
    /// The wrapper's program, or why there is none.
    pub wrapper: Result<Program, String>,
    /// Whether a spec may be written over what stands at the configured place.
    pub cdi_place: Result<(), NotOurs>,
    pub templates: Templates,
    pub engines: Engines,
    /// What decides about the kernel driver, where the configuration asks for one: [`crate::run::Run`] asks apt.
    pub driver: Option<Ground>,
    /// `None`: no package of AMD's is wanted, and none unwanted.
    pub packages: Option<Packages>,
    /// What the engines' programs have told of themselves, for the next run.
    pub versions: BTreeMap<PathBuf, Known>,
}

impl Observations {
    /// Reads the machine beneath `root`. `beside`: where the wrapper's program is of the build that runs.
    /// `running`: where that build itself is.
    /// `receipt`: what is ours, which an engine's file says beside what its owner does.
    /// `versions`: what is known of the engines' programs.
    #[must_use]
    pub fn read(
        root: &Root,
        config: &Config,
        facts: Facts,
        beside: Option<&Path>,
        running: Option<&Path>,
        receipt: &Receipt,
        mut versions: Versions<'_>,
    ) -> Self {
        let mut engines = Engines::read(root, config, &mut versions);
        let store = Store::new(root);
        engines.containerd = engines
            .containerd
            .map(|it| it.without_ours(|path, text| store.without_ours(receipt, path, text)));
        // Asking dockerd takes longer than all else.
        if !keeps_runtimes(config, &facts, receipt) {
            engines.undo_constraints.named.extend(named_by_dockerd(root, config, &engines.docker));
        }
        Self {
            facts,
            has_pci: root.exists("/sys/bus/pci/devices"),
            groups: Groups::read(root),
            own_program: own_program::find(root, running),
            wrapper: Program::find(root, beside).and_then(|program| program.that_runs(&mut versions, beside)),
            cdi_place: may_replace(root, &config.cdi.path, false),
            templates: Templates::read(root),
            engines,
            driver: None,
            packages: config.wants_packages().then(|| Packages::read(root)),
            versions: versions.known().clone(),
        }
    }
}

/// Whether docker goes on with each runtime that the receipt has: else one goes that the dockerd that runs may need.
fn keeps_runtimes(config: &Config, facts: &Facts, receipt: &Receipt) -> bool {
    let has_gpus = !is_off(config) && facts.amd().next().is_some();
    let is_wanted = has_gpus && config.docker.configure != Configure::Never;
    receipt.entries.iter().all(|entry| match entry.component.as_str() {
        it if it == Component::Wrapper.as_ref() => has_gpus,
        it if it != Component::Docker.as_ref() => true,
        _ => is_wanted && entry.uses.iter().all(|it| it.value == config.docker.runtime),
    })
}
