//! amdgpu is unloaded and loaded, and drives its cards again.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use inventory::PciAddress;

use super::Look;
use super::context::Context;
use super::progress::CardGoal;

/// How long modprobe may take: the driver looks at each card for some seconds.
const MODPROBE: Duration = Duration::from_secs(300);

/// How long cards may take to be there again after that.
const COMING: Duration = Duration::from_secs(60);

/// Between two looks at the cards.
const PAUSE: Duration = Duration::from_millis(250);

/// The cards whose modes amdgpu does not have. A card that is asleep, or whose mode cannot be read, is driven.
pub(super) fn undriven(look: &Look, cards: &[CardGoal]) -> Vec<PciAddress> {
    let has_modes = |pci: PciAddress| {
        let card = look.cards.iter().find(|card| card.pci == pci);
        card.is_some_and(|card| card.compute.as_ref().map_or_else(|why| !why.is_absent(), |_| true))
    };
    cards.iter().map(|card| card.aim.pci).filter(|pci| !has_modes(*pci)).collect()
}

/// Loads the driver if it does not drive each card.
pub(super) fn see_driven(context: &mut Context<'_>, cards: &[CardGoal]) -> anyhow::Result<()> {
    if undriven(&Look::at(context.run.root), cards).is_empty() { Ok(()) } else { load(context, cards) }
}

pub(super) fn reload(context: &mut Context<'_>, cards: &[CardGoal]) -> anyhow::Result<()> {
    let programs = context.programs("the driver is loaded")?;
    programs.run(&["modprobe", "--remove", "amdgpu"], MODPROBE).context(
        "the driver cannot be unloaded: a program has a GPU's node open, or a module needs it (lsmod)",
    )?;
    context.done("amdgpu was unloaded".to_owned());
    load(context, cards)
}

/// Loads the driver, and waits until it drives each card.
fn load(context: &mut Context<'_>, cards: &[CardGoal]) -> anyhow::Result<()> {
    let programs = context.programs("the driver is loaded")?;
    programs.run(&["modprobe", "amdgpu"], MODPROBE).context(
        "the driver is unloaded and cannot be loaded: journalctl -k says why; no card works until it is",
    )?;
    let until = Instant::now() + COMING;
    loop {
        let look = Look::at(context.run.root);
        let missing: Vec<String> = undriven(&look, cards).iter().map(ToString::to_string).collect();
        if missing.is_empty() {
            context.done("amdgpu was loaded".to_owned());
            return Ok(());
        }
        if Instant::now() >= until {
            bail!(
                "the driver is loaded, and after {} s it does not drive {}: journalctl -k says why; remove \
                 /var/lib/rocworker/partition.json if the card is gone for good",
                COMING.as_secs(),
                missing.join(", ")
            );
        }
        std::thread::sleep(PAUSE);
    }
}
