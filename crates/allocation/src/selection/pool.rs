//! The GPUs that can be given, and the choice among them.

use inventory::PciAddress;

use super::pack::{Candidate, least_used};
use crate::{
    Error, Quoted, Render,
    error::refuse,
    gpu::Gpu,
    request::{Request, Selector},
    withheld::Withheld,
};

const NO_GPUS: &str = "the policy has no GPU to give; see rocworker detect";
/// The most quarantined GPUs that one sentence names.
const MOST_NAMED: usize = 3;

/// The GPUs that a policy gives away.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The policy's GPUs in the order of their indexes.
    gpus: Vec<Gpu>,
    /// GPUs that quarantine keeps from containers now, each with the beginning of a sentence on why.
    quarantined: Vec<(Render, String)>,
}

impl Pool {
    #[must_use]
    pub fn new(gpus: Vec<Gpu>) -> Self {
        Self { gpus, quarantined: Vec::new() }
    }

    /// Keeps the GPUs of quarantined cards from later selections, except those in `except`: their container
    /// already has them.
    pub fn quarantine(&mut self, withheld: &Withheld, except: &[Render]) {
        let others = self.gpus.iter().filter(|gpu| !except.contains(&gpu.render));
        let quarantined = others.filter_map(|gpu| {
            let why = gpu.withheld(withheld)?.quarantine.as_ref()?;
            Some((gpu.render, format!("the GPU {gpu} {why}")))
        });
        self.quarantined = quarantined.collect();
    }

    /// A sentence for each GPU that is quarantined.
    pub fn quarantined(&self) -> impl Iterator<Item = Error> {
        self.quarantined.iter().map(|(_, why)| quarantined(why))
    }

    /// An addition to the sentence about a count that cannot be met; empty where no GPU is quarantined.
    #[must_use]
    pub fn quarantine_note(&self) -> String {
        match self.quarantined.len() {
            0 => String::new(),
            number => format!("; quarantine withholds {number}: {}", self.reasons()),
        }
    }

    fn reasons(&self) -> String {
        let named = self.quarantined.iter().take(MOST_NAMED).map(|(_, why)| why.as_str());
        let mut reasons = named.collect::<Vec<_>>().join("; ");
        if let more @ 1.. = self.quarantined.len().saturating_sub(MOST_NAMED) {
            reasons += &format!("; and {more} more");
        }
        quarantined(&reasons).into()
    }

    /// The GPUs that the policy lists, in the order of their indexes, whether they are quarantined or not.
    #[must_use]
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// The GPUs that this request gets, in the order of their indexes, each once. `uses` says how many
    /// containers have a GPU now; only a count looks at it.
    ///
    /// # Errors
    /// The request cannot be met in full.
    pub fn select(&self, request: &Request, uses: impl Fn(&Gpu) -> usize) -> Result<Vec<&Gpu>, Error> {
        match request {
            Request::Nothing => Ok(Vec::new()),
            Request::All if self.gpus.is_empty() => refuse(NO_GPUS),
            Request::All => match self.available() {
                none if none.is_empty() => refuse(format!(
                    "the container asks for all GPUs, and each is quarantined: {}",
                    self.reasons()
                )),
                available => Ok(available),
            },
            Request::Listed(selectors) => {
                let mut wanted = vec![false; self.gpus.len()];
                for selector in selectors {
                    self.mark(selector, &mut wanted)?;
                }
                let wanted = self.gpus.iter().zip(wanted).filter_map(|(gpu, wanted)| wanted.then_some(gpu));
                wanted.map(|gpu| self.why_not(gpu).map_or(Ok(gpu), |why| Err(quarantined(why)))).collect()
            }
            Request::Count(count) => {
                let available = self.available();
                let asked = usize::try_from(*count).unwrap_or(usize::MAX);
                if asked > available.len() {
                    return refuse(format!(
                        "the container asks for {asked} GPUs, and the policy has {}{}",
                        available.len(),
                        self.quarantine_note()
                    ));
                }
                Ok(packed(&available, asked, |gpu| Candidate::new(gpu, uses(gpu), false)))
            }
        }
    }

