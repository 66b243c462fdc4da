use std::fmt::Write;

use anstyle::Style;
use host::facts::Facts;
use inventory::{DeviceNode, Gpu, Inventory, Problem, Reading, Vendor};
use printable::printable;

use super::Outcome;
use super::options::Format;
use super::output::{BAD, DIM, GOOD, styled};
use super::session::Session;
use super::table::{Cell, Columns};
use crate::detection::Detection;

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    let facts = Facts::read(&session.root);
    let detection = Detection::new(&facts);
    session.format.print(&detection, || text(&detection, session.format))?;
    Ok(Outcome::Done)
}

/// The answer for people: a row a GPU, the reasons below, the machine in a line.
pub(crate) fn text(detection: &Detection<'_>, format: Format) -> String {
    let Detection { inventory, notes } = detection;
    let mut text = String::new();
    if inventory.gpus.is_empty() {
        text.push_str(no_gpu(inventory.may_lack_gpus()));
    } else {
        text.push_str(&rows(&inventory.gpus, format));
        text.push_str(&reasons(&inventory.gpus));
    }
    for problem in inventory.problems() {
        writeln!(text, "{} {}", styled(BAD, "problem:"), printable(&problem)).ok();
    }
    for note in notes {
        writeln!(text, "{} {}", styled(DIM, "note:"), printable(note)).ok();
    }
    writeln!(text, "\n{}", machine(inventory)).ok();
    if inventory.amd().any(Gpu::usable) {
        writeln!(text, "Whether the engines here give them to containers: rocworker doctor").ok();
    }
    text
}

/// What is known where no GPU is listed.
pub(crate) fn no_gpu(may_lack: bool) -> &'static str {
    match may_lack {
        true => "Which GPUs this machine has is not known.\n",
        false => "No GPU on the PCI bus of this machine.\n",
    }
}

fn rows(gpus: &[Gpu], format: Format) -> String {
    let headings =
        ["#", "GPU", "PCI", "DRIVER", "ARCH", "MEMORY", "PARTITION", "CARD", "RENDER", "KFD", "CONTAINERS"];
    let columns = Columns::new(&headings).right(&[0, 5, 9]);
    let mut columns = columns.only_wide(&[3, 7, 9]).shortened(&[1]);
    for gpu in gpus {
        let node = |node: &Option<DeviceNode>| {
            let name = node.as_ref().and_then(|node| node.path.file_name());
            name.map_or_else(none, |name| name.to_string_lossy().into_owned())
        };
        let (verdict, style) = verdict(gpu);
        columns.row([
            or_none(gpu.index).into(),
            inventory::names::of(gpu).unwrap_or_else(|| ids(gpu)).into(),
            or_none(gpu.pci.as_ref()).into(),
            or_none(gpu.driver.as_ref()).into(),
            or_none(gpu.gfx.as_ref().ok()).into(),
            gpu.vram_bytes.as_ref().map_or_else(|_| none(), |bytes| gibibytes(*bytes)).into(),
            partition(gpu).into(),
            node(&gpu.card).into(),
            node(&gpu.render).into(),
            or_none(gpu.kfd_node).into(),
            Cell::styled(verdict, style),
        ]);
    }
    let mut text = columns.shown(format);
    if columns.has_cut(format) {
        writeln!(text, "{}", styled(DIM, "… is cut: rocworker detect -o wide has each name in full")).ok();
    }
    text
}

fn verdict(gpu: &Gpu) -> (&'static str, Style) {
    match gpu.vendor {
        _ if gpu.usable() => ("usable", GOOD),
        Vendor::Amd => ("no", BAD),
        _ => ("not AMD", DIM),
    }
}

fn partition(gpu: &Gpu) -> String {
    let Some(partition) = &gpu.partition else { return none() };
    let mode = |mode: &Reading<String>| mode.clone().unwrap_or_else(|_| "?".to_owned());
    format!("{}/{} {}", mode(&partition.compute), mode(&partition.memory), partition.id)
}

