//! What only commands show: the versions of what is installed, and what the kernel and the wrapper logged.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use kernel_log::knowledge::Knowledge;
use reconcile::command::Programs;
use root::Root;
use serde::Serialize;

use super::collect::Collector;
use super::messages::reported;
use super::redact::Redactor;
use crate::doctor::KERNEL_LOG;

const LIMIT: Duration = Duration::from_secs(10);

/// The programs whose versions a report has, beside those of the engines.
const ASKED: [&str; 4] = ["runc", "crun", "rocm-smi", "amd-smi"];

const NO_COMMANDS: &str = "Skipped: commands are not run with --root.";

const WRAPPER_LOG: &str = "/logs/runc-amd-wrapper.log";

const KERNEL: [&str; 9] =
    ["journalctl", "-k", "-o", "short-iso", "-n", "2000", "--no-pager", "--no-hostname", "-q"];
/// Prints the kernel's own buffer, where there is no journal.
const BUFFER: [&str; 1] = ["dmesg"];
/// The engines log what their runtime writes: their units come in front of this.
const WRAPPER: [&str; 7] = ["-o", "short-iso", "-n", "5000", "--no-pager", "--no-hostname", "-q"];

/// The last lines that fit.
const LOG: usize = 64 << 10;

/// What is installed, and of what version.
#[derive(Debug, Serialize)]
pub(super) struct Versions {
    schema_version: u32,
    rocworker: &'static str,
    kernel: Option<String>,
    /// ID, VERSION_ID and PRETTY_NAME of os-release(5).
    os: BTreeMap<String, String>,
    programs: BTreeMap<&'static str, Version>,
}

/// The first line of a program's `--version`, or why there is none.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Version {
    Version(String),
    Unknown(String),
}

pub(super) fn versions(root: &Root, programs: Option<&Programs>, redactor: &Redactor) -> Versions {
    let kernel = root.read_text("/proc/sys/kernel/osrelease", 256).ok();
    let asked = ASKED.into_iter().chain(engines::ALL.iter().filter_map(|engine| engine.program));
    Versions {
        schema_version: 1,
        rocworker: env!("CARGO_PKG_VERSION"),
        kernel: kernel.map(|text| text.trim().to_owned()),
        os: os(root),
        programs: asked.map(|name| (name, version(programs, name, redactor))).collect(),
    }
}

fn os(root: &Root) -> BTreeMap<String, String> {
    let text = root.read_text("/etc/os-release", 64 << 10).unwrap_or_else(|_| String::new());
    let field = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let is_shown = matches!(key, "ID" | "VERSION_ID" | "PRETTY_NAME");
        is_shown.then(|| (key.to_owned(), value.trim_matches(['"', '\'']).to_owned()))
    };
    text.lines().filter_map(field).collect()
}

fn version(programs: Option<&Programs>, name: &str, redactor: &Redactor) -> Version {
    let Some(programs) = programs else {
        return Version::Unknown(NO_COMMANDS.to_owned());
    };
    match programs.run(&[name, "--version"], LIMIT) {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let line: String =
                text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").chars().take(200).collect();
            Version::Version(redactor.text(&line))
        }
        Err(error) => Version::Unknown(redactor.text(&error.to_string())),
    }
}

/// The kernel's known messages, and the wrapper's lines.
pub(super) fn logs(collector: &mut Collector<'_>, programs: Option<&Programs>, redactor: &Redactor) {
    let Some(programs) = programs else {
        for path in [KERNEL_LOG, WRAPPER_LOG] {
            collector.leave_out(Path::new(path), NO_COMMANDS);
        }
        return;
    };
    // journalctl also succeeds if the journal has no line of the kernel.
    let kernel = match programs.run(&KERNEL, LIMIT) {
        Ok(output) if !output.stdout.is_empty() => Ok(output),
        Ok(_) | Err(_) => programs.run(&BUFFER, LIMIT),
    };
    let knowledge = match Knowledge::built_in() {
        Ok(knowledge) => knowledge,
        Err(error) => return collector.leave_out(Path::new(KERNEL_LOG), error.to_string()),
    };
    let units = engines::ALL.iter().filter_map(|engine| engine.unit).flat_map(|unit| ["-u", unit]);
    let argv: Vec<&str> = ["journalctl"].into_iter().chain(units).chain(WRAPPER).collect();
    let wrapper = programs.run(&argv, LIMIT);
    for (path, output, redacted) in [
        (KERNEL_LOG, kernel, &(|line: &str| reported(knowledge, line)) as &dyn Fn(&str) -> Option<String>),
        (WRAPPER_LOG, wrapper, &|line| redactor.wrapper_line(line)),
    ] {
        match output {
            Ok(output) => log(collector, path, &String::from_utf8_lossy(&output.stdout), redacted),
            Err(error) => collector.leave_out(Path::new(path), redactor.text(&error.to_string())),
        }
    }
}

/// The last lines of which `redacted` leaves something.
fn log(collector: &mut Collector<'_>, path: &str, text: &str, redacted: impl Fn(&str) -> Option<String>) {
    let mut kept = VecDeque::new();
    let mut size = 0;
    for line in text.lines().rev().filter_map(redacted) {
        size += line.len() + 1;
        if size > LOG {
            collector.leave_out(Path::new(path), format!("is cut to its last {LOG} bytes"));
            break;
        }
        kept.push_front(line + "\n");
    }
    collector.put_text(path, kept.into_iter().collect::<String>());
}
