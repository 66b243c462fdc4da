//! The CDI spec that AMD's container toolkit would make, beside ours: where it is installed, somebody will wonder why the
//! two differ.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allocation::cdi;
use reconcile::command::Programs;
use root::Root;

use super::machine::Subject;
use crate::cdi::{Spec, Wanted, wanted};
use crate::check::{About, Check};
use crate::selection::select;

const NAME: &str = "toolkit";
const PROGRAM: &str = "amd-ctk";
const LIMIT: Duration = Duration::from_secs(10);

/// `programs`: `None` beneath another Root than `/`, where no command is run.
pub(super) fn check(subject: &Subject<'_>, programs: Option<&Programs>) -> Check {
    let about = About::one(NAME, PROGRAM);
    let Some(programs) = programs else { return about.skipped("reads a Root: no command is run") };
    if programs.find(PROGRAM).is_none() {
        return about.skipped("not installed, and nothing here needs it");
    }
    let Ok(selection) = select(subject.config, subject.facts) else {
        return about.skipped("the configuration names a GPU that is not there");
    };
    let Wanted::Spec(ours) = wanted(subject.config, &selection, &subject.facts.machine) else {
        return about.skipped("there is no spec of ours to compare with");
    };
    let text = match theirs(programs) {
        Ok(text) => text,
        Err(error) => {
            return about.warning(
                error,
                "rocworker does not need it; amd-ctk cdi generate --output FILE by hand shows more",
            );
        }
    };
    match differences(&ours, &text) {
        Err(error) => about.warning(
            format!("its spec is not one: {error}"),
            "keep rocworker's: rocworker cdi validate says whether it is right",
        ),
        Ok(differences) if differences.is_empty() => about.ok("would describe the same GPUs by the same names"),
        Ok(differences) => about.warning(
            format!("its spec would differ from ours: {}", differences.join("; ")),
            "keep one of the two: with both at /etc/cdi the later one wins, and in two files they void each other",
        ),
    }
}

/// The toolkit writes its spec into a file and nowhere else (ROCm/container-toolkit, cmd/amd-ctk/cdi/generate).
fn theirs(programs: &Programs) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("amd.json").display().to_string();
    programs
        .run(&[PROGRAM, "cdi", "generate", &format!("--output={file}")], LIMIT)
        .map_err(|error| error.to_string())?;
    let root = Root::open(folder.path()).map_err(|error| error.to_string())?;
    root.read_text("/amd.json", crate::cdi::LIMIT).map_err(|error| error.to_string())
}

/// What is otherwise in theirs, each with its reason.
fn differences(ours: &Spec, theirs: &str) -> Result<Vec<String>, allocation::Error> {
    let theirs = cdi::Spec::parse(theirs)?;
    let mut said = Vec::new();
    if theirs.version != ours.version {
        said.push(format!(
            "cdiVersion {} where ours is {}, since podman 4.3 and containerd before 1.7.6 refuse more",
            theirs.version, ours.version
        ));
    }
    let edits = || theirs.devices.iter().map(|device| &device.edits).chain([&theirs.edits]);
    if edits().flat_map(|edits| &edits.device_nodes).any(|node| node.major.is_some() || node.minor.is_some())
    {
        said.push(
            "it has the nodes' numbers, which ours leaves to engines: /dev/kfd's changes from boot to boot"
                .to_owned(),
        );
    }
    let our_nodes: BTreeSet<&str> = ours.devices.iter().flat_map(|device| render(&device.nodes)).collect();
    let their_nodes: BTreeSet<&str> = edits().flat_map(render_of).collect();
    let lacks: Vec<&str> = our_nodes.difference(&their_nodes).copied().collect();
    if !lacks.is_empty() {
        said.push(format!(
            "it lacks {} of {} render nodes ({}): older releases do not find partitions, and none where the kernel tells \
             no PCI domain",
            lacks.len(),
            our_nodes.len(),
            shortened(&lacks)
        ));
    }
    let has: Vec<&str> = their_nodes.difference(&our_nodes).copied().collect();
    if !has.is_empty() {
        said.push(format!(
            "it has {}, which ours leaves out: rocworker detect says why no container can use it, or gpu-device-ids does",
            shortened(&has)
        ));
    }
    said.extend(renamed(ours, &theirs));
    Ok(said)
}

/// The first index that means another GPU there.
fn renamed(ours: &Spec, theirs: &cdi::Spec<'_>) -> Option<String> {
    let by_name: BTreeMap<&str, Vec<&str>> =
        theirs.devices.iter().map(|device| (&*device.name, render_of(&device.edits).collect())).collect();
    ours.devices.iter().filter(|device| device.name.parse::<u32>().is_ok()).find_map(|device| {
        let (there, here) = (by_name.get(device.name.as_str())?, render(&device.nodes).collect::<Vec<_>>());
        (*there != here && !there.is_empty()).then(|| {
            format!(
                "its {} is {}, and ours is {}: rocworker counts as KFD and HIP do",
                device.name,
                there.join(" and "),
                here.join(" and ")
            )
        })
    })
}

fn render(nodes: &[crate::cdi::Node]) -> impl Iterator<Item = &str> {
    nodes.iter().map(|node| node.path.as_str()).filter(|path| is_render(path))
}

fn render_of<'s>(edits: &'s cdi::Edits<'_>) -> impl Iterator<Item = &'s str> {
    edits.device_nodes.iter().map(cdi::DeviceNode::host).filter(|path| is_render(path))
}

fn is_render(path: &str) -> bool {
    path.starts_with("/dev/dri/renderD")
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
    use crate::cdi::{Device, KIND, Node};

    fn node(path: &str) -> Node {
        Node { path: path.to_owned(), mode: 0o660, gid: 992 }
    }

    fn ours(devices: &[(&str, &str)]) -> Spec {
        let device =
            |(name, path): &(&str, &str)| Device { name: (*name).to_owned(), nodes: vec![node(path)] };
        Spec {
            version: "0.5.0",
            kind: KIND,
            devices: devices.iter().map(device).collect(),
            common: vec![node("/dev/kfd")],
        }
    }

    fn theirs(version: &str, devices: &[(&str, &str)], numbers: &str) -> String {
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
    fn each_difference_is_told_with_its_reason() {
        let swapped = [("0", "/dev/dri/renderD129"), ("1", "/dev/dri/renderD128")];
        let more = [TWO[0], TWO[1], ("2", "/dev/dri/renderD130")];
        for (text, parts) in [
            (theirs("0.5.0", &TWO, ""), &[][..]),
            (theirs("0.6.0", &TWO, ""), &["cdiVersion 0.6.0 where ours is 0.5.0"]),
            (theirs("0.5.0", &TWO, r#","major":226,"minor":128"#), &["it has the nodes' numbers"]),
            (theirs("0.5.0", &TWO[..1], ""), &["it lacks 1 of 2 render nodes (/dev/dri/renderD129)"]),
            (theirs("0.5.0", &more, ""), &["it has /dev/dri/renderD130, which ours leaves out"]),
            (
                theirs("0.5.0", &swapped, ""),
                &["its 0 is /dev/dri/renderD129, and ours is /dev/dri/renderD128"],
            ),
            (theirs("0.6.0", &[], ""), &["cdiVersion", "it lacks 2 of 2"]),
        ] {
            let said = differences(&ours(&TWO), &text).unwrap();
            assert_eq!(said.len(), parts.len(), "{text}: {said:#?}");
            for (said, part) in said.iter().zip(parts) {
                assert!(said.starts_with(part), "{said}");
            }
        }
        assert!(differences(&ours(&TWO), "<html>").is_err());
    }
}
