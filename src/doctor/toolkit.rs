//! The CDI spec that AMD's container toolkit would make, beside rocworker's: where it is installed, a person
//! will wonder why the two differ.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allocation::cdi::{DeviceNode, Edits, Spec};
use cdi::{self, Wanted, wanted};
use check::{About, Check};
use config::selection::select;
use packages::smi::installed;
use reconcile::command::Programs;
use render::Templates;
use root::Root;

use super::machine::Subject;

const NAME: &str = "toolkit";
const PROGRAM: &str = "amd-ctk";
const LIMIT: Duration = Duration::from_secs(10);

/// The check, or the one that says why there is nothing to compare. `programs`: `None` beneath another Root than `/`,
/// where no command is run.
pub(super) fn check(subject: &Subject<'_>, programs: Option<&Programs>) -> Result<Check, Check> {
    let about = About::one(NAME, PROGRAM);
    let skipped = |why: &str| about.clone().skipped(why);
    let programs =
        installed(&about, programs, PROGRAM, subject.config.packages.container_toolkit.asked_by())?;
    let selection = select(subject.config, subject.facts)
        .map_err(|_| skipped("the configuration names a GPU that is not there"))?;
    let Wanted::Spec(managed) = wanted(subject.config, &selection, &subject.facts.inventory) else {
        return Err(skipped("rocworker writes no spec to compare with"));
    };
    let managed =
        cdi::text(&Templates::read(subject.root), &managed).map_err(|error| skipped(&error.to_string()))?;
    let by_hand = "rocworker does not need it; amd-ctk cdi generate --output FILE by hand shows more";
    let generated = generated(programs).map_err(|error| about.clone().warning(error, by_hand))?;
    Ok(match differences(&managed, &generated) {
        Err(error) => about.warning(
            format!("its spec is not one: {error}"),
            "keep rocworker's: rocworker cdi validate says whether it is right",
        ),
        Ok(differences) if differences.is_empty() => about.ok("would describe the same GPUs by the same names"),
        Ok(differences) => about.warning(
            format!("its spec would differ from rocworker's: {}", differences.join("; ")),
            "keep one of the two: with both at /etc/cdi the later one wins, and in two files they void each other",
        ),
    })
}

/// The toolkit writes its spec into a file and nowhere else (ROCm/container-toolkit, cmd/amd-ctk/cdi/generate).
fn generated(programs: &Programs) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("amd.json").display().to_string();
    programs
        .run(&[PROGRAM, "cdi", "generate", &format!("--output={file}")], LIMIT)
        .map_err(|error| error.to_string())?;
    let root = Root::open(folder.path()).map_err(|error| error.to_string())?;
    root.read_text("/amd.json", cdi::LIMIT).map_err(|error| error.to_string())
}

/// How the toolkit's spec differs, each with its reason.
fn differences(managed: &str, generated: &str) -> Result<Vec<String>, allocation::Error> {
    let (managed, generated) = (Spec::parse(managed)?, Spec::parse(generated)?);
    let mut found = Vec::new();
    if generated.version != managed.version {
        found.push(format!(
            "cdiVersion {} where rocworker's is {}, since podman 4.3 and containerd before 1.7.6 refuse more",
            generated.version, managed.version
        ));
    }
    if edits(&generated)
        .flat_map(|it| &it.device_nodes)
        .any(|node| node.major.is_some() || node.minor.is_some())
    {
        found.push(
            "it has the nodes' numbers, which rocworker leaves to engines: /dev/kfd's changes from boot to boot"
                .to_owned(),
        );
    }
    let managed_nodes: BTreeSet<&str> = edits(&managed).flat_map(render_nodes).collect();
    let generated_nodes: BTreeSet<&str> = edits(&generated).flat_map(render_nodes).collect();
    let lacks: Vec<&str> = managed_nodes.difference(&generated_nodes).copied().collect();
    if !lacks.is_empty() {
        found.push(format!(
            "it lacks {} of {} render nodes ({}): older releases do not find partitions, and none where the kernel has \
             no PCI domain",
            lacks.len(),
            managed_nodes.len(),
            shortened(&lacks)
        ));
    }
    let has: Vec<&str> = generated_nodes.difference(&managed_nodes).copied().collect();
    if !has.is_empty() {
        found.push(format!(
            "it has {}, which rocworker leaves out: rocworker detect or gpu-device-ids says why",
            shortened(&has)
        ));
    }
    found.extend(renamed(&managed, &generated));
    Ok(found)
}

