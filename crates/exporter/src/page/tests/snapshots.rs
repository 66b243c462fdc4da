//! Machines as a scrape finds them. **All is invented.**

use inventory::Identity;
use inventory::PciAddress;
use inventory::health::{Deduction, GpuHealth, Quarantine, State};
use inventory::published::{Change, Drift, DriftState, DriftingPath, Lease, Published};
use inventory::readings::{CardReadings, MemoryPool, PartitionReadings, Power, Temperature};
use inventory::snapshot::{Card, Gpu, GpuId, Owner, Part, Process, Snapshot};

const GIB: u64 = 1 << 30;
pub(super) const TAKEN_AT: u32 = 1_795_246_620;
pub(super) const CONTAINER: &str = "605439acbd4fb18c145069289094b17f17e0cfa938f78012d4960bc797305f22";

fn at(seconds_ago: u32) -> u64 {
    u64::from(TAKEN_AT - seconds_ago)
}

/// A card in so many partitions; one is a whole card.
fn card(number: u8, partitions: u8) -> Card {
    let gpu = |partition: u8| Gpu {
        index: Some(u32::from(number * partitions + partition)),
        part: (partitions > 1).then(|| Part {
            number: Some(u32::from(partition)),
            readings: PartitionReadings {
                busy_percent: Some(f64::from(partition)),
                ..PartitionReadings::default()
            },
            memory_total_bytes: Some(192 * GIB / u64::from(partitions)),
            ..Part::default()
        }),
        compute_processes: Some(u64::from(partition % 2)),
        ..Gpu::default()
    };
    let mode = |whole: &str, several: &str| Some(if partitions > 1 { several } else { whole }.to_owned());
    let temperature = |sensor: &str, celsius| Temperature {
        sensor: sensor.to_owned(),
        celsius: Some(celsius),
        critical_celsius: None,
        emergency_celsius: None,
    };
    let vram = MemoryPool { pool: "vram".into(), used_bytes: Some(17 * GIB), total_bytes: Some(192 * GIB) };
    Card {
        pci: PciAddress::parse(&format!("0000:{number:02x}:00.0")),
        driver: Some("amdgpu".to_owned()),
        bridges: Vec::new(),
        identity: Identity {
            product: Some("AMD Instinct MI300X OAM".to_owned()),
            gfx: Some("gfx942".to_owned()),
            compute_partition: mode("SPX", "CPX"),
            memory_partition: mode("NPS1", "NPS1"),
            ..Identity::default()
        },
        readings: CardReadings {
            power_state: Some("active".to_owned()),
            is_apu: Some(false),
            temperatures: vec![temperature("junction", 51.0), temperature("mem", 41.4)],
            power: Power { watts: Some(431.0), cap_watts: Some(740.0), ..Power::default() },
            memory: vec![vram],
            busy_percent: Some(61.2),
            ..CardReadings::default()
        },
        gpus: (0..partitions).map(gpu).collect(),
        health: Some(health(number, State::Healthy, Some(100))),
        traffic: None,
    }
}

fn health(number: u8, state: State, score: Option<u8>) -> GpuHealth {
    GpuHealth {
        pci: PciAddress::parse(&format!("0000:{number:02x}:00.0")).unwrap(),
        state,
        score,
        hang: Some(false),
        deductions: Vec::new(),
        unknown: Vec::new(),
        quarantine: None,
        leftover: None,
    }
}

fn process(pid: u32, name: &str, gpu: u32) -> Process {
    Process {
        pid,
        name: Some(name.to_owned()),
        gpu: GpuId { index: Some(gpu), ..GpuId::default() },
        vram_bytes: Some(3 * GIB),
        ..Process::default()
    }
}

/// `pod`: its namespace and name.
fn owner(pod: Option<(&str, &str)>, has_container: bool, unit: Option<&str>) -> Owner {
    Owner {
        container: has_container.then(|| CONTAINER.to_owned()),
        namespace: pod.map(|(namespace, _)| namespace.to_owned()),
        pod: pod.map(|(_, name)| name.to_owned()),
        unit: unit.map(str::to_owned),
    }
}

