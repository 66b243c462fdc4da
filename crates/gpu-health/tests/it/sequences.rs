//! Whole sequences of the kernel's lines, as the drivers of three releases log them: through the known messages to the state,
//! the score and whether the GPU hangs, at several times.

use gpu_health::judge::Judge;
use gpu_health::known::{Event, Known, Log};
use inventory::health::State;
use inventory::snapshot::Card;
use kernel_log::knowledge::Knowledge;

use crate::{BUILT_IN, NOW, address, card};

const STATES: [(State, &str); 4] = [
    (State::Healthy, "healthy"),
    (State::Degraded, "degraded"),
    (State::Unhealthy, "unhealthy"),
    (State::Unknown, "unknown"),
];

fn logged(lines: &[(u64, String)]) -> Vec<Event> {
    let knowledge = Knowledge::built_in().unwrap();
    let events = lines.iter().filter_map(|(after, line)| {
        let found = knowledge.find_any(line.as_bytes())?;
        Some(Event {
            at: NOW + after,
            class: found.message.class,
            severity: found.message.severity,
            gpu: found.device,
            message: found.message.id.clone(),
            ring: found.values.into_iter().find(|(name, _)| *name == "ring").map(|(_, ring)| ring),
            ends: found.message.ends.clone(),
            line: line.clone(),
        })
    });
    events.collect()
}

/// `unhealthy 14, yes`: the state, the score and whether it hangs.
fn judged(cards: &[Card], lines: &[(u64, String)], after: u64) -> String {
    let so_far: Vec<_> = lines.iter().filter(|(at, _)| *at <= after).cloned().collect();
    let events = logged(&so_far);
    let log = Ok(Log { events: &events, is_whole: true });
    let known = Known { now: NOW + after, cards, log, last: None };
    let health = Judge::default().judge(&BUILT_IN, known);
    let gpus = health.gpus.iter().map(|gpu| {
        let (_, state) = STATES.into_iter().find(|(state, _)| *state == gpu.state).unwrap();
        let hang = gpu.hang.map_or("unknown", |hang| if hang { "yes" } else { "no" });
        format!("{state} {}, {hang}", gpu.score.unwrap())
    });
    gpus.collect::<Vec<_>>().join("; ")
}

fn another() -> Card {
    Card { pci: Some(address("0000:43:00.0")), bridges: vec![address("0000:40:01.1")], ..card(Vec::new()) }
}

/// `G ` begins a line of the card at 0000:03:00.0, `O ` one of the other, `P ` one of the bridge above the first.
fn lines(text: &[(u64, &str)]) -> Vec<(u64, String)> {
    let written = |line: &str| match line.split_at(2) {
        ("G ", rest) => format!("amdgpu 0000:03:00.0: amdgpu: {rest}"),
        ("O ", rest) => format!("amdgpu 0000:43:00.0: amdgpu: {rest}"),
        ("P ", rest) => format!("pcieport 0000:00:01.1: {rest}"),
        _ => line.to_owned(),
    };
    text.iter().map(|(after, line)| (*after, written(line))).collect()
}

/// A name, lines with their seconds, and what is judged at which second.
type Sequence<'s> = (&'s str, &'s [(u64, &'s str)], &'s [(u64, &'s str)]);

const OLD_TIMEOUT: &str =
    "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=2219, emitted seq=2221";
const TIMEOUT: &str = "G ring gfx_0.0.0 timeout, signaled seq=2219, emitted seq=2221";
const FATAL: &str = "P PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Receiver ID)";