/// The first index that means another GPU in the toolkit's spec.
fn renamed(managed: &Spec, generated: &Spec) -> Option<String> {
    let nodes = |spec: &Spec| -> BTreeMap<String, String> {
        let nodes = |edits| render_nodes(edits).collect::<Vec<_>>().join(" and ");
        spec.devices.iter().map(|device| (device.name.to_string(), nodes(&device.edits))).collect()
    };
    let (managed, generated) = (nodes(managed), nodes(generated));
    managed.iter().filter(|(name, _)| name.parse::<u32>().is_ok()).find_map(|(name, here)| {
        let there = generated.get(name).filter(|there| *there != here && !there.is_empty())?;
        Some(format!("its {name} is {there}, and rocworker's is {here}: rocworker counts as KFD and HIP do"))
    })
}

fn edits(spec: &Spec) -> impl Iterator<Item = &Edits> {
    spec.devices.iter().map(|device| &device.edits).chain([&spec.edits])
}

fn render_nodes(edits: &Edits) -> impl Iterator<Item = &str> {
    let nodes = edits.device_nodes.iter().map(DeviceNode::host);
    nodes.filter(|path| path.starts_with("/dev/dri/renderD"))
}

fn shortened(nodes: &[&str]) -> String {
    match nodes {
        [first, .., last] if nodes.len() > 4 => format!("{first} to {last}"),
        nodes => nodes.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(version: &str, devices: &[(&str, &str)], numbers: &str) -> String {
        let device = |(name, path): &(&str, &str)| {
            format!(
                r#"{{"name":"{name}","containerEdits":{{"deviceNodes":[{{"path":"{path}"{numbers}}}]}}}}"#
            )
        };
        let devices: Vec<String> = devices.iter().map(device).collect();
        format!(r#"{{"cdiVersion":"{version}","kind":"amd.com/gpu","devices":[{}]}}"#, devices.join(","))
    }

    const TWO: [(&str, &str); 2] = [("0", "/dev/dri/renderD128"), ("1", "/dev/dri/renderD129")];

    #[test]
    fn each_difference_is_reported_with_its_reason() {
        let managed = spec("0.5.0", &TWO, "");
        let swapped = [("0", "/dev/dri/renderD129"), ("1", "/dev/dri/renderD128")];
        let more = [TWO[0], TWO[1], ("2", "/dev/dri/renderD130")];
        for (text, parts) in [
            (spec("0.5.0", &TWO, ""), &[][..]),
            (spec("0.6.0", &TWO, ""), &["cdiVersion 0.6.0 where rocworker's is 0.5.0"]),
            (spec("0.5.0", &TWO, r#","major":226,"minor":128"#), &["it has the nodes' numbers"]),
            (spec("0.5.0", &TWO[..1], ""), &["it lacks 1 of 2 render nodes (/dev/dri/renderD129)"]),
            (spec("0.5.0", &more, ""), &["it has /dev/dri/renderD130, which rocworker leaves out"]),
            (
                spec("0.5.0", &swapped, ""),
                &["its 0 is /dev/dri/renderD129, and rocworker's is /dev/dri/renderD128"],
            ),
            (spec("0.6.0", &[], ""), &["cdiVersion", "it lacks 2 of 2"]),
        ] {
            let found = differences(&managed, &text).unwrap();
            assert_eq!(found.len(), parts.len(), "{text}: {found:#?}");
            for (found, part) in found.iter().zip(parts) {
                assert!(found.starts_with(part), "{found}");
            }
        }
        assert!(differences(&managed, "<html>").is_err());
    }
}
