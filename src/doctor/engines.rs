//! Whether each engine that is configured here is in effect configured as it was meant: what it says of itself, not
//! what a managed file says.

use reconcile::Store;
use reconcile::command::Programs;
use root::Root;

use crate::check::{About, Check};
use crate::config::Config;
use crate::engines::{self, CHECKS, Engine, Examined};
use crate::facts::Facts;
use crate::memory::Memory;
use crate::program::{self, Program};
use crate::render::Templates;
use crate::version::Versions;

/// `programs`: `None` beneath another Root than `/`, where no engine is asked.
pub(super) fn check(
    root: &Root,
    config: &Config,
    facts: &Facts,
    programs: Option<&Programs>,
) -> Result<Vec<Check>, Check> {
    let about = About::all(CHECKS);
    if facts.amd().next().is_none() {
        return Err(about.skipped("there is no AMD GPU for engines to offer"));
    }
    let receipt = Store::new(root).receipt();
    let receipt = receipt.map_err(|error| about.failed(error.to_string(), "put that right first"))?;
    let known = Memory::read(root).map(|memory| memory.versions).unwrap_or_default();
    let mut versions = Versions::new(root, programs, known);
    let wrapper = Program::find(root, None)
        .and_then(|program| program::runs(&mut versions, &program.path).map(|()| program.path));
    let examined =
        Examined { root, config, facts, programs, wrapper, templates: Templates::read(root), receipt };
    let of_engine = |engine: &Engine| match engine.left_alone(config) {
        Some(why) => vec![About::one(CHECKS, engine.name).skipped(why)],
        None => (engine.doctor)(&examined, &mut versions).unwrap_or_else(|check| vec![check]),
    };
    Ok(engines::ALL.iter().flat_map(of_engine).collect())
}
