//! docs/top.svg, the README's picture: what top shows of the demo's machine. **Its readings and its processes are
//! invented**, so that the picture is the same each time. `cargo xtask picture` writes it.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use inventory::PciAddress;
use inventory::published::Published;
use inventory::readings::{MemoryPool, Temperature};
use inventory::snapshot::{GpuId, Owner, Process, Snapshot};
use layout::{JUDGED_AT, Machine};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use support::laid::Laid;
use ui::top::reader::Scrape;
use ui::top::{Event, State, view};

use super::{press, reading};

const COLUMNS: u16 = 96;
const LINES: u16 = 21;
const GIB: f64 = 1_073_741_824.0;

/// How far the invented load has risen at each reading, from 0 to 1.
const LOAD: [f64; 12] = [0.1, 0.15, 0.4, 0.7, 0.8, 0.75, 0.5, 0.6, 0.8, 0.9, 0.95, 0.9];

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size of memory")]
fn bytes(gib: f64) -> u64 {
    (gib * GIB) as u64
}

/// What its cards do under this load.
fn invented(mut snapshot: Snapshot, load: f64) -> Snapshot {
    for (card, (celsius, watts, limit, memory)) in
        snapshot.cards.iter_mut().zip([(38.0, 30.0, 295.0, 48.0), (40.0, 140.0, 750.0, 192.0)])
    {
        let temperature = |sensor: &str, celsius| Temperature {
            sensor: sensor.to_owned(),
            celsius: Some(celsius),
            critical_celsius: None,
            emergency_celsius: None,
        };
        let used = memory * (0.2 + 0.5 * load);
        let vram = MemoryPool {
            pool: "vram".into(),
            used_bytes: Some(bytes(used)),
            total_bytes: Some(bytes(memory)),
        };
        card.readings.is_apu = Some(false);
        card.readings.temperatures =
            vec![temperature("junction", celsius + 45.0 * load), temperature("mem", 52.0)];
        card.readings.power.watts = Some(watts + (limit - watts) * load);
        card.readings.power.cap_watts = Some(limit);
        card.readings.busy_percent = Some((100.0 * load).round());
        card.readings.memory = vec![vram];
        for (busy, gpu) in (0_u32..).zip(&mut card.gpus) {
            if let Some(part) = &mut gpu.part {
                part.readings.busy_percent = Some(f64::from(99 - 7 * busy) * load);
            }
            gpu.compute_processes = Some(0);
        }
    }
    let process =
        |pid, name: &str, index, gib: f64, units, pod: Option<&str>, container: Option<&str>| Process {
            pid,
            name: Some(name.to_owned()),
            gpu: GpuId { index: Some(index), ..GpuId::default() },
            owner: Owner {
                namespace: pod.map(|_| "team-a".to_owned()),
                pod: pod.map(str::to_owned),
                container: container.map(str::to_owned),
                unit: None,
            },
            vram_bytes: Some(bytes(gib)),
            compute_units: Some(units),
            queues: None,
        };
    let mut ollama = process(2817, "ollama", 0, 31.5, 96, None, None);
    ollama.owner.unit = Some("ollama.service".to_owned());
    snapshot.processes = vec![
        process(4711, "python3", 1, 22.4, 38, Some("train-0"), None),
        process(4802, "python3", 2, 21.9, 38, Some("train-1"), None),
        process(5150, "vllm", 3, 18.2, 31, None, Some("build-1042")),
        ollama,
    ];
    snapshot.daemon = Some(Published { written_at: JUDGED_AT, ..Published::default() });
    snapshot
}

fn state() -> State {
    let laid = Laid::out(&Machine::demo());
    laid.put("run/rocworker/health.json", &healthy(&reading(&laid).snapshot));
    laid.put("etc/hostname", "gpu-worker-1\n");
    let first = reading(&laid);
    let mut state = State::new(Duration::from_secs(1), false);
    for load in LOAD {
        let snapshot = invented(first.snapshot.clone(), load);
        state.on(Event::Read(Box::new(Ok(Scrape { snapshot, ..first.clone() }))));
    }
    press(&mut state, "jjj");
    state
}

/// health.json of these cards, all of them well.
fn healthy(snapshot: &Snapshot) -> String {
    let gpu = |pci: PciAddress| {
        serde_json::json!({"pci": pci, "state": "healthy", "score": 100, "hang": false, "deductions": [],
            "unknown": [], "quarantine": null, "leftover": null})
    };
    let gpus: Vec<_> = snapshot.cards.iter().filter_map(|card| card.pci).map(gpu).collect();
    serde_json::json!({"schema_version": 1, "written_at": JUDGED_AT, "gpus": gpus, "unknown": []}).to_string()
}

/// The screen with its colours, as a terminal gets it.
fn coloured(state: &State) -> String {
    let mut terminal = Terminal::new(TestBackend::new(COLUMNS, LINES)).unwrap();
    terminal.draw(|frame| view(state, frame)).unwrap();
    let cells = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..LINES {
        let mut last = Style::new();
        for x in 0..COLUMNS {
            let cell = &cells[(x, y)];
            let style = style(cell.fg, cell.modifier);
            if style != last {
                write!(text, "{last:#}{style}").unwrap();
                last = style;
            }
            text.push_str(cell.symbol());
        }
        write!(text, "{last:#}").unwrap();
        text.push('\n');
    }
    text
}

fn style(color: Color, modifier: Modifier) -> Style {
    let color = match color {
        Color::Green => Some(AnsiColor::Green),
        Color::Yellow => Some(AnsiColor::Yellow),
        Color::Red => Some(AnsiColor::Red),
        Color::Reset => None,
        other => panic!("the picture has no {other}"),
    };
    let mut style = Style::new().fg_color(color.map(Into::into));
    for (its, effect) in [
        (Modifier::BOLD, Style::bold as fn(Style) -> Style),
        (Modifier::DIM, Style::dimmed),
        (Modifier::REVERSED, Style::invert),
    ] {
        if modifier.contains(its) {
            style = effect(style);
        }
    }
    style
}

#[test]
fn the_picture_in_the_readme_is_what_top_shows_now() {
    let text = coloured(&state());
    let drawn = anstyle_svg::Term::new().min_width_px(usize::from(COLUMNS) * 8).render_svg(&text);
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/top.svg");
    if std::env::var_os("ROCWORKER_PICTURE").is_some() {
        std::fs::write(&place, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(kept == drawn, "docs/top.svg is stale: run `cargo xtask picture`, which draws\n{text}");
}