/// The publication of a daemon without leases, drift or changes.
fn in_sync() -> Published {
    let (leases, changes) = (Some(Vec::new()), Some(Vec::new()));
    Published { leases, changes, config_in_force: Some(true), problems: Some(0), ..Published::default() }
}

/// Eight whole cards, all well.
pub(super) fn eight() -> Snapshot {
    Snapshot {
        taken_at: f64::from(TAKEN_AT),
        cards: (0..8).map(|number| card(number, 1)).collect(),
        processes: vec![
            Process { owner: owner(None, true, None), ..process(71, "python3", 1) },
            Process { owner: owner(Some(("ml", "train-0")), true, None), ..process(72, "train", 2) },
            Process { owner: owner(Some(("ml", "train-1")), false, None), ..process(73, "train", 3) },
            Process { owner: owner(None, false, Some("vllm.service")), ..process(74, "vllm", 4) },
            Process { vram_bytes: None, ..process(75, "bash", 5) },
        ],
        daemon: Some(Published { written_at: at(2), ..in_sync() }),
        ..Snapshot::default()
    }
}

/// Eight cards of eight partitions, with more processes than the page lists.
pub(super) fn sixty_four() -> Snapshot {
    Snapshot {
        cards: (0..8).map(|number| card(number, 8)).collect(),
        processes: (0..300)
            .map(|pid| Process {
                owner: owner(Some(("machine-learning", "training-of-a-large-model-worker-0")), true, None),
                vram_bytes: (pid > 0).then(|| u64::from(pid) * GIB),
                ..process(10_000 + pid, "python3", pid % 64)
            })
            .collect(),
        ..eight()
    }
}

/// A snapshot with nothing but a time: no GPU, no daemon.
pub(super) fn nothing() -> Snapshot {
    Snapshot { taken_at: f64::from(TAKEN_AT), ..Snapshot::default() }
}

/// A card of which nothing is known, one that sleeps, and one whose partitions do not say who uses them.
pub(super) fn unknown() -> Snapshot {
    let mut asleep = card(1, 1);
    asleep.readings.power_state = Some("suspended".to_owned());
    asleep.gpus[0].lease = Some("build-8".to_owned());
    let mut silent = card(2, 2);
    for gpu in &mut silent.gpus {
        gpu.compute_processes = None;
        gpu.part.as_mut().unwrap().readings.busy_percent = None;
    }
    silent.gpus[0].problems = vec!["sysfs names no render node for it".to_owned()];
    let nameless = Card { gpus: vec![Gpu::default()], ..Card::default() };
    let daemon = Published { written_at: at(2), leases: None, changes: None, problems: None, ..in_sync() };
    Snapshot {
        cards: vec![nameless, asleep, silent],
        processes: vec![Process { pid: 9, ..Process::default() }],
        daemon: Some(daemon),
        unjudged: vec!["/sys/bus/pci/devices/0000:02:00.0/gpu_metrics does not answer since 40 s".to_owned()],
        ..nothing()
    }
}

