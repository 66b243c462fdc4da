//! What detect and doctor ask of the machine around the GPUs: no more of each file than they look at, for these
//! files tell much about a machine that is nobody's business.

use std::collections::BTreeSet;
use std::path::Path;

use root::Kind;

use super::collect::{Collector, Entry};
use crate::driver::MODPROBE_FOLDERS;

/// Those of /sys/class/dmi/id by which a virtual machine is known; the serial numbers and uuids beside them
/// are not read.
const DMI: [&str; 5] = ["product_name", "sys_vendor", "board_vendor", "board_name", "bios_vendor"];

/// What of /proc/cpuinfo tells a kind of machine; some ARM boards print their serial number there.
const CPU: [&str; 6] = ["vendor_id", "cpu family", "model", "model name", "stepping", "flags"];

pub(super) fn collect(collector: &mut Collector<'_>) {
    for path in ["/proc/devices", "/proc/sys/kernel/osrelease"] {
        if let Some(text) = collector.config(Path::new(path)) {
            collector.put_text(path, text);
        }
    }
    collector.attributes(Path::new("/sys/class/dmi/id"), &DMI);
    collector.attribute(Path::new("/sys/hypervisor/type"));
    modules(collector);
    cpu(collector);
    command_line(collector);
    container(collector);
    groups(collector);
    modprobe(collector);
    modules_of_kernel(collector);
}

/// Without the addresses, which root sees.
fn modules(collector: &mut Collector<'_>) {
    const PATH: &str = "/proc/modules";
    let Some(text) = collector.config(Path::new(PATH)) else { return };
    let hidden = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let words =
            words.iter().map(|word| if word.starts_with("0x") { "0x0000000000000000" } else { *word });
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    let lines: String = text.lines().map(hidden).collect();
    collector.put_text(PATH, lines);
}

/// The first CPU, as far as detect reads.
fn cpu(collector: &mut Collector<'_>) {
    const PATH: &str = "/proc/cpuinfo";
    let Ok(bytes) = collector.root.read_start(PATH, 4096) else { return };
    let text = String::from_utf8_lossy(&bytes);
    let is_told = |line: &&str| CPU.contains(&line.split(':').next().unwrap_or("").trim());
    let lines: String = text
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(is_told)
        .map(|line| format!("{line}\n"))
        .collect();
    collector.put_text(PATH, lines);
}

/// The words that are about drivers; others name disks, and sometimes passwords.
fn command_line(collector: &mut Collector<'_>) {
    const PATH: &str = "/proc/cmdline";
    const ABOUT: [&str; 6] =
        ["amdgpu.", "modprobe.blacklist=", "module_blacklist=", "nomodeset", "iommu=", "amd_iommu="];
    let Some(text) = collector.config(Path::new(PATH)) else { return };
    let is_about = |word: &&str| ABOUT.iter().any(|about| word.starts_with(about));
    let words: Vec<&str> = text.split_whitespace().filter(is_about).collect();
    collector.put_text(PATH, words.join(" ") + "\n");
}

/// By what a container is known (see [`crate::host`]): that a file is there, not what is in it.
fn container(collector: &mut Collector<'_>) {
    for folder in ["/dev/lxd", "/dev/incus"] {
        if collector.root.exists(folder) {
            collector.put(folder.into(), Entry::Folder);
        }
    }
    for file in ["/.dockerenv", "/run/.containerenv"] {
        if collector.root.exists(file) {
            collector.put_text(file, "");
        }
    }
    const SYSTEMD: &str = "/run/systemd/container";
    if let Some(text) = collector.config(Path::new(SYSTEMD)) {
        collector.put_text(SYSTEMD, text);
    }
    const ENVIRONMENT: &str = "/proc/1/environ";
    let Ok(environment) = collector.root.read(ENVIRONMENT, 1 << 20) else { return };
    let name = environment.split(|byte| *byte == 0).find(|variable| variable.starts_with(b"container="));
    let name = name.map(|name| String::from_utf8_lossy(name).into_owned() + "\0");
    collector.put_text(ENVIRONMENT, name.unwrap_or_default());
}

/// video, render, and the groups that own a node; not who is in them.
fn groups(collector: &mut Collector<'_>) {
    const PATH: &str = "/etc/group";
    let Some(text) = collector.config(Path::new(PATH)) else { return };
    let owners: BTreeSet<u32> = collector.nodes.iter().map(|node| node.gid).collect();
    let told = |line: &str| {
        let mut fields = line.split(':');
        let (name, _, gid) = (fields.next()?, fields.next()?, fields.next()?);
        let is_told =
            matches!(name, "video" | "render") || gid.parse().is_ok_and(|gid| owners.contains(&gid));
        is_told.then(|| format!("{name}:x:{gid}:\n"))
    };
    let lines: String = text.lines().filter_map(told).collect();
    collector.put_text(PATH, lines);
}

/// The lines that name amdgpu, at their numbers. A file without any is there too, empty, for it may hide one of
/// the same name in a later folder.
fn modprobe(collector: &mut Collector<'_>) {
    let merged = collector.root.lstat("/lib").is_ok_and(|meta| meta.kind == Kind::Link);
    for folder in MODPROBE_FOLDERS {
        // Then /lib is /usr/lib, which has had its turn.
        if merged && folder.starts_with("/lib/") {
            continue;
        }
        for path in collector.configs(Path::new(folder), &["conf"]) {
            let Some(text) = collector.config(&path) else { continue };
            let told =
                |line: &str| if line.contains("amdgpu") { format!("{line}\n") } else { "\n".to_owned() };
            let lines: String = text.lines().map(told).collect();
            let told = lines.trim_end_matches('\n');
            collector.put_text(path, if told.is_empty() { String::new() } else { format!("{told}\n") });
        }
    }
}

/// Whether the running kernel has amdgpu on disk: its line of modules.dep.
fn modules_of_kernel(collector: &mut Collector<'_>) {
    let Ok(release) = collector.root.read_text("/proc/sys/kernel/osrelease", 256) else { return };
    let release = release.trim();
    let is_name = !release.is_empty() && !release.starts_with('.') && !release.contains(['/', '\0']);
    let path = format!("/lib/modules/{release}/modules.dep");
    if !is_name {
        return collector.leave_out(Path::new("/proc/sys/kernel/osrelease"), "is no kernel's release");
    }
    let Ok(text) = collector.root.read_text(&path, 16 << 20) else { return };
    let is_amdgpu = |line: &&str| line.split(':').next().is_some_and(|path| path.contains("/amdgpu.ko"));
    let lines: String = text.lines().filter(is_amdgpu).map(|line| format!("{line}\n")).collect();
    collector.put_text(path, lines);
}
