//! What detect and doctor ask of the machine around the GPUs: no more of each file than they look at, since these
//! files say much about a machine and its users.

use std::collections::BTreeSet;
use std::path::Path;

use amdgpu::container_name;
use packages::driver::{HSA_AMD, MODPROBE_FOLDERS, built};
use root::Kind;

use super::collect::{Collector, Entry};
use super::redact::{module_line, parameter};
use crate::doctor::selinux;

/// Files of /sys/class/dmi/id by which a virtual machine is known; the serial numbers and uuids beside them are not
/// read.
const DMI: [&str; 5] = ["product_name", "sys_vendor", "board_vendor", "board_name", "bios_vendor"];

/// How kernel parameters begin that are about drivers.
const OF_DRIVERS: [&str; 6] =
    ["amdgpu.", "modprobe.blacklist=", "module_blacklist=", "nomodeset", "iommu=", "amd_iommu="];

/// The keys of /proc/cpuinfo that show the kind of machine; some ARM boards print their serial number there.
const CPU: [&str; 6] = ["vendor_id", "cpu family", "model", "model name", "stepping", "flags"];

pub(super) fn collect(collector: &mut Collector<'_>) {
    for path in ["/proc/devices", "/proc/sys/kernel/osrelease", selinux::ENFORCE, selinux::BOOLEAN] {
        collector.lines(path, |line| Some(line.to_owned()));
    }
    collector.lines("/run/systemd/container", |line| Some(container_name(line)));
    collector.attributes(Path::new("/sys/class/dmi/id"), &DMI);
    collector.attribute(Path::new("/sys/hypervisor/type"));
    // Without the addresses, which root sees.
    collector.lines("/proc/modules", |line| {
        let words =
            line.split(' ').map(|word| if word.starts_with("0x") { "0x0000000000000000" } else { word });
        Some(words.collect::<Vec<_>>().join(" "))
    });
    // Other words name disks, and sometimes passwords.
    collector.lines("/proc/cmdline", |line| {
        let is_of_driver = |word: &&str| OF_DRIVERS.iter().any(|begin| word.starts_with(begin));
        let words = line.split_whitespace().filter(is_of_driver).filter(|word| parameter(word));
        Some(words.collect::<Vec<_>>().join(" "))
    });
    cpu(collector);
    container(collector);
    groups(collector);
    modprobe(collector);
    modules_of_kernel(collector);
}

/// The first CPU, as far as detect reads.
fn cpu(collector: &mut Collector<'_>) {
    const PATH: &str = "/proc/cpuinfo";
    let Ok(bytes) = collector.root.read_start(PATH, 4096) else { return };
    let text = String::from_utf8_lossy(&bytes);
    let is_kept = |line: &&str| CPU.contains(&line.split(':').next().unwrap_or("").trim());
    let lines: String = text
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(is_kept)
        .map(|line| format!("{line}\n"))
        .collect();
    collector.put_text(PATH, lines);
}

/// By what a container is known (see [`host`]): that a file is there, not what is in it.
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
    const ENVIRONMENT: &str = "/proc/1/environ";
    let Ok(environment) = collector.root.read(ENVIRONMENT, 1 << 20) else { return };
    let name = environment.split(|byte| *byte == 0).find(|variable| variable.starts_with(b"container="));
    let name = name.and_then(|name| name.strip_prefix(b"container="));
    let name = name.map(|name| format!("container={}\0", container_name(&String::from_utf8_lossy(name))));
    collector.put_text(ENVIRONMENT, name.unwrap_or_default());
}

/// video, render, and the groups that own a node; not who is in them.
fn groups(collector: &mut Collector<'_>) {
    let owners: BTreeSet<u32> = collector.nodes.iter().map(|node| node.gid).collect();
    collector.lines("/etc/group", |line| {
        let mut fields = line.split(':');
        let (name, gid) = (fields.next()?, fields.nth(1)?);
        let is_kept =
            matches!(name, "video" | "render") || gid.parse().is_ok_and(|gid| owners.contains(&gid));
        is_kept.then(|| format!("{name}:x:{gid}:"))
    });
}

/// The lines that name amdgpu, at their numbers. A file without any is there too, for it may hide one of the same name
/// in a later folder.
fn modprobe(collector: &mut Collector<'_>) {
    let merged = collector.root.lstat("/lib").is_ok_and(|meta| meta.kind == Kind::Link);
    // A merged /lib is /usr/lib, which is in the list too.
    for folder in MODPROBE_FOLDERS.iter().filter(|folder| !(merged && folder.starts_with("/lib/"))) {
        for path in collector.configs(Path::new(folder), "conf") {
            collector.lines(path, |line| Some(module_line(line)));
        }
    }
}

/// Whether the running kernel has amdgpu on disk, by its line of modules.dep, and was built with KFD.
fn modules_of_kernel(collector: &mut Collector<'_>) {
    let Ok(release) = collector.root.read_text("/proc/sys/kernel/osrelease", 256) else { return };
    let release = release.trim();
    let is_name = !release.is_empty() && !release.starts_with('.') && !release.contains(['/', '\0']);
    let path = format!("/lib/modules/{release}/modules.dep");
    if !is_name {
        return collector.leave_out(Path::new("/proc/sys/kernel/osrelease"), "is no kernel's release");
    }
    if let Some(built) = built(collector.root, Some(release), HSA_AMD) {
        let line = if built.with { format!("{HSA_AMD}=y\n") } else { format!("# {HSA_AMD} is not set\n") };
        collector.put_text(format!("/boot/config-{release}"), line);
    }
    let Ok(text) = collector.root.read_text(&path, 16 << 20) else { return };
    let is_amdgpu = |line: &&str| line.split(':').next().is_some_and(|path| path.contains("/amdgpu.ko"));
    let lines: String = text.lines().filter(is_amdgpu).map(|line| format!("{line}\n")).collect();
    collector.put_text(path, lines);
}
