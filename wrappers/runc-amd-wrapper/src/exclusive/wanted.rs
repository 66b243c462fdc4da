//! What a request wants of the GPUs that are there.

use allocation::Render;
use allocation::request::{Request, Selector};
use allocation::selection::Chosen;

use super::Exclusive;

/// What is wanted of what is there.
pub(super) enum Wanted<'a> {
    Named(Vec<Chosen<'a>>),
    Count(u32),
}

impl<'a> Exclusive<'a> {
    /// A bundle that an earlier create has edited gets the same GPUs again, or none.
    ///
    /// # Errors
    /// The sentence that says why this is not to be had, whoever has what.
    pub(super) fn wanted(&self) -> Result<Wanted<'a>, String> {
        let would_do = self.inventory.select(self.request, |_| 0).map_err(|refusal| refusal.to_string())?;
        let has = |gpus: &[Chosen<'_>], render: Render| gpus.iter().any(|chosen| chosen.gpu.render == render);
        let again = |render: Render, what: &str| {
            format!(
                "its config.json has the device node {} already, of an earlier try or of another tool, {what}: make \
                 the bundle anew",
                render.path()
            )
        };
        let Request::Count(count) = self.request else {
            return match self.in_bundle.iter().find(|render| !has(&would_do, **render)) {
                Some(render) => Err(again(*render, "and the container does not ask for it")),
                None => Ok(Wanted::Named(would_do)),
            };
        };
        let Some(first) = self.in_bundle.first() else { return Ok(Wanted::Count(*count)) };
        let listed = Request::Listed(self.in_bundle.iter().copied().map(Selector::Render).collect());
        let same = self.inventory.select(&listed, |_| 0).map_err(|refusal| refusal.to_string())?;
        if u32::try_from(same.len()) == Ok(*count) {
            return Ok(Wanted::Named(same));
        }
        Err(again(*first, &format!("so that {count} more or fewer would not be what it asks for")))
    }
}
