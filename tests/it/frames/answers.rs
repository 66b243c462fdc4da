//! What commands answer about a Root.

use std::path::Path;
use std::time::UNIX_EPOCH;

use config::Config;
use explain::here::Here;
use fleet::frames::RemoteFiles;
use fleet::script::{Further, MOST_CONNECTIONS, Wanted};
use host::facts::Facts;
use host::timestamp::Timestamp;
use kernel_log::kmsg::Kmsg;
use layout::JUDGED_AT;
use rocworker::detection::Detection;
use rocworker::doctor;
use rocworker::health::{Observer, rules};
use root::files::{Content, Entry};
use root::{CAPTURE_FILE, Recording, Root};
use telemetry::daemon_file;
use telemetry::exporter::Exporter;
use telemetry::samples::samples;

use crate::frames::shells::Shell;

/// The commands that a shell reads for.
pub(crate) const COMMANDS: [Wanted; 5] =
    [Wanted::Machine, Wanted::Readings, Wanted::Health, Wanted::Doctor, Wanted::Journal];

/// What a command says of a machine, without what differs from one run to the next. `named`: how its errors name the
/// machine's folder.
pub(crate) fn answer(root: &Root, wanted: Wanted, named: &Path) -> String {
    let text = match wanted {
        Wanted::Machine => serde_json::to_string_pretty(&Detection::new(&Facts::read(root))).unwrap(),
        // What journalctl prints is the same there and here: advice is what differs by machine.
        Wanted::Journal => {
            let journals = ["/run/log/journal", "/var/log/journal"];
            let kept = journals.map(|folder| root.list(folder).is_ok_and(|machines| !machines.is_empty()));
            format!("{:#?}\n{kept:?}", Here::read(root))
        }
        Wanted::Readings => {
            let snapshot = Exporter::default().scrape(root, 1_764_000_000.0);
            let mut samples = samples(&snapshot);
            samples.retain(|sample| sample.metric.name != telemetry::metrics::SCRAPE_DURATION.name);
            format!("{samples:#?}\n{:#?}", snapshot.faults)
        }
        Wanted::Health => {
            let inventory = amdgpu::read(root);
            let cards = inventory.cards();
            let read: Vec<_> = cards.iter().map(|card| amdgpu::snapshot::card(root, card)).collect();
            let last = daemon_file::last::<inventory::health::Health>(root);
            let log = Kmsg::open(root).and_then(|mut log| log.read()).map(|read| read.records.len());
            let judged = Observer::new(root).judge(root, &rules::in_force(root).0, None, JUDGED_AT).health;
            let rules = rules::of_machine(root);
            // Read for the clock of the kernel's messages, where there are some.
            let uptime = root.read_text("/proc/uptime", 4096).is_ok();
            let policy =
                root.read_trusted("/etc/rocworker/wrapper.json", 1 << 20).map_err(|error| error.to_string());
            format!("{read:#?}\n{last:#?}\n{log:?}\n{rules:?}\n{policy:?}\n{judged:#?} {uptime}")
        }
        Wanted::Doctor => {
            let config = Config::read(root).unwrap();
            let diagnosis =
                doctor::examine(root, &config, &Facts::read(root), None, None, Timestamp::of(UNIX_EPOCH));
            serde_json::to_string_pretty(&diagnosis).unwrap()
        }
    };
    text.replace(&format!("{}/", named.display()), "/")
}

/// What a shell reads in as many connections as the command makes. What is still missing is in the Root's record.
#[track_caller]
pub(crate) fn whole(shell: &Shell, folder: &Path, wanted: Wanted) -> Root {
    let mut further = Further::default();
    let mut connections = 0;
    loop {
        let reading = with_nodes(shell.read_further(folder, wanted, &further), folder);
        let root = Root::of_files(reading.files);
        connections += 1;
        answer(&root, wanted, folder);
        let mut lacking = root.not_read();
        lacking.remove(Path::new(CAPTURE_FILE));
        let most = if matches!(wanted, Wanted::Doctor | Wanted::Readings) { MOST_CONNECTIONS } else { 1 };
        if connections == most || !further.add(lacking) {
            return root;
        }
        further.asleep = reading.asleep;
    }
}

/// What was read, with the device nodes that a laid-out machine has recorded: an ordinary user makes none.
pub(crate) fn with_nodes(mut reading: RemoteFiles, folder: &Path) -> RemoteFiles {
    let Ok(text) = std::fs::read_to_string(folder.join(CAPTURE_FILE.trim_start_matches('/'))) else {
        return reading;
    };
    let recording: Recording = serde_json::from_str(&text).unwrap();
    let root = Root::open(folder).unwrap();
    for node in recording.nodes {
        let meta = Some(root.stat(&node.path).unwrap());
        reading.files.entries.insert(node.path, Entry { meta, content: Content::Node });
    }
    reading
}
