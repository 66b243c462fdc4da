//! Snapshots, by captured and synthetic machines. The expected values are worked out from the raw files.

use inventory::PciAddress;
use inventory::health::State;
use inventory::published::{Client, Drift, Lease, Published, SCHEMA_VERSION};
use inventory::series;
use inventory::snapshot::{Card, Gpu, GpuId, Owner, Process, Snapshot};
use layout::{JUDGED_AT, Machine};
use root::Root;
use support::captures;
use support::laid::Laid;
use telemetry::exporter::Exporter;
use telemetry::metrics::ALL;
use telemetry::sample::count;

const GIB: u64 = 1 << 30;

fn snapshot(laid: &Laid) -> Snapshot {
    let now = count(JUDGED_AT);
    let snapshot = Exporter::default().scrape(&Root::open(laid.top()).unwrap(), now);
    assert_eq!(snapshot.taken_at, now);
    snapshot
}

/// The used bytes and the size of the memory in which the card works.
fn memory(card: &Card) -> (Option<u64>, Option<u64>) {
    card.readings.own_memory().map_or((None, None), |memory| (memory.used_bytes, memory.total_bytes))
}

#[test]
fn a_whole_card_is_its_own_only_gpu() {
    let snapshot = snapshot(&Laid::out(&Machine::instinct_with_readings(2, 1)));
    let [first, second] = &snapshot.cards[..] else { panic!("{snapshot:#?}") };
    assert_eq!(
        (first.pci, first.identity.gfx.as_deref()),
        (PciAddress::parse("0000:05:00.0"), Some("gfx942"))
    );
    assert_eq!(
        (first.identity.compute_partition.as_deref(), first.identity.memory_partition.as_deref()),
        (Some("SPX"), Some("NPS1"))
    );
    assert_eq!(first.watts(), Some(431.0));
    assert_eq!(first.watts_limit(), Some(740.0));
    assert_eq!(first.readings.busy_percent, Some(61.0));
    assert_eq!(memory(first), (Some(17 * GIB + 4096), Some(192 * GIB)));
    let sensor = |name: &str| first.temperatures().find(|(sensor, _)| *sensor == name).map(|it| it.1);
    assert_eq!((sensor("junction"), sensor("mem"), sensor("edge")), (Some(51.0), Some(41.0), None));
    let [whole] = &first.gpus[..] else { panic!("{first:#?}") };
    assert_eq!((whole.index, whole.partition(), whole.lease.as_deref()), (Some(0), None, None));
    assert_eq!(first.busy_percent_of(whole), Some(61.0));
    assert_eq!(first.memory_total_bytes_of(whole), Some(192 * GIB));
    assert_eq!(whole.problems, [""; 0]);
    assert_eq!(snapshot.process_count(first, whole), Some(0));
    assert!(snapshot.counts_only_compute(first, whole));
    assert_eq!((second.gpus[0].index, second.watts()), (Some(1), Some(432.0)));
    assert!(snapshot.daemon.is_none() && first.health.is_none(), "no daemon publishes anything there");
}

#[test]
fn eight_cards_of_eight_partitions_are_64_gpus() {
    let snapshot = snapshot(&Laid::out(&Machine::instinct_with_readings(8, 8)));
    assert_eq!(snapshot.cards.len(), 8);
    let indexes: Vec<_> = snapshot.cards.iter().flat_map(|card| &card.gpus).map(|gpu| gpu.index).collect();
    assert_eq!(indexes, (0..64).map(Some).collect::<Vec<_>>());
    let last = &snapshot.cards[7];
    assert_eq!(
        last.gpus.iter().map(Gpu::partition).collect::<Vec<_>>(),
        (0..8).map(Some).collect::<Vec<_>>()
    );
    assert_eq!(last.watts(), Some(438.0), "of the card alone");
    // gfx_busy_inst: 10, the card's number, the partition's only XCC.
    assert_eq!(last.busy_percent_of(&last.gpus[3]), Some(10.0 + 7.0 + 3.0));
    assert_eq!(memory(last).1, Some(192 * GIB));
    assert_eq!(
        last.memory_total_bytes_of(&last.gpus[3]).map(|bytes| bytes < 192 * GIB),
        Some(true),
        "{last:#?}"
    );
}