/// Why a GPU of AMD's is not usable, and why a field of one is not known: a line a reason, with the GPUs that it holds
/// for.
fn reasons(gpus: &[Gpu]) -> String {
    let amd = || gpus.iter().filter(|gpu| gpu.vendor == Vendor::Amd);
    let mut reasons: Vec<(&Problem, Vec<&Gpu>)> = Vec::new();
    for gpu in amd() {
        for problem in &gpu.problems {
            match reasons.iter_mut().find(|(known, _)| *known == problem) {
                Some((_, gpus)) => gpus.push(gpu),
                None => reasons.push((problem, vec![gpu])),
            }
        }
    }
    let mut text = String::new();
    for (problem, gpus) in reasons {
        writeln!(text, "{} {}: {}", styled(BAD, "✗"), names(&gpus), printable(&problem.to_string())).ok();
    }
    text.push_str(&unknown_memory(amd()));
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// The GPUs by index. The PCI address names one that has no index, because KFD nodes or PCI functions before it cannot
/// be read.
fn names(gpus: &[&Gpu]) -> String {
    let indexes: Vec<u32> = gpus.iter().filter_map(|gpu| gpu.index).collect();
    let others = gpus.iter().filter(|gpu| gpu.index.is_none()).map(|gpu| or_none(gpu.pci.as_ref()));
    let indexes = Some(ranges(&indexes)).filter(|ranges| !ranges.is_empty());
    indexes.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// Ascending numbers in the form that AMD_VISIBLE_DEVICES takes too: `0-3,5`.
pub(super) fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let shown = runs.filter_map(|run| match (run.first()?, run.last()?) {
        (first, last) if first == last => Some(first.to_string()),
        (first, last) => Some(format!("{first}-{last}")),
    });
    shown.collect::<Vec<_>>().join(",")
}

/// The first GPU whose memory is unknown, with the reason, and how many more there are: 63 partitions lack it for one
/// reason.
fn unknown_memory<'a>(amd: impl Iterator<Item = &'a Gpu>) -> String {
    let unknown: Vec<_> = amd.filter_map(|gpu| Some((gpu, gpu.vram_bytes.as_ref().err()?))).collect();
    let Some((gpu, reason)) = unknown.first() else { return String::new() };
    let more = match unknown.len() - 1 {
        0 => String::new(),
        more => format!("; and so for {more} more"),
    };
    let name = names(&[gpu]);
    let unknown = format!("? {name}: memory unknown, {}{more}", printable(&reason.to_string()));
    format!("{}\n", styled(DIM, unknown))
}

fn machine(inventory: &Inventory) -> String {
    let amd = inventory.amd().count();
    let usable = inventory.amd().filter(|gpu| gpu.usable()).count();
    let driver = match (&inventory.amdgpu.version, &inventory.amdgpu.loaded) {
        (Ok(version), Ok(true)) => format!("amdgpu {version} loaded"),
        (Err(_), Ok(true)) => "amdgpu loaded".to_owned(),
        (_, Ok(false)) => "amdgpu not loaded".to_owned(),
        (_, Err(_)) => "whether amdgpu is loaded is not known".to_owned(),
    };
    let kfd = &inventory.kfd.node;
    let kfd = kfd.number().map_or_else(
        || "no usable /dev/kfd".to_owned(),
        |(major, minor)| format!("{} is {major}:{minor}", kfd.path.display()),
    );
    let around = &inventory.virtualization;
    let around = around.as_ref().map_or_else(String::new, |around| format!("; inside {}", around.name()));
    printable(&format!("{usable} of {amd} AMD GPUs usable; {driver}; {kfd}{around}"))
}

fn ids(gpu: &Gpu) -> String {
    let id = |id: Option<u16>| or_none(id.map(|id| format!("{id:04x}")));
    format!("{}:{}", id(gpu.vendor_id), id(gpu.device_id))
}

pub(super) fn gibibytes(bytes: u64) -> String {
    // One decimal, in integers: a GPU has far less than 2^60 bytes.
    let tenths = bytes.saturating_mul(10) / (1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(none, |value| value.to_string())
}

fn none() -> String {
    "-".to_owned()
}