const OF_ONE_CARD: &[Sequence<'_>] = &[
    (
        "6.1: a hang, recovered",
        &[
            (0, OLD_TIMEOUT),
            (
                0,
                "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process a pid 7 thread a:cs0 pid 8",
            ),
            (1, "G GPU reset begin!"),
            (2, "G BACO reset"),
            (3, "G GPU reset succeeded, trying to resume"),
            (3, "[drm] VRAM is lost due to GPU reset!"),
            (5, "G GPU reset(2) succeeded!"),
            (6, "[drm:amdgpu_cs_ioctl [amdgpu]] *ERROR* Failed to initialize parser -125!"),
        ],
        &[
            (0, "unhealthy 40, yes"),
            (4, "unhealthy 40, yes"),
            (6, "degraded 85, no"),
            (3700, "healthy 100, no"),
        ],
    ),
    (
        "6.1: a reset that failed, and programs that complain",
        &[
            (0, OLD_TIMEOUT),
            (1, "G GPU reset begin!"),
            (3, "G GPU reset succeeded, trying to resume"),
            (
                4,
                "[drm:amdgpu_device_ip_resume_phase2 [amdgpu]] *ERROR* resume of IP block <gfx_v10_0> failed -110",
            ),
            (5, "G GPU reset(2) failed"),
            (5, "G GPU reset end with ret = -110"),
            (6, "[drm:amdgpu_cs_ioctl [amdgpu]] *ERROR* Failed to initialize parser -125!"),
            (7, "[drm] VRAM is lost due to GPU reset!"),
        ],
        &[(4, "unhealthy 0, yes"), (9, "unhealthy 0, yes"), (90_000, "unhealthy 0, yes")],
    ),
    (
        "a failed reset, and then the driver loaded anew",
        &[
            (0, TIMEOUT),
            (1, "G GPU reset begin!"),
            (5, "G GPU reset(2) failed"),
            (800, "[drm] Initialized amdgpu 3.61.0 for 0000:03:00.0 on minor 0"),
        ],
        &[(700, "unhealthy 0, yes"), (800, "degraded 85, no"), (3700, "healthy 100, no")],
    ),
    (
        "a wrong parameter, and then a good one",
        &[
            (0, "amdgpu: `x' invalid for parameter `gpu_recovery'"),
            (60, "amdgpu 0000:03:00.0: [drm] Initialized amdgpu 3.64.0 for 0000:03:00.0 on minor 1"),
        ],
        &[(30, "unhealthy 0, no"), (60, "healthy 100, no")],
    ),
    (
        "a reset without a result",
        &[(0, "G GPU reset begin!")],
        &[(5, "unhealthy 40, yes"), (90_000, "unhealthy 40, yes")],
    ),
    (
        "a reset of the hardware before the machine sleeps",
        &[(0, "G MODE1 reset"), (0, "G GPU mode1 reset")],
        &[(5, "healthy 100, no")],
    ),
    (
        "6.12: a ring that the driver reset without a word",
        &[(0, TIMEOUT), (0, "G  Process python pid 7 thread python pid 7")],
        &[
            (5, "unhealthy 40, yes"),
            (600, "unhealthy 40, yes"),
            (601, "degraded 85, unknown"),
            (4000, "degraded 89, unknown"),
        ],
    ),
    (
        "6.12: queues that did not stop, and a reset of the queue",
        &[
            (0, "G The cp might be in an unrecoverable state due to an unsuccessful queues preemption"),
            (0, "G queue id 0x2 at pasid 0x8003 is reset"),
        ],
        &[(0, "degraded 85, no"), (3700, "healthy 100, no")],
    ),
    (
        "6.12: one hang of compute in ten lines, and a reset of the GPU",
        &[
            (0, "G Queue preemption failed for queue with doorbell_id: 80004008"),
            (0, "G MES failed to respond to msg=REMOVE_QUEUE"),
            (0, "G failed to remove hardware queue from MES, doorbell=0x1800"),
            (0, "G MES might be in unrecoverable state, issue a GPU reset"),
            (0, "G Failed to evict queue 3"),
            (0, "G Failed to evict process queues"),
            (0, "G MES failed to respond to msg=REMOVE_QUEUE"),
            (0, "G failed to remove hardware queue from MES, doorbell=0x1802"),
            (0, "G Failed to evict queue 4"),
            (0, "G Failed to evict process queues"),
            (1, "G GPU reset begin!"),
            (4, "G GPU reset(1) succeeded!"),
        ],
        &[(2, "unhealthy 40, yes"), (4, "degraded 85, no")],
    ),
    (
        "sid: a ring that the driver reset, while another hangs",
        &[
            (0, TIMEOUT),
            (0, "G ring sdma0 timeout, signaled seq=5, emitted seq=7"),
            (1, "G Starting sdma0 ring reset"),
            (1, "G Ring sdma0 reset succeeded"),
            (2, "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, but soft recovered"),
            (9, "G Ring gfx_0.0.0 reset succeeded"),
        ],
        &[(3, "unhealthy 40, yes"), (9, "degraded 85, no")],
    ),
    (
        "sid: a ring reset that failed, and a reset of the GPU",
        &[
            (0, TIMEOUT),
            (1, "G Ring gfx_0.0.0 reset failed"),
            (1, "G GPU reset begin!. Source:  1"),
            (5, "G GPU reset(1) succeeded!"),
        ],
        &[(1, "unhealthy 40, yes"), (5, "degraded 85, no")],
    ),
    (
        "AER: a corrected error, and one that is not fatal",
        &[
            (0, "P PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)"),
            (
                1,
                "P PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, (Receiver ID)",
            ),
            (1, "[drm] PCI error: detected callback, state(1)!!"),
            (1, "[drm] PCI error: mmio enabled callback!!"),
            (2, "[drm] PCI error: resume callback!!"),
            (2, "P AER: device recovery successful"),
        ],
        &[(1, "healthy 100, no"), (2, "healthy 100, no")],
    ),
    (
        "AER: a fatal error, recovered",
        &[
            (0, FATAL),
            (0, "[drm] PCI error: detected callback, state(2)!!"),
            (1, "[drm] PCI error: slot reset callback!!"),
            (3, "[drm] PCI error: resume callback!!"),
            (3, "P AER: device recovery successful"),
        ],
        &[(1, "unhealthy 40, no"), (3, "degraded 85, no"), (90_000, "healthy 100, no")],
    ),
    (
        "AER: a fatal error without recovery",
        &[
            (0, FATAL),
            (0, "[drm] PCI error: detected callback, state(3)!!"),
            (1, "P AER: device recovery failed"),
        ],
        &[(1, "unhealthy 40, no"), (86_000, "unhealthy 40, no")],
    ),
    (
        "a reset of the GPU does not mend its memory",
        &[
            (0, "amdgpu 0000:03:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!"),
            (1, "G GPU reset begin!"),
            (4, "G GPU reset(1) succeeded!"),
        ],
        &[(2, "unhealthy 0, yes"), (4, "unhealthy 40, no"), (90_000, "healthy 100, no")],
    ),
    (
        "the firmware reports an error of some device",
        &[
            (0, "{1}[Hardware Error]:   section_type: PCIe error"),
            (0, "{1}[Hardware Error]:   aer_uncor_status: 0x00004000, aer_uncor_mask: 0x00000000"),
        ],
        &[(1, "healthy 100, no")],
    ),
];