/// A card in quarantine, one degraded, one that cannot be judged or leased; leases, drift and changes.
pub(super) fn trouble() -> Snapshot {
    let deduction = |rule: &str, points: u8, reason: &str| Deduction {
        rule: rule.to_owned(),
        points,
        reason: reason.to_owned(),
        evidence: "amdgpu 0000:00:00.0: amdgpu: ring gfx timeout".to_owned(),
    };
    let mut cards: Vec<Card> = (0..3).map(|number| card(number, 1)).collect();
    let hang = "The GPU does not finish its work.";
    cards[0].health = Some(GpuHealth {
        hang: Some(true),
        deductions: vec![deduction("hang", 90, hang)],
        quarantine: Some(Quarantine {
            since: at(3600),
            unhealthy_at: at(0),
            reason: "The GPU has hung three times.".to_owned(),
            rules: vec!["hang".to_owned()],
        }),
        ..health(0, State::Unhealthy, Some(10))
    });
    cards[1].health = Some(GpuHealth {
        deductions: vec![deduction("thermal", 15, "The firmware limits the clocks.")],
        leftover: Some("Process 812 is left on it.".to_owned()),
        ..health(1, State::Degraded, Some(85))
    });
    cards[2].health = Some(GpuHealth {
        unknown: vec!["Its readings cannot be read.".to_owned()],
        ..health(2, State::Unknown, None)
    });
    cards[2].gpus[0].lease = Some(CONTAINER.to_owned());
    let drifting = |path: &str, state, reason: &str| DriftingPath {
        path: path.to_owned(),
        state,
        reason: reason.to_owned(),
    };
    let daemon = Published {
        written_at: at(2),
        leases: Some(vec![Lease { gpu: "renderD130".to_owned(), container: CONTAINER.to_owned() }]),
        drift: Drift { differs: 60, contested: 1, blocked: 1, failed: 1, pending_restarts: 2 },
        drifting: vec![
            drifting("/etc/cdi/amd.json", DriftState::Failed, "A change failed."),
            drifting("/etc/docker/daemon.json", DriftState::Contested, "Another program changes it."),
            drifting("/etc/a", DriftState::Blocked, "rocworker cannot change it."),
            drifting("package:amdgpu-dkms", DriftState::Differs, "Only rocworker apply changes it."),
        ],
        config_in_force: Some(false),
        problems: Some(2),
        changes: Some(vec![Change {
            at: at(600),
            command: "serve".to_owned(),
            text: "Repaired /etc/cdi/amd.json.".to_owned(),
        }]),
        ..Published::default()
    };
    Snapshot { cards, quarantine_enforced: Some(true), daemon: Some(daemon), ..nothing() }
}

/// Text with which a process, a container, a file or the kernel's log could try to change the page.
pub(super) const HOSTILE: &str = "</td><script>alert(1)</script>\"'&amp;<!--\u{202e}\u{2066}\u{1b}[31m\r\n\0";

/// A snapshot whose every text is [`HOSTILE`].
pub(super) fn hostile() -> Snapshot {
    let text = || HOSTILE.to_owned();
    let mut snapshot = trouble();
    let card = &mut snapshot.cards[0];
    (card.identity.product, card.identity.gfx) = (Some(text()), Some(text()));
    (card.identity.compute_partition, card.identity.memory_partition) = (Some(text()), Some(text()));
    (card.readings.temperatures[0].sensor, card.readings.temperatures[0].celsius) = (text(), Some(f64::MAX));
    (card.gpus[0].lease, card.gpus[0].problems) = (Some(text()), vec![text()]);
    if let Some(health) = &mut card.health {
        health.unknown = vec![text()];
        health.leftover = Some(text());
        health.deductions[0].rule = text();
        health.deductions[0].reason = text();
        health.deductions[0].evidence = text();
        health.quarantine.as_mut().unwrap().reason = text();
    }
    snapshot.processes = vec![
        Process {
            name: Some(text()),
            owner: Owner { container: Some(text()), pod: Some(text()), ..Owner::default() },
            ..Process::default()
        },
        Process { owner: Owner { unit: Some(text()), ..Owner::default() }, ..Process::default() },
    ];
    let daemon = snapshot.daemon.as_mut().unwrap();
    daemon.leases = Some(vec![Lease { gpu: text(), container: text() }]);
    (daemon.drifting[0].path, daemon.drifting[0].reason) = (text(), text());
    let change = &mut daemon.changes.as_mut().unwrap()[0];
    (change.command, change.text) = (text(), text());
    snapshot.unjudged = vec![text()];
    snapshot
}
