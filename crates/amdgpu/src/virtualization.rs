//! The container or virtual machine that a machine is.

use inventory::Around;
use root::Root;

/// `None` when nothing says that there is a container or a hypervisor.
#[must_use]
pub fn read(root: &Root) -> Option<Around> {
    container(root).map(Around::Container).or_else(|| hypervisor(root).map(Around::VirtualMachine))
}

fn container(root: &Root) -> Option<String> {
    let by_path = |paths: [(&str, &str); 2]| {
        paths.into_iter().find(|(path, _)| root.exists(path)).map(|(_, name)| name.to_owned())
    };
    // LXD and Incus put these files into their guests for talking to the host.
    if let Some(name) = by_path([("/dev/lxd", "lxd"), ("/dev/incus", "incus")]) {
        return Some(name);
    }
    // systemd writes what its container manager says; see https://systemd.io/CONTAINER_INTERFACE.
    if let Ok(name) = root.read_text("/run/systemd/container", 256) {
        return Some(container_name(&name)).filter(|name| !name.is_empty());
    }
    let environment = root.read("/proc/1/environ", 1 << 20).unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    let name = variables.find_map(|variable| variable.strip_prefix(b"container="));
    let name =
        name.filter(|name| !name.is_empty()).map(|name| container_name(&String::from_utf8_lossy(name)));
    name.or_else(|| by_path([("/.dockerenv", "docker"), ("/run/.containerenv", "podman")]))
}

/// A container manager's name. What is no plain word is not shown: systemd too writes `container-other` for a manager
/// that it does not know (src/basic/virt.c).
#[must_use]
pub fn container_name(name: &str) -> String {
    let name = name.trim();
    let is_plain = name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-');
    if is_plain { name } else { "container-other" }.to_owned()
}

/// DMI names as systemd's src/basic/virt.c compares them.
const DMI: [(&str, &str); 10] = [
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Virtual Machine", "microsoft"),
    ("Parallels", "parallels"),
];

/// Whether the kernel is WSL's: its release has one of the words that systemd looks for (src/basic/virt.c).
fn is_wsl(root: &Root) -> bool {
    let release = root.read_text("/proc/sys/kernel/osrelease", 256);
    release.is_ok_and(|release| ["Microsoft", "microsoft", "WSL"].iter().any(|word| release.contains(word)))
}

fn hypervisor(root: &Root) -> Option<String> {
    if is_wsl(root) {
        return Some("wsl".to_owned());
    }
    if let Ok(kind) = root.read_text("/sys/hypervisor/type", 256) {
        return Some(kind.trim().to_owned());
    }
    for file in ["product_name", "sys_vendor", "board_vendor", "bios_vendor"] {
        let Ok(text) = root.read_text(format!("/sys/class/dmi/id/{file}"), 4096) else { continue };
        if let Some((_, name)) = DMI.iter().find(|(prefix, _)| text.starts_with(prefix)) {
            return Some((*name).to_owned());
        }
    }
    // The first CPU's flags are enough, and the file grows with every CPU.
    let cpuinfo = root.read_start("/proc/cpuinfo", 4096).ok()?;
    let cpuinfo = String::from_utf8_lossy(&cpuinfo);
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags"))?;
    flags.split_whitespace().any(|flag| flag == "hypervisor").then(|| "vm-other".to_owned())
}
