//! What a person should know of a machine before containers use its GPUs, and what is no fault of one GPU.

use crate::facts::Facts;

/// A sentence, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub about: &'static str,
    pub text: String,
}

/// The remarks on a machine, whatever is configured on it.
#[must_use]
pub fn remarks(facts: &Facts) -> Vec<Remark> {
    let beside = beside_cards(facts).map(|text| Remark { about: "gpu", text });
    let windows =
        without_kfd(facts).map(|why| Remark { about: "gpu", text: format!("{why}: not supported") });
    let engines = facts.unserved.iter().map(|it| Remark { about: it.name, text: it.described() });
    windows.into_iter().chain(beside).chain(engines).collect()
}

/// Graphics of a processor that are usable beside a card: each counts as a GPU.
#[must_use]
pub fn beside_cards(facts: &Facts) -> Option<String> {
    if facts.usable().all(|gpu| gpu.is_integrated) {
        return None;
    }
    let integrated = facts.usable().filter(|gpu| gpu.is_integrated);
    let names: Vec<String> = integrated.filter_map(|gpu| Some(gpu.index?.to_string())).collect();
    let (are, it) = match names.len() {
        0 => return None,
        1 => ("is a processor's own graphics (an APU) beside a card, with few compute units", "it"),
        _ => ("are processors' own graphics (APUs) beside a card, with few compute units", "them"),
    };
    Some(format!(
        "GPU {} {are}: AMD_GPU_COUNT takes {it} last, `all` takes {it} too, and gpu-device-ids: discrete leaves {it} out",
        names.join(", ")
    ))
}

/// Windows keeps the card and its driver, and gives a guest /dev/dxg in their place (drivers/hv/dxgkrnl of WSL's kernel).
#[must_use]
pub fn without_kfd(facts: &Facts) -> Option<&'static str> {
    let is_wsl = facts.inventory.virtualization.as_ref().is_some_and(|around| around.name() == "wsl");
    match (facts.amd().next(), facts.has_dxg) {
        (None, true) => {
            Some("Windows gives its GPU here as /dev/dxg, for which there is no amdgpu and no KFD")
        }
        (None, false) if is_wsl => Some("WSL has no amdgpu and no KFD: Windows keeps the card"),
        _ => None,
    }
}