const OF_TWO_CARDS: &[Sequence<'_>] = &[
    (
        "6.1: a hang names no GPU, its reset does",
        &[(0, OLD_TIMEOUT), (1, "O GPU reset begin!"), (5, "O GPU reset(1) succeeded!")],
        &[
            (0, "healthy 100, unknown; healthy 100, unknown"),
            (1, "healthy 100, unknown; unhealthy 40, yes"),
            (5, "healthy 100, no; healthy 100, no"),
        ],
    ),
    (
        "a recovery of the other GPU",
        &[(0, TIMEOUT), (1, "O GPU reset begin!"), (5, "O GPU reset(1) succeeded!")],
        &[(5, "unhealthy 40, yes; healthy 100, no")],
    ),
];

#[test]
fn a_sequence_of_real_lines_is_judged_at_each_of_its_times() {
    let [one, two] = [vec![card(Vec::new())], vec![card(Vec::new()), another()]];
    let all = OF_ONE_CARD.iter().map(|it| (&one, it)).chain(OF_TWO_CARDS.iter().map(|it| (&two, it)));
    for (cards, (name, text, expected)) in all {
        let lines = lines(text);
        for (after, expected) in *expected {
            assert_eq!(judged(cards, &lines, *after), *expected, "{name}, after {after} s");
        }
    }
}

#[test]
fn a_flood_of_lesser_messages_beside_a_hang_ends_nothing() {
    let mut text = vec![(0, TIMEOUT)];
    text.extend(vec![(1, "G Timeout waiting for VM flush hub: 0!"); 200]);
    text.extend(vec![(1, "P PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)"); 5]);
    assert_eq!(judged(&[card(Vec::new())], &lines(&text), 2), "unhealthy 40, yes");
}
