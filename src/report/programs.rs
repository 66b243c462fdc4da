//! What only commands tell: the versions of what is installed, and what the kernel and the wrapper logged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use root::Root;
use serde::Serialize;

use super::collect::Collector;
use super::redact::{Redacted, Redactor};
use crate::engines;
use reconcile::command::{Error, Programs};

const LIMIT: Duration = Duration::from_secs(10);

/// Beside the engines.
const ASKED: [&str; 4] = ["runc", "crun", "rocm-smi", "amd-smi"];

const KERNEL_LOG: &str = "/logs/kernel.log";
const WRAPPER_LOG: &str = "/logs/runc-amd-wrapper.log";

const KERNEL: [&str; 9] =
    ["journalctl", "-k", "-o", "short-iso", "-n", "2000", "--no-pager", "--no-hostname", "-q"];
/// Where there is no journal: the kernel's own buffer.
const BUFFER: [&str; 1] = ["dmesg"];
/// The engines hand on what their runtime logs: before this stand their units.
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
        let is_told = matches!(key, "ID" | "VERSION_ID" | "PRETTY_NAME");
        is_told.then(|| (key.to_owned(), value.trim_matches(['"', '\'']).to_owned()))
    };
    text.lines().filter_map(field).collect()
}

fn version(programs: Option<&Programs>, name: &str, redactor: &Redactor) -> Version {
    let Some(programs) = programs else {
        return Version::Unknown("reads a Root: no command is run".to_owned());
    };
    match programs.run(&[name, "--version"], LIMIT) {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let line: String =
                text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").chars().take(200).collect();
            Version::Version(redactor.text(&line).text)
        }
        Err(error) => Version::Unknown(redactor.text(&error.to_string()).text),
    }
}

/// The kernel's lines about GPUs and their bus, and the wrapper's.
pub(super) fn logs(collector: &mut Collector<'_>, programs: Option<&Programs>, redactor: &Redactor) {
    let Some(programs) = programs else {
        for path in [KERNEL_LOG, WRAPPER_LOG] {
            collector.leave_out(Path::new(path), "reads a Root: no command is run");
        }
        return;
    };
    // A journal that holds nothing is content with itself.
    let kernel = match programs.run(&KERNEL, LIMIT) {
        Ok(output) if !output.stdout.is_empty() => Ok(output),
        Ok(_) | Err(_) => programs.run(&BUFFER, LIMIT),
    };
    log(collector, KERNEL_LOG, kernel, is_about_gpus, redactor, Redactor::text);
    let units = engines::ALL.iter().filter_map(|engine| engine.unit).flat_map(|unit| ["-u", unit]);
    let argv: Vec<&str> = ["journalctl"].into_iter().chain(units).chain(WRAPPER).collect();
    let wrapper = programs.run(&argv, LIMIT);
    let is_wrappers = |line: &str| line.contains("runc-amd-wrapper: ");
    log(collector, WRAPPER_LOG, wrapper, is_wrappers, redactor, Redactor::messages);
}

fn log(
    collector: &mut Collector<'_>,
    path: &str,
    output: Result<reconcile::command::Output, Error>,
    is_wanted: impl Fn(&str) -> bool,
    redactor: &Redactor,
    redacted: fn(&Redactor, &str) -> Redacted,
) {
    let output = match output {
        Ok(output) => output,
        Err(error) => return collector.leave_out(Path::new(path), redactor.text(&error.to_string()).text),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<&str> = Vec::new();
    let mut size = 0;
    for line in text.lines().rev().filter(|line| is_wanted(line)) {
        size += line.len() + 1;
        if size > LOG {
            collector.leave_out(Path::new(path), format!("is cut to its last {LOG} bytes"));
            break;
        }
        lines.push(line);
    }
    let kept: String = lines.iter().rev().map(|line| format!("{line}\n")).collect();
    collector.put_text(path, redacted(redactor, &kept).text);
}

/// The driver's lines, KFD's, and those of advanced error reporting and of links that went down.
fn is_about_gpus(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ["amdgpu", "kfd", "aer:", "aer_", "pcieport", "pciehp"].iter().any(|word| lower.contains(word))
}
