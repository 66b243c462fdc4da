//! `report`: a bug report that is a test. One archive whose folder is a Root: what `detect` said on the machine
//! it says again on the folder, on any machine.
//!
//! rocworker asks a machine what its commands ask, and the archive carries what they read: of the GPUs' files all, of every
//! other file the listed keys with typed values (`keep`). docs/doctor.md says what stays in.

mod archive;
mod collect;
mod keep;
mod messages;
mod save;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::host::facts::Facts;
use ::host::hostname;
use ::host::timestamp::Timestamp;
use config::Config;
use inventory::health::Health;
use inventory::published::Published;
use kernel_log::kept;
use kernel_log::knowledge::Knowledge;
use reconcile::Digest;
use reconcile::command::Programs;
use root::{CAPTURE_FILE, Recording, Root};
use serde::Serialize;
use serde_json::{Value, json};
use telemetry::daemon_file;
use telemetry::exporter::Exporter;

pub use collect::LeftOut;
pub use save::new_file;

use crate::doctor::examine;
use crate::run::{Own, Run, without_restarts};
use crate::status::Status;
use collect::{Collector, Entry};
use keep::Filter;

const LIMIT: Duration = Duration::from_secs(10);

/// The programs whose versions a report has, beside those of the engines.
const ASKED: [&str; 4] = ["runc", "crun", "rocm-smi", "amd-smi"];

/// The kernel's lines in the journal, and where there is no journal in the kernel's own buffer.
const LOGS: [&[&str]; 2] =
    [&["journalctl", "-k", "-o", "short-iso", "-n", "2000", "--no-pager", "--no-hostname", "-q"], &["dmesg"]];

const CONFIG: usize = 1 << 20;

/// The last lines that fit.
const LOG: usize = 64 << 10;

/// The most bytes that are read of a captured machine's log.
const LOGGED: usize = 16 << 20;

/// A report, packed.
#[derive(Debug)]
pub struct Report {
    /// The archive: tar, compressed by gzip.
    pub bytes: Vec<u8>,
    pub entries: usize,
    /// What is there and not in it, or not whole.
    pub left_out: Vec<LeftOut>,
    /// File to number of keys, words and lines of it that a report does not keep.
    pub removed: BTreeMap<String, usize>,
    /// Every path that rocworker asked the machine for, for a test that plants secrets there.
    pub asked: BTreeSet<PathBuf>,
}

/// Takes a report of the machine beneath `root`. `config`: the configuration, or what is wrong with it, which is itself
/// worth a report. `programs`: `None` beneath another Root than `/`.
///
/// # Errors
/// Only when the archive cannot be packed, or the Root not opened again; the report lists what cannot be read.
pub fn take(
    root: &Root,
    config: Result<&Config, String>,
    programs: Option<&Programs>,
    moment: Timestamp,
) -> io::Result<Report> {
    let root = root.place().open().map_err(io::Error::other)?.keeping_reads();
    let root = &root;
    root.read_trusted(config::PATH, CONFIG).ok();
    // A node that belongs to no GPU can be the trace of one.
    for name in root.list("/dev/dri").unwrap_or_default() {
        root.stat(Path::new("/dev/dri").join(name)).ok();
    }
    let facts = Facts::read(root);
    let topology = amdgpu::topology(root, &facts.inventory);
    Exporter::default().scrape(root, 0.0);
    daemon_file::last::<Health>(root).ok();
    daemon_file::last::<Published>(root).ok();
    let versions = versions(root, programs);
    let answers = answers(root, &facts, config, programs, moment);

    let mut collector = Collector::new(root);
    collector.reads(&facts.inventory, &topology);
    collector.put("/versions.json".into(), Entry::File(text(&versions)?));
    for (name, answer) in answers {
        let kept = Filter::default().value(answer);
        collector.put(format!("/{name}.json").into(), Entry::File(text(&kept)?));
    }
    kernel_log(&mut collector, programs);

    let left_out = collector.notes();
    let Collector { mut entries, nodes, removed, .. } = collector;
    let mut recording = Recording::new(nodes);
    recording.taken_at = Some(root.taken_at().unwrap_or(moment.seconds()));
    recording.about = BTreeMap::from([
        ("taken_on".to_owned(), Value::from(moment.to_string())),
        ("rocworker".to_owned(), Value::from(env!("CARGO_PKG_VERSION"))),
        ("left_out".to_owned(), json!(left_out)),
        ("removed".to_owned(), json!(removed)),
    ]);
    entries.insert(CAPTURE_FILE.into(), Entry::File(text(&recording)?));
    // The machine's name is in the file's name, which its owner sees and can change, not in the archive. The digest keeps
    // the folders of several machines apart.
    let content: Vec<u8> = entries.values().filter_map(Entry::bytes).flatten().copied().collect();
    let digest = Digest::of(&content).as_str().chars().take(6).collect::<String>();
    let bytes = archive::pack(&format!("rocworker-report-{}-{digest}", moment.compact()), moment, &entries)?;
    let asked = root.reads().into_keys().collect();
    Ok(Report { bytes, entries: entries.len(), left_out, removed, asked })
}

