//! Everything that a plan is based on, read once: the machine, its engines, and what of rocworker is there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cdi::Siblings;
use engines::program::Program;
use engines::{Engines, WrapperAsDefault};
use host::facts::Facts;
use host::groups::Groups;
use host::version::Known;
use packages::Packages;
use packages::driver::Ground;
use render::Templates;

use crate::exporter_unit::ExporterUnit;

/// What a [`crate::run::Run`] reads of the machine before it plans.
#[derive(Debug)]
pub struct Observations {
    pub facts: Facts,
    /// Whether the machine shows its PCI devices: without them it may have a GPU all the same.
    pub has_pci: bool,
    pub groups: Groups,
    /// This program's path, for the unit that runs it at each start, or why none can be named.
    pub own_program: Result<PathBuf, String>,
    pub exporter: ExporterUnit,
    /// The wrapper's program, or why there is none.
    pub wrapper: Result<Program, String>,
    /// The specs beside the configured place, or why no spec may replace what is there.
    pub cdi_place: Result<Siblings, String>,
    pub templates: Templates,
    pub engines: Engines,
    /// The engines whose default runtime `is` or `may be` the wrapper, and where each says so; or why that is unknown.
    pub wrapper_as_default: Result<Vec<WrapperAsDefault>, String>,
    /// What decides about the kernel driver, where the configuration asks for one.
    pub driver: Option<Ground>,
    /// `None`: no package of AMD's is wanted, and none unwanted.
    pub packages: Option<Packages>,
    /// The versions that the engines' programs reported, for the next run.
    pub versions: BTreeMap<PathBuf, Known>,
}
