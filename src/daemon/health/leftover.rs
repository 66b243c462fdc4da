//! What is left on a GPU: processes that have ended and that the driver still knows there, or memory that nobody uses
//! and that was not given back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use amdgpu::processes::{gpu_id, uses_without_units};
use inventory::PciAddress;
use inventory::health::Health;
use inventory::processes::Use;
use inventory::published::Client;
use inventory::snapshot::Card;
use root::Root;
use root::patient::{DEADLINE, PATIENCE, Patient};
use telemetry::processes::is_first_pid_namespace;

use super::super::exporter::clients::Clients;

/// At most this many processes are named.
const MOST_NAMED: usize = 4;

/// Looks at the users of GPUs in a thread of its own: while a GPU hangs, the kernel may hold up who reads a client's
/// fdinfo. What it holds up is unknown.
#[derive(Debug)]
pub(super) struct Leftovers {
    patient: Patient<BTreeMap<PciAddress, Look>>,
    before: BTreeMap<PciAddress, Look>,
}

/// What one look at a card found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Look {
    /// Processes that have memory or queues there, and that /proc has no more.
    gone: BTreeSet<u32>,
    /// VRAM in use while no process that lives uses the GPU; `None` where one does, and where that is unknown.
    unused_bytes: Option<u64>,
}

impl Leftovers {
    pub(super) fn new(root: &Root) -> Self {
        Self { patient: Patient::new(root.place(), PATIENCE, DEADLINE), before: BTreeMap::new() }
    }

    /// Looks, and notes in each GPU's health what was left on it now and at the last look. `limit`: so much VRAM may be
    /// in use without a process.
    pub(super) fn note(&mut self, cards: Vec<Card>, limit: Option<u64>, health: &mut Health) {
        let now = self.patient.run(move |root| look(root, &cards, limit)).unwrap_or_default();
        for gpu in &mut health.gpus {
            if let Some((before, now)) = self.before.get(&gpu.pci).zip(now.get(&gpu.pci)) {
                gpu.leftover = left(before, now, limit);
            }
        }
        self.before = now;
    }
}

/// What two looks in a row agree on, in a sentence: what goes between them was only being cleared up.
fn left(before: &Look, now: &Look, limit: Option<u64>) -> Option<String> {
    let pids: Vec<u32> = now.gone.intersection(&before.gone).copied().collect();
    if !pids.is_empty() {
        return Some(of_processes(&pids));
    }
    let is_over = |look: &Look| Some(look.unused_bytes? > limit?);
    (is_over(before)? && is_over(now)?).then(|| {
        let mib = now.unused_bytes.unwrap_or_default() >> 20;
        format!(
            "{mib} MiB of VRAM are in use, and no process uses the GPU: see the kernel's log, then reset the GPU or restart \
             the machine"
        )
    })
}

fn of_processes(pids: &[u32]) -> String {
    let named: Vec<String> = pids.iter().take(MOST_NAMED).map(u32::to_string).collect();
    let more = match pids.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (which, have) = if pids.len() == 1 { ("process", "has") } else { ("processes", "have") };
    format!(
        "{which} {}{more} {have} ended, and the driver still keeps memory or queues for that on the GPU: see the kernel's \
         log, then reset the GPU or restart the machine",
        named.join(", ")
    )
}

