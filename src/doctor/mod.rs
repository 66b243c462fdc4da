//! `doctor`: from PCI to a container, each check with its evidence and its remedy. Reads only.
//!
//! What `detect` finds wrong with a GPU is here a failed check that says what to do; beside that is what
//! detect does not ask: who may open the nodes, what keeps the driver from loading, what other tools say.

mod blacklist;
mod cdi;
mod driver;
mod driver_dkms;
mod engines;
mod groups;
mod kfd;
mod kfd_log;
mod kubernetes;
mod machine;
mod missing_group;
mod nodes;
mod partitions;
mod passthrough;
mod pci;
mod selection;
pub(crate) mod selinux;
mod toolkit;
pub mod user_namespace;
mod virtualization;
mod wrapper;

use std::path::Path;

use root::Root;
use serde::Serialize;

pub(crate) use check::About;
pub use check::{Check, Status};

use config::{Config, Managed};
use host::facts::Facts;
use host::groups::Groups;
use host::timestamp::Timestamp;
use lxd::on_host;
use machine::Subject;
use packages::smi;
use reconcile::command::Programs;

/// The answer of `doctor --output json`, documented in docs/doctor.md.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    pub schema_version: u32,
    pub checks: Vec<Check>,
    pub failed: usize,
    pub warnings: usize,
}

/// The components in the order in which a GPU passes them on its way into a container.
const COMPONENTS: [(&str, Examine); 15] = [
    ("virtualization", virtualization::check),
    ("pci", pci::check),
    ("driver", driver::check),
    ("blacklist", blacklist::check),
    ("dkms", driver_dkms::check),
    ("kfd", kfd::check),
    ("partitions", partitions::check),
    ("nodes", nodes::check),
    ("groups", groups::check),
    ("user_namespace", user_namespace::check),
    ("selinux", selinux::check),
    ("configuration", selection::check),
    ("cdi", cdi::check),
    ("wrapper", wrapper::check),
    ("kubernetes", kubernetes::check),
];

/// The checks, or the one that says why there is nothing to examine.
type Examine = fn(&Subject<'_>) -> Result<Vec<Check>, Check>;

/// Examines the machine. `programs`: `None` beneath another Root than `/`. `beside`: where the wrapper's program is
/// that an apply would copy. `now`: by the machine's clock.
#[must_use]
pub fn examine(
    root: &Root,
    config: &Config,
    facts: &Facts,
    programs: Option<&Programs>,
    beside: Option<&Path>,
    now: Timestamp,
) -> Diagnosis {
    let checks = if let Managed::Off(why) = config.gpus {
        let names = COMPONENTS.iter().map(|(name, _)| *name).chain([engines::CHECKS, "tools", "toolkit"]);
        names.map(|name| About::all(name).skipped(why.to_string())).collect()
    } else {
        let (groups, likely_name) = (groups(root, facts, programs), on_host::likely_name(root));
        let subject = Subject { root, config, facts, groups, likely_name, programs, beside, now };
        let components =
            COMPONENTS.iter().flat_map(|(_, examine)| examine(&subject).unwrap_or_else(|it| vec![it]));
        let engines = engines::check(&subject).unwrap_or_else(|it| vec![it]);
        let toolkit = toolkit::check(&subject, programs).unwrap_or_else(|check| check);
        components.chain(engines).chain(smi::check(programs, facts, config)).chain([toolkit]).collect()
    };
    Diagnosis::new(checks)
}

fn groups(root: &Root, facts: &Facts, programs: Option<&Programs>) -> Groups {
    let nodes = facts.amd().flat_map(|gpu| gpu.render.iter().chain(&gpu.card));
    let nodes = nodes.chain([&facts.inventory.kfd.node]).filter_map(|node| node.state.as_ref().ok());
    Groups::read(root).asking(programs, &nodes.map(|meta| meta.gid).collect::<Vec<_>>())
}

impl Diagnosis {
    fn new(checks: Vec<Check>) -> Self {
        let count = |status| checks.iter().filter(|check| check.status == status).count();
        Self { schema_version: 1, failed: count(Status::Failed), warnings: count(Status::Warning), checks }
    }

    /// Adds checks behind the present ones.
    pub fn add(&mut self, checks: Vec<Check>) {
        *self = Self::new([std::mem::take(&mut self.checks), checks].concat());
    }
}
