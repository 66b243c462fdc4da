//! Whether each engine that is configured here is in effect configured as it was meant: what it says of itself, not
//! what a managed file says.

use check::{About, Check};
pub(super) use engines::{self, CHECKS, Engine, Examined};
use reconcile::Store;
use render::Templates;

use super::machine::Subject;
use super::wrapper;

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let Subject { root, config, facts, programs, now, .. } = *subject;
    let about = About::all(CHECKS);
    subject.needs_amd(about.clone(), "there is no AMD GPU for engines to offer")?;
    subject.needs_kfd(about.clone())?;
    let receipt = Store::new(root).receipt();
    let receipt = receipt.map_err(|error| about.failed(error.to_string(), "put that right first"))?;
    let mut versions = wrapper::versions(subject);
    let wrapper = wrapper::find(subject, &mut versions).map(|program| program.path);
    let templates = Templates::read(root);
    let examined = Examined { root, config, facts, programs, wrapper, templates, receipt, now };
    let of_engine = |engine: &Engine| match (engine.off)(config) {
        Some(why) => vec![About::one(CHECKS, engine.name).skipped(why.to_string())],
        None => (engine.doctor)(&examined, &mut versions).unwrap_or_else(|check| vec![check]),
    };
    let unserved = facts.unserved.iter().map(|it| About::one(CHECKS, it.name).skipped(it.described()));
    Ok(engines::ALL.iter().flat_map(of_engine).chain(unserved).collect())
}