/// Looks at the cards whose VRAM may have no living user. Empty where /proc does not number processes as KFD does, or
/// does not show all of them.
fn look(root: &Root, cards: &[Card], limit: Option<u64>) -> BTreeMap<PciAddress, Look> {
    if is_first_pid_namespace(root) != Some(true) {
        return BTreeMap::new();
    }
    let mut faults = Vec::new();
    let uses = uses_without_units(root, &mut faults).unwrap_or_default();
    let (alive, gone): (Vec<Use>, Vec<Use>) =
        uses.into_iter().filter(Use::holds).partition(|it| root.exists(format!("/proc/{}", it.pid)));
    let on = |card: &Card, uses: &[Use]| -> BTreeSet<u32> {
        let nodes = card.gpus.iter().filter_map(|gpu| gpu.kfd_node);
        let ids: Vec<u32> = nodes.filter_map(|node| gpu_id(root, node, &mut Vec::new())).collect();
        uses.iter().filter(|it| ids.contains(&it.gpu_id)).map(|it| it.pid).collect()
    };
    let is_suspect = |card: &&Card| {
        let is_full = vram_used(card).zip(limit).is_some_and(|(used, limit)| used > limit);
        is_full && faults.is_empty() && on(card, &alive).is_empty()
    };
    let suspects: Vec<PciAddress> = cards.iter().filter(is_suspect).filter_map(|card| card.pci).collect();
    // To look through all processes takes tens of milliseconds. Root sees nothing of others without CAP_SYS_PTRACE.
    let sees_clients = !suspects.is_empty() && root.list("/proc/1/fd").is_ok();
    let clients = sees_clients.then(|| Clients::default().read(root, Instant::now()));
    let is_unused = |pci: PciAddress| {
        let uses_it = |clients: &Vec<Client>| clients.iter().any(|it| uses_card(it, pci));
        suspects.contains(&pci) && clients.as_ref().is_some_and(|clients| !uses_it(clients))
    };
    let look = |card: &Card| {
        let pci = card.pci?;
        let unused_bytes = vram_used(card).filter(|_| is_unused(pci));
        Some((pci, Look { gone: on(card, &gone), unused_bytes }))
    };
    cards.iter().filter_map(look).collect()
}

/// How much of the card's own memory is in use, whoever uses it. `None` for an APU, while the card is suspended, and where
/// that is unknown.
fn vram_used(card: &Card) -> Option<u64> {
    card.readings.own_memory().filter(|memory| memory.pool == "vram")?.used_bytes
}

