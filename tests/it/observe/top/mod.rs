//! `rocworker top`: its screens as golden files, its keys, and the program in a real terminal.

mod keys;
mod once;
mod picture;
mod real_terminal;
mod screens;

use layout::{JUDGED_AT, Machine, health};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use root::Root;
use support::laid::Laid;
use telemetry::exporter::Exporter;
use ui::top::keys::Key;
use ui::top::reader::Scrape;
use ui::top::{Event, State, view};
use unicode_width::UnicodeWidthStr as _;

/// The id of a container, as the kernel's cgroups name it.
const CONTAINER: &str = "605439acbd4fb18c145069289094b17f17e0cfa938f78012d4960bc797305f22";

/// Eight Instincts that the daemon judges, with invented processes on three of them.
fn eight() -> Laid {
    let laid = Laid::out(&Machine::instinct_with_readings(8, 1));
    laid.put("run/rocworker/health.json", &health(8, true, JUDGED_AT));
    laid.put("etc/rocworker/wrapper.json", r#"{"schema_version":1,"requests":"all","quarantine":true}"#);
    laid.put("etc/hostname", "gpu-host-1\n");
    use_gpus(&laid);
    laid
}

/// A process's number, name and cgroup, the GPU that it uses, its VRAM in GiB and its compute units.
type Uses<'a> = (u32, &'a str, &'a str, usize, u64, Option<u32>);

fn use_gpus(laid: &Laid) {
    let container = format!("0::/system.slice/docker-{CONTAINER}.scope\n");
    let uses: [Uses<'_>; 4] = [
        (4711, "python3", &container, 0, 96, Some(304)),
        (4711, "python3", &container, 1, 64, Some(152)),
        (5150, "ollama", "0::/system.slice/ollama.service\n", 2, 12, Some(0)),
        (6006, "evil\u{1b}[31mname", "0::/user.slice/user-1000.slice/session-3.scope\n", 2, 1, None),
    ];
    uses.iter().for_each(|it| use_gpu(laid, it));
}

fn use_gpu(laid: &Laid, (pid, name, cgroup, gpu, gib, units): &Uses<'_>) {
    let root = Root::open(laid.top()).unwrap();
    let inventory = amdgpu::read(&root);
    let index = u32::try_from(*gpu).unwrap();
    let node = inventory.gpus.iter().find(|it| it.index == Some(index)).unwrap().kfd_node.unwrap();
    let id = amdgpu::processes::gpu_id(&root, node, &mut Vec::new()).unwrap();
    laid.put(&format!("proc/{pid}/comm"), &format!("{name}\n"));
    laid.put(&format!("proc/{pid}/cgroup"), cgroup);
    let kfd = format!("sys/class/kfd/kfd/proc/{pid}");
    laid.put(&format!("{kfd}/vram_{id}"), &format!("{}\n", gib << 30));
    if let Some(units) = units {
        laid.put(&format!("{kfd}/stats_{id}/cu_occupancy"), &format!("{units}\n"));
    }
}

fn reading(laid: &Laid) -> Scrape {
    let root = Root::open(laid.top()).unwrap();
    let now = telemetry::sample::count(JUDGED_AT);
    let mut snapshot = Exporter::default().scrape(&root, now);
    // A test's folder has another name each time.
    let top = laid.top().to_str().unwrap();
    for sentence in snapshot.gaps.iter_mut().chain(&mut snapshot.unjudged) {
        *sentence = sentence.replace(top, "");
    }
    for fault in &mut snapshot.faults {
        fault.reason = fault.reason.clone().within(|reason| reason.replace(top, ""));
    }
    Scrape { snapshot, host: host::hostname(&root), stuck: 0 }
}

/// What top shows of a machine after one reading.
fn state(laid: &Laid) -> State {
    let mut state = State::new(std::time::Duration::from_secs(1), true);
    state.on(Event::Read(Box::new(Ok(reading(laid)))));
    state
}

fn press(state: &mut State, keys: &str) {
    for c in keys.chars() {
        state.on(Event::Key(Key::Character(c)));
    }
}

fn screen(state: &State, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| view(state, frame)).unwrap();
    let cells = terminal.backend().buffer();
    let line = |y| {
        let mut text = String::new();
        let mut x = 0;
        while x < columns {
            let symbol = cells[(x, y)].symbol();
            text += symbol;
            // A wide character has the next cell too.
            x += u16::try_from(symbol.width().max(1)).unwrap();
        }
        text.trim_end().to_owned() + "\n"
    };
    (0..lines).map(line).collect()
}