    /// The default's GPUs: each that is not quarantined, and for each other one a sentence for a warning.
    #[must_use]
    pub fn by_default(&self) -> (Vec<&Gpu>, Vec<Error>) {
        let mut left_out: Vec<Error> = self.quarantined().collect();
        if self.gpus.is_empty() {
            left_out.push(Error::new(NO_GPUS));
        }
        (self.available(), left_out)
    }

    /// Marks what a selector names.
    fn mark(&self, selector: &Selector, wanted: &mut [bool]) -> Result<(), Error> {
        let mut found = false;
        for (gpu, wanted) in self.gpus.iter().zip(wanted) {
            if names(selector, gpu) {
                *wanted = true;
                found = true;
            }
        }
        if found {
            return Ok(());
        }
        let name = selector.to_string();
        refuse(format!("the policy has no GPU {}; rocworker detect lists this machine's", Quoted(&name)))
    }

    /// The GPUs that are not quarantined.
    #[must_use]
    pub fn available(&self) -> Vec<&Gpu> {
        self.gpus.iter().filter(|gpu| self.why_not(gpu).is_none()).collect()
    }

    /// Why a GPU is quarantined, if it is.
    fn why_not(&self, gpu: &Gpu) -> Option<&str> {
        self.quarantined.iter().find(|(render, _)| *render == gpu.render).map(|(_, why)| why.as_str())
    }

    /// `count` of the GPUs that are free, an APU's last: from the fullest card that has room for them,
    /// so that whole cards stay whole; else from cards that are close to each other. None: fewer are free.
    #[must_use]
    pub fn pick_free(&self, count: u32, is_free: impl Fn(&Gpu) -> bool) -> Option<Vec<&Gpu>> {
        self.pick_with(count.try_into().ok()?, is_free, |_| false, |_| 0)
    }

    /// `count` of the GPUs that are free, with each that `must` be among them, unless these are more. The others come
    /// as [`Self::pick_free`] chooses among the least used, close to the first.
    #[must_use]
    pub fn pick_with(
        &self,
        count: usize,
        is_free: impl Fn(&Gpu) -> bool,
        must: impl Fn(&Gpu) -> bool,
        uses: impl Fn(&Gpu) -> usize,
    ) -> Option<Vec<&Gpu>> {
        let (free, taken): (Vec<_>, Vec<_>) = self.available().into_iter().partition(|gpu| is_free(gpu));
        let begun = |gpu: &Gpu| gpu.card.is_some() && taken.iter().any(|taken| taken.card == gpu.card);
        if count > free.len() {
            return None;
        }
        Some(packed(&free, count, |gpu| {
            let candidate = Candidate::new(gpu, uses(gpu), begun(gpu));
            if must(gpu) { candidate.first() } else { candidate }
        }))
    }
}

fn quarantined(why: &str) -> Error {
    Error::new(format!("{why}; see rocworker health"))
}

/// `count` of these GPUs, picked by [`least_used`].
fn packed<'p>(of: &[&'p Gpu], count: usize, candidate: impl Fn(&'p Gpu) -> Candidate<'p>) -> Vec<&'p Gpu> {
    let candidates: Vec<Candidate<'_>> = of.iter().map(|gpu| candidate(gpu)).collect();
    least_used(&candidates, count).into_iter().filter_map(|at| of.get(at).copied()).collect()
}

fn names(selector: &Selector, gpu: &Gpu) -> bool {
    match selector {
        Selector::Index(index) => gpu.index == *index,
        Selector::Render(render) => gpu.render == *render,
        Selector::Uuid(uuid) => gpu.names.iter().any(|name| name.eq_ignore_ascii_case(uuid)),
        Selector::Pci(address) => gpu.names.iter().any(|name| PciAddress::parse(name) == Some(*address)),
    }
}

#[cfg(test)]
mod tests;
