//! Which of the machine's GPUs the configuration means.

use host::facts::Facts;
use host::pinned_devices::{PinnedDevice, PinnedDevices};
use inventory::{Gpu, PciAddress};

use super::{Config, Devices, Error};

const KEY: &str = "gpu-device-ids";

/// The GPUs that containers of this worker may be given, all of them usable, in the order of their indexes.
#[derive(Debug)]
pub struct Selection<'a> {
    pub gpus: Vec<&'a Gpu>,
    /// Whether the configuration names them, rather than taking what is there.
    pub listed: bool,
    /// GPUs that were named and cannot be used now.
    pub left_out: Vec<&'a Gpu>,
}

impl Selection<'_> {
    /// Why GPUs that were named are left out, a sentence each.
    pub fn why_left_out(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().flat_map(|gpu| {
            let name = gpu.index.map_or_else(String::new, |index| index.to_string());
            let why = move |problem| format!("GPU {name} is configured and left out: {problem}");
            gpu.problems.iter().map(why)
        })
    }
}

/// Applies the configuration to the machine.
///
/// # Errors
/// When the configuration names a GPU that is not there, or not AMD's. Another card is never taken in its place.
pub fn select<'a>(config: &Config, facts: &'a Facts) -> Result<Selection<'a>, Error> {
    if !config.gpus.is_on() {
        return Ok(Selection { gpus: Vec::new(), listed: false, left_out: Vec::new() });
    }
    let words = match &config.devices {
        Devices::Listed(words) => words,
        which => {
            let is_wanted = |gpu: &&Gpu| *which == Devices::All || !gpu.is_integrated;
            let gpus = facts.usable().filter(is_wanted).collect();
            return Ok(Selection { gpus, listed: false, left_out: Vec::new() });
        }
    };
    let mut named = vec![false; facts.amd().count()];
    for word in words {
        let mut found = false;
        let pinned = facts.pinned.get(word);
        let is_meant = |gpu: &Gpu| pinned.map_or_else(|| is_named(gpu, word), |pinned| pinned.is(gpu));
        for (_, named) in facts.amd().zip(&mut named).filter(|(gpu, _)| is_meant(gpu)) {
            *named = true;
            found = true;
        }
        if !found {
            let why = pinned.map_or_else(|| why_not(word, facts), |pinned| pinned.gone(word));
            return Err(config.wrong(KEY, word, why));
        }
    }
    let named = facts.amd().zip(named).filter_map(|(gpu, named)| named.then_some(gpu));
    let (gpus, left_out) = named.partition(|gpu| gpu.usable());
    Ok(Selection { gpus, listed: true, left_out })
}

/// Pins the words of the configuration that could mean another GPU tomorrow, indexes and render names: to the GPU that
/// an earlier apply pinned, or to the one that they mean now.
///
/// # Errors
/// When the configuration names a GPU that is not there, or not AMD's.
pub fn pin(config: &Config, facts: &Facts) -> Result<PinnedDevices, Error> {
    select(config, facts)?;
    let Devices::Listed(words) = &config.devices else { return Ok(PinnedDevices::default()) };
    let mut pinned = PinnedDevices::default();
    // Each boot numbers GPUs and render nodes anew.
    let is_fleeting = |word: &&String| word.parse::<u32>().is_ok() || word.contains("renderD");
    for word in words.iter().filter(is_fleeting) {
        let choice = match facts.pinned.get(word).cloned() {
            Some(choice) => match facts.amd().find(|gpu| choice.is(gpu)) {
                Some(gpu) => Some(choice.completed(gpu)),
                None => Some(choice),
            },
            None => facts.amd().find(|gpu| is_named(gpu, word)).and_then(PinnedDevice::of),
        };
        pinned.extend(choice.map(|choice| (word.clone(), choice)));
    }
    Ok(pinned)
}

/// Whether `word` names the GPU: by index, PCI address, uuid (the GPU's own, or its card's) or render name.
fn is_named(gpu: &Gpu, word: &str) -> bool {
    let render = gpu.render.as_ref().and_then(|node| node.path.to_str());
    let uuid_is = |uuid: String| uuid.eq_ignore_ascii_case(word);
    gpu.index.is_some_and(|index| index.to_string() == word)
        || word.parse::<PciAddress>().is_ok_and(|address| gpu.pci == Some(address))
        || gpu.uuid.as_ref().is_ok_and(|uuid| uuid_is(uuid.to_string()))
        || gpu.card_uuid.is_some_and(|uuid| uuid_is(uuid.to_string()))
        || render.is_some_and(|path| path == word || path.strip_prefix("/dev/dri/") == Some(word))
}

fn why_not(word: &str, facts: &Facts) -> String {
    let address = word.parse::<PciAddress>().ok();
    let other = facts.inventory.gpus.iter().find(|gpu| address.is_some() && gpu.pci == address);
    if let Some(gpu) = other {
        return format!(
            "{KEY} names {word}, which is no AMD GPU but {}: it is left alone",
            gpu.vendor.name()
        );
    }
    let there: Vec<String> = facts
        .amd()
        .map(|gpu| match (gpu.index, gpu.pci) {
            (Some(index), Some(address)) => format!("{index} ({address})"),
            (index, _) => index.map_or_else(String::new, |index| index.to_string()),
        })
        .collect();
    match there.as_slice() {
        [] => format!("{KEY} names {word:?}, and this machine has no AMD GPU"),
        there if there.len() > 8 => {
            format!(
                "{KEY} names {word:?}, which is none of this machine's {} AMD GPUs: see rocworker detect",
                there.len()
            )
        }
        there => format!("{KEY} names {word:?}, and this machine's AMD GPUs are {}", there.join(", ")),
    }
}
