//! The GPUs on the bus.

use check::{About, Check};
use host::remarks;
use inventory::names;
use inventory::{Gpu, Vendor};

use super::machine::Subject;

const NAME: &str = "pci";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let mut checks: Vec<Check> = subject
        .cards()
        .map(|(address, gpu)| About::one(NAME, address.to_string()).ok(described(gpu)))
        .collect();
    let inventory = &subject.facts.inventory;
    // A GPU that cannot be seen is not one that is missing.
    let are_all_known = !inventory.may_lack_gpus();
    if are_all_known && checks.is_empty() {
        checks.push(no_amd(subject));
    } else if are_all_known && !subject.has_amd() {
        let remedy = "add a card of GCN 3 or newer, or set compute-runtime: none";
        checks.push(subject.lacks(About::all(NAME), "no AMD card of this machine can compute", remedy));
    }
    let others = inventory.gpus.iter().filter(|gpu| gpu.vendor != Vendor::Amd);
    checks.extend(others.filter_map(|gpu| {
        let about = About::one(NAME, gpu.pci?.to_string());
        Some(about.skipped(format!("{}: not AMD's, listed and never touched", described(gpu))))
    }));
    // What detect says of the machine as a whole: functions and KFD nodes that cannot be made out.
    let unanswered: Vec<String> = inventory.unanswered().map(ToString::to_string).collect();
    checks.extend(inventory.problems().into_iter().map(|problem| {
        let remedy = "read dmesg; when the driver is content, send a report: rocworker cannot make out what sysfs says";
        match unanswered.contains(&problem) {
            true => About::all(NAME).failed(problem, remedy),
            false => About::all(NAME).warning(problem, remedy),
        }
    }));
    Ok(checks)
}

fn no_amd(subject: &Subject<'_>) -> Check {
    if let Some(why) = remarks::without_kfd(subject.facts) {
        let evidence = format!("no AMD GPU is on the bus: {why}");
        let remedy = "run rocworker on a Linux host, or in a virtual machine that a card is passed through to; else set \
                      compute-runtime: none";
        return subject.lacks(About::all(NAME), &evidence, remedy);
    }
    let remedy = match subject.facts.inventory.virtualization {
        Some(_) => "pass one through from the host, or set compute-runtime: none",
        None => {
            "see whether lspci -d 1002: lists one and the firmware has its slot enabled, or set compute-runtime: none"
        }
    };
    subject.lacks(About::all(NAME), "no AMD GPU is on the bus", remedy)
}

fn described(gpu: &Gpu) -> String {
    let hexadecimal = |id: Option<u16>| id.map_or_else(|| "?".to_owned(), |id| format!("{id:04x}"));
    let ids = format!("{}:{}", hexadecimal(gpu.vendor_id), hexadecimal(gpu.device_id));
    names::of(gpu).map_or_else(|| ids.clone(), |name| format!("{name} ({ids})"))
}
