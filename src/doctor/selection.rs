//! Whether the GPUs that the configuration means are there and usable.

use check::{APPLY, About, Check};
use config::{Devices, selection};
use host::remarks;

use super::machine::{Subject, gpus, name_of};

const NAME: &str = "configuration";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let about = About::one(NAME, "gpu-device-ids");
    let selection = selection::select(subject.config, subject.facts).map_err(|error| {
        about.clone().failed(error.to_string(), "name GPUs that rocworker detect lists, or write all")
    })?;
    let names: Vec<String> = selection.gpus.iter().map(|gpu| name_of(gpu)).collect();
    let given_gpus = match (selection.gpus.len(), selection.listed) {
        (0, _) => none(subject, about),
        (count @ 9.., _) => about.ok(format!("containers may be given {}", gpus(count))),
        (_, false) if subject.config.devices == Devices::All => {
            let given = format!("containers may be given every usable one: {}", names.join(", "));
            match remarks::beside_cards(subject.facts) {
                Some(beside) => about.warning(
                    format!("{given}; {beside}"),
                    format!("write gpu-device-ids: discrete into the configuration, then {APPLY}"),
                ),
                None => about.ok(given),
            }
        }
        (_, _) => about.ok(format!("containers may be given {}", names.join(", "))),
    };
    let left_out = selection.left_out.iter().map(|gpu| {
        About::one(NAME, name_of(gpu)).warning(
            "it is named in gpu-device-ids and left out, for it cannot be used",
            "see the checks above for the reason, or take it out of gpu-device-ids",
        )
    });
    Ok(std::iter::once(given_gpus).chain(left_out).collect())
}

fn none(subject: &Subject<'_>, about: About) -> Check {
    if subject.config.devices == Devices::Discrete && subject.facts.usable().next().is_some() {
        return about.warning(
            "containers can be given no GPU: gpu-device-ids is discrete, and each usable GPU is a processor's own",
            format!("write gpu-device-ids: all into the configuration, then {APPLY}"),
        );
    }
    let evidence = "containers can be given no GPU: none is usable";
    let remedy = "see the checks above for the reasons";
    if subject.config.needs_gpu || subject.has_amd() {
        subject.lacks(about, evidence, remedy)
    } else {
        about.skipped("there is no AMD GPU to choose from")
    }
}