/// The default name of the file, with the machine's name if that is known.
#[must_use]
pub fn default_name(root: &Root, moment: Timestamp) -> PathBuf {
    let host = hostname(root).unwrap_or_else(|| "machine".to_owned());
    PathBuf::from(format!("rocworker-report-{host}-{}.tar.gz", moment.compact()))
}

fn text(answer: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(format!("{:#}\n", serde_json::to_value(answer)?).into_bytes())
}

/// What doctor, plan and status say, by the names of their files; of an answer that failed the error.
fn answers(
    root: &Root,
    facts: &Facts,
    config: Result<&Config, String>,
    programs: Option<&Programs>,
    now: Timestamp,
) -> [(&'static str, Value); 3] {
    let beneath = root.shown("/").display().to_string();
    // Of an error the file that it is about, and its line.
    let or_error = |answer: Result<Value, String>| {
        answer.unwrap_or_else(|error| {
            let error = error.replace(&beneath, "/");
            json!({ "schema_version": 1, "error": error.split_whitespace().find(|word| keep::is_path(word)) })
        })
    };
    // A wrong configuration decides nothing, and the files of engines are read all the same.
    let wrong = config.as_ref().err().cloned();
    let instead = without_restarts(root).map_err(|error| error.to_string());
    let config = config.or_else(|_| instead.as_ref().map_err(Clone::clone));
    let answers = config.map(|config| {
        let own = Own::find();
        let doctor = examine(root, config, facts, programs, own.beside.as_deref(), now);
        let run = Run { root, config, programs, own, now, caller: String::new() };
        let (plan, status) = (run.plan(None), Status::read(&run));
        [
            Ok(json!(doctor)),
            plan.map(|plan| json!(plan)).map_err(|error| error.to_string()),
            status.map(|status| json!(status)).map_err(|error| error.to_string()),
        ]
    });
    let answers = answers.unwrap_or_else(|error| [(); 3].map(|()| Err(error.clone())));
    let [doctor, plan, status] = answers.map(|answer| or_error(wrong.clone().map_or(answer, Err)));
    [("doctor", doctor), ("plan", plan), ("status", status)]
}

/// What is installed, and of what version; null where a program is missing or says none.
fn versions(root: &Root, programs: Option<&Programs>) -> Value {
    let asked = ASKED.into_iter().chain(engines::ALL.iter().filter_map(|engine| engine.program));
    let version = |name: &str| {
        let output = programs?.run(&[name, "--version"], LIMIT).ok()?;
        keep::version(&String::from_utf8_lossy(&output.stdout)).map(str::to_owned)
    };
    let kernel = root.read_text("/proc/sys/kernel/osrelease", 256).unwrap_or_default();
    json!({
        "schema_version": 1,
        "rocworker": env!("CARGO_PKG_VERSION"),
        "kernel": keep::version(&kernel),
        "programs": asked.map(|name| (name, version(name))).collect::<BTreeMap<_, _>>(),
    })
}

/// The kernel's messages that explain knows; beneath another Root than `/` those of its captured log or earlier report.
fn kernel_log(collector: &mut Collector<'_>, programs: Option<&Programs>) {
    let path = Path::new(kept::OF_REPORT);
    let log = match programs {
        // journalctl also succeeds if the journal has no line of the kernel.
        Some(programs) => {
            let outputs = LOGS.iter().filter_map(|argv| programs.run(argv, LIMIT).ok());
            let mut logs = outputs.map(|output| output.stdout).filter(|lines| !lines.is_empty());
            logs.next().ok_or_else(|| "neither journalctl nor dmesg shows a line".to_owned())
        }
        None => match kept::path(collector.root) {
            Some(log) => collector.root.read(log, LOGGED).map_err(|error| error.to_string()),
            None => Err("the machine's folder has no log of the kernel".to_owned()),
        },
    };
    let (log, knowledge) = match (log, Knowledge::built_in()) {
        (Ok(log), Ok(knowledge)) => (log, knowledge),
        (Err(reason), _) => return collector.leave_out(path, reason),
        (_, Err(damage)) => return collector.leave_out(path, damage.to_string()),
    };
    let log = String::from_utf8_lossy(&log);
    let (mut lines, mut size) = (Vec::new(), 0);
    for line in log.lines().rev().filter_map(|line| messages::reported(knowledge, line)) {
        size += line.len() + 1;
        if size > LOG {
            collector.leave_out(path, format!("is cut to its last {LOG} bytes"));
            break;
        }
        lines.push(line + "\n");
    }
    lines.reverse();
    collector.put(kept::OF_REPORT.into(), Entry::File(lines.concat().into_bytes()));
}