/// A client with no memory only looks. Of one whose memory is unknown it is unknown whether it has some.
fn uses_card(client: &Client, pci: PciAddress) -> bool {
    client.pci == pci.to_string() && client.vram_bytes != Some(0)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test lays out files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use inventory::readings::{CardReadings, MemoryPool};
    use inventory::snapshot::Gpu;

    use super::*;

    const LIMIT: u64 = 1 << 30;
    const MUCH: u64 = 3 << 30;

    #[test]
    fn what_is_left_is_what_two_looks_in_a_row_agree_on() {
        let look = |gone: &[u32], unused_bytes| Look { gone: gone.iter().copied().collect(), unused_bytes };
        let memory = "3072 MiB of VRAM are in use, and no process uses the GPU";
        let one = "process 7 has ended, and the driver still keeps";
        let many = "processes 1, 2, 3, 4 and 2 more have ended, and the driver still keeps";
        for (before, now, limit, expected) in [
            (look(&[], None), look(&[], None), Some(LIMIT), None),
            (look(&[], Some(LIMIT)), look(&[], Some(LIMIT)), Some(LIMIT), None),
            (look(&[], Some(MUCH)), look(&[], Some(MUCH)), Some(LIMIT), Some(memory)),
            (look(&[], Some(MUCH)), look(&[], Some(MUCH)), None, None),
            // A process that begins or ends between two readings.
            (look(&[], None), look(&[], Some(MUCH)), Some(LIMIT), None),
            (look(&[], Some(MUCH)), look(&[], None), Some(LIMIT), None),
            (look(&[], Some(MUCH)), look(&[], Some(LIMIT)), Some(LIMIT), None),
            // The driver is just clearing up behind one process, then behind another.
            (look(&[], None), look(&[7], None), Some(LIMIT), None),
            (look(&[6], None), look(&[7], None), Some(LIMIT), None),
            (look(&[6, 7], None), look(&[7, 8], None), Some(LIMIT), Some(one)),
            (look(&[7], Some(MUCH)), look(&[7], Some(MUCH)), None, Some(one)),
            (look(&[1, 2, 3, 4, 5, 6], None), look(&[1, 2, 3, 4, 5, 6], None), Some(LIMIT), Some(many)),
        ] {
            let found = left(&before, &now, limit);
            let is_so = match (&found, expected) {
                (Some(found), Some(expected)) => found.starts_with(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(is_so, "{before:?} {now:?}: {found:?}");
        }
    }

    /// Synthetic, as kfd_process.c of Linux 6.12 and proc_ns.h lay these files out: a machine with one GPU, process 1,
    /// and these files.
    fn looked(namespace: &str, files: &[(&str, &str)], used: Option<u64>) -> Option<Look> {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        let base = [("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "4711\n"), ("proc/1/comm", "init\n")];
        for (name, text) in base.iter().chain(files) {
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(top.join("proc/self/ns")).unwrap();
        symlink(namespace, top.join("proc/self/ns/pid")).unwrap();
        fs::create_dir_all(top.join("proc/1/fd")).unwrap();
        fs::create_dir_all(top.join("proc/8/fd")).unwrap();
        symlink("/dev/dri/renderD128", top.join("proc/8/fd/3")).unwrap();
        let pci: PciAddress = "0000:03:00.0".parse().unwrap();
        let pool = MemoryPool { pool: "vram".into(), total_bytes: None, used_bytes: used };
        let card = Card {
            pci: Some(pci),
            driver: Some("amdgpu".to_owned()),
            readings: CardReadings { memory: vec![pool], is_apu: Some(false), ..CardReadings::default() },
            gpus: vec![Gpu { kfd_node: Some(1), ..Gpu::default() }],
            ..Card::default()
        };
        look(&Root::open(top).unwrap(), &[card], Some(LIMIT)).remove(&pci)
    }

    #[test]
    fn a_look_tells_users_that_live_from_those_that_have_ended() {
        const FIRST: &str = "pid:[4026531836]";
        const GONE: (&str, &str) = ("sys/class/kfd/kfd/proc/7/vram_4711", "4096\n");
        const ALIVE: (&str, &str) = ("sys/class/kfd/kfd/proc/1/vram_4711", "4096\n");
        const IDLE: (&str, &str) = ("sys/class/kfd/kfd/proc/7/vram_4711", "0\n");
        const MODULE: (&str, &str) = ("sys/module/amdgpu/refcnt", "1\n");
        let client = |vram: &'static str| ("proc/8/fdinfo/3", vram);
        let with = "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t4 KiB\n";
        let without = "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t0\n";
        let unknown = "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\n";
        let elsewhere = "drm-driver:\tamdgpu\ndrm-pdev:\t0000:04:00.0\ndrm-memory-vram:\t4 KiB\n";
        for (files, used, gone, unused) in [
            (vec![], Some(LIMIT), vec![], None),
            (vec![], Some(MUCH), vec![], Some(MUCH)),
            (vec![], None, vec![], None),
            (vec![GONE], Some(MUCH), vec![7], Some(MUCH)),
            (vec![ALIVE, GONE], Some(MUCH), vec![7], None),
            (vec![("sys/class/kfd/kfd/proc/7/vram_815", "4096\n")], Some(MUCH), vec![], Some(MUCH)),
            (vec![IDLE], Some(MUCH), vec![], Some(MUCH)),
            (vec![IDLE, ("sys/class/kfd/kfd/proc/7/queues/0/gpuid", "4711")], None, vec![7], None),
            (vec![("sys/class/kfd/kfd/proc/7/vram_4711", "no number\n")], Some(MUCH), vec![], None),
            (vec![MODULE, client(with)], Some(MUCH), vec![], None),
            (vec![MODULE, client(unknown)], Some(MUCH), vec![], None),
            (vec![MODULE, client(without)], Some(MUCH), vec![], Some(MUCH)),
            (vec![MODULE, client(elsewhere)], Some(MUCH), vec![], Some(MUCH)),
        ] {
            let expected = Look { gone: gone.into_iter().collect(), unused_bytes: unused };
            assert_eq!(looked(FIRST, &files, used), Some(expected), "{files:?} {used:?}");
            assert_eq!(looked("pid:[4026532000]", &files, used), None, "in a container");
        }
    }
}