#[test]
fn of_a_suspended_card_nothing_but_its_name_is_known() {
    let file = "/sys/bus/pci/devices/0000:05:00.0/power/runtime_status";
    let snapshot = snapshot(&Laid::out(&Machine::instinct_with_readings(2, 2).put(file, "suspended\n")));
    let card = &snapshot.cards[0];
    assert_eq!(card.is_suspended(), Some(true));
    assert_eq!((card.watts(), memory(card), card.readings.busy_percent), (None, (None, None), None));
    assert_eq!(card.temperatures().count(), 0, "{card:#?}");
    assert_eq!(card.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert!(
        card.gpus.iter().all(|gpu| snapshot.process_count(card, gpu).is_none()),
        "unknown is not zero: {card:#?}"
    );
    assert!(snapshot.cards[1].watts().is_some());
}

#[test]
fn an_apu_has_the_memory_that_it_works_in() {
    let snapshot = snapshot(&Laid::out(&captures::phoenix()));
    let [card] = &snapshot.cards[..] else { panic!("{snapshot:#?}") };
    let laid = Laid::out(&captures::phoenix());
    let file = |name: &str| -> Option<u64> {
        laid.text(&format!("/sys/bus/pci/devices/{}/{name}", card.pci?)).trim().parse().ok()
    };
    assert_eq!(memory(card), (file("mem_info_gtt_used"), file("mem_info_gtt_total")));
}

#[test]
fn other_vendors_cards_are_not_amds() {
    let snapshot = snapshot(&Laid::out(&captures::phoenix_beside_rtx4080()));
    assert_eq!(snapshot.cards.len(), 1, "{snapshot:#?}");
    assert!(self::snapshot(&Laid::out(&captures::a380())).cards.is_empty());
}

#[test]
fn the_daemons_judgement_stands_with_its_card() {
    let snapshot = snapshot(&Laid::out(&Machine::instinct_in_trouble(3, 8)));
    let state = |card: usize| snapshot.cards[card].health.as_ref().map(|health| (health.state, health.score));
    assert_eq!(state(0), Some((State::Unhealthy, Some(10))));
    assert_eq!(state(1), Some((State::Degraded, Some(85))));
    assert_eq!(state(2), Some((State::Unknown, None)));
}

#[test]
fn a_process_stands_once_for_each_gpu_and_a_lease_with_its_gpu() {
    let laid = Laid::out(&Machine::instinct_with_readings(2, 1));
    let root = Root::open(laid.top()).unwrap();
    let inventory = amdgpu::read(&root);
    let amds = || inventory.gpus.iter().filter(|gpu| gpu.index.is_some());
    let ids: Vec<u32> = amds()
        .map(|gpu| amdgpu::processes::gpu_id(&root, gpu.kfd_node.unwrap(), &mut Vec::new()).unwrap())
        .collect();
    laid.put("proc/70/comm", "python3\n");
    laid.put("proc/70/cgroup", "0::/system.slice/train.service\n");
    laid.put(&format!("sys/class/kfd/kfd/proc/70/vram_{}", ids[0]), "4096\n");
    laid.put(&format!("sys/class/kfd/kfd/proc/70/vram_{}", ids[1]), "8192\n");
    laid.put(&format!("sys/class/kfd/kfd/proc/70/stats_{}/cu_occupancy", ids[1]), "12\n");
    let render = amds()
        .nth(1)
        .unwrap()
        .render
        .as_ref()
        .unwrap()
        .path
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let published = Published {
        schema_version: SCHEMA_VERSION,
        written_at: JUDGED_AT,
        leases: Some(vec![Lease { gpu: render, container: "build-7".to_owned() }]),
        drift: Drift { differs: 1, pending_restarts: 2, ..Drift::default() },
        ..Published::default()
    };
    let published = serde_json::to_string(&published).unwrap();
    laid.put("run/rocworker/exporter.json", &published);
    let snapshot = snapshot(&laid);
    let process = |index: u32, vram: u64, compute_units: Option<u64>| {
        let pci = PciAddress::parse(["0000:05:00.0", "0000:15:00.0"][index as usize]);
        Process {
            pid: 70,
            name: Some("python3".to_owned()),
            gpu: GpuId { index: Some(index), pci, partition: None },
            owner: Owner { unit: Some("train.service".to_owned()), ..Owner::default() },
            vram_bytes: Some(vram),
            compute_units,
            queues: None,
        }
    };
    assert_eq!(snapshot.processes, [process(0, 4096, None), process(1, 8192, Some(12))]);
    let [first, second] = &snapshot.cards[..] else { panic!("{snapshot:#?}") };
    let count = |card: &Card| snapshot.process_count(card, &card.gpus[0]);
    assert_eq!((count(first), first.gpus[0].lease.as_deref()), (Some(1), None));
    assert_eq!((count(second), second.gpus[0].lease.as_deref()), (Some(1), Some("build-7")));
    let daemon = snapshot.daemon.unwrap();
    assert_eq!((daemon.written_at, daemon.drift.differs, daemon.drift.pending_restarts), (JUDGED_AT, 1, 2));
}

/// KFD counts no process that draws or decodes.
#[test]
fn who_draws_is_counted_with_who_computes_and_without_a_daemon_unknown() {
    let client = |pid, vram_bytes| Client { pid, pci: "0000:05:00.0".to_owned(), vram_bytes };
    let none = "No process uses a GPU.";
    let no_compute = "No compute process uses a GPU.";
    for (clients, expected) in [
        (None, (Some(0), true, no_compute)),
        (Some(vec![]), (Some(0), false, none)),
        (Some(vec![client(71, Some(0))]), (Some(0), false, none)),
        (Some(vec![client(71, Some(4096))]), (Some(1), false, none)),
        (Some(vec![client(71, None)]), (Some(0), true, no_compute)),
    ] {
        let laid = Laid::out(&Machine::instinct_with_readings(2, 1));
        if let Some(clients) = &clients {
            let published = Published {
                schema_version: SCHEMA_VERSION,
                written_at: JUDGED_AT,
                clients: clients.clone(),
                ..Published::default()
            };
            laid.put("run/rocworker/exporter.json", &serde_json::to_string(&published).unwrap());
        }
        let snapshot = snapshot(&laid);
        let (card, gpu) = (&snapshot.cards[0], &snapshot.cards[0].gpus[0]);
        let count = snapshot.process_count(card, gpu);
        let found = (count, snapshot.counts_only_compute(card, gpu), snapshot.no_process());
        assert_eq!(found, expected, "{clients:?}");
        assert_eq!(snapshot.processes.len(), usize::from(count == Some(1)));
    }
    let asleep = ("/sys/bus/pci/devices/0000:05:00.0/power/runtime_status", "suspended\n");
    let one_sleeps = snapshot(&Laid::out(&Machine::instinct_with_readings(2, 1).put(asleep.0, asleep.1)));
    assert_eq!(one_sleeps.no_process(), "Which processes use the GPUs is not known.");
    let partitioned = snapshot(&Laid::out(&Machine::instinct_with_readings(1, 8)));
    let card = &partitioned.cards[0];
    assert!(card.gpus.iter().all(|gpu| partitioned.counts_only_compute(card, gpu)), "{partitioned:#?}");
}

#[test]
fn a_card_without_a_driver_says_why_no_container_can_use_it() {
    let laid = Laid::out(&Machine::instinct_with_readings(2, 1));
    let folder = "sys/bus/pci/devices/0000:05:00.0";
    std::fs::remove_file(laid.path(&format!("{folder}/driver"))).unwrap();
    let uevent = laid.text(&format!("{folder}/uevent")).replace("DRIVER=amdgpu\n", "");
    laid.put(&format!("{folder}/uevent"), &uevent);
    let unbound = snapshot(&laid);
    let its =
        |pci: &str| unbound.cards.iter().find(|card| card.pci == PciAddress::parse(pci)).unwrap().problems();
    assert_eq!(its("0000:15:00.0"), []);
    let [(head, problem)] = &its("0000:05:00.0")[..] else { panic!("{unbound:#?}") };
    assert_eq!(head, "not usable");
    assert!(problem.starts_with("no driver is bound to it"), "{problem}");
    let partitions = [&["a", "b"][..], &["a"], &[]].map(|problems| Gpu {
        problems: problems.iter().map(|it| (*it).to_owned()).collect(),
        ..Gpu::default()
    });
    let card = Card { gpus: partitions.into(), ..Card::default() };
    let of = |count| format!("{count} of 3 partitions not usable");
    assert_eq!(card.problems(), [(of(2), "a"), (of(1), "b")]);
    // The sandbox of the exporter has no nodes.
    let no_nodes = snapshot(&Laid::out(&Machine::instinct_with_readings(1, 8).remove("/dev")));
    assert_eq!(no_nodes.cards[0].problems(), []);
}

#[test]
fn a_machine_whose_devices_cannot_be_listed_is_not_one_without_gpus() {
    let none = snapshot(&Laid::out(&captures::a380()));
    assert_eq!((none.may_lack_cards(), none.no_card()), (false, "No AMD GPU was found."));
    let unseen = snapshot(&Laid::out(&captures::a380().remove("/sys/bus")));
    assert_eq!((unseen.may_lack_cards(), unseen.cards.len()), (true, 0));
    assert_eq!(unseen.no_card(), "Which GPUs this machine has is not known.");
    let [why] = &unseen.unknown()[..] else { panic!("{unseen:#?}") };
    assert!(why.starts_with("no PCI device can be seen: ") && why.contains("/sys/bus/pci/devices"), "{why}");
}

#[test]
fn each_reading_of_a_card_is_one_metric() {
    let readings = ALL.iter().filter(|metric| metric.values.is_some()).map(|metric| metric.name);
    assert_eq!(readings.collect::<Vec<_>>(), series::ALL.map(|series| series.name));
}
