//! A machine that was read by a shell gives the answers of a local command, word for word.

use std::path::Path;

use fleet::script::Wanted;
use layout::Machine;
use nix::errno::Errno;
use root::Root;
use support::fuse::{self, Fault, Operation, Served};

use crate::frames::{answers, machines, shells};

#[track_caller]
fn compare(what: &str, shell: &shells::Shell, folder: &Path) {
    for wanted in answers::COMMANDS {
        let local = answers::answer(&Root::open(folder).unwrap(), wanted, folder);
        let remote = answers::answer(&answers::whole(shell, folder, wanted), wanted, folder);
        // doctor reads no kernel's log with --host, and says so (docs/doctor.md).
        let without_log = |text: &str| {
            let reason = |line: &str| line.split("and was not read: ").next().unwrap_or_default().to_owned();
            text.lines().map(reason).collect::<Vec<_>>().join("\n")
        };
        let (local, remote) = (without_log(&local), without_log(&remote));
        if local != remote {
            let differ = |(local, remote): &(&str, &str)| local != remote;
            let first: Vec<_> = local.lines().zip(remote.lines()).filter(differ).take(12).collect();
            let end = remote.get(remote.len().saturating_sub(900)..).unwrap_or_default();
            panic!("{what}, {}, {wanted:?}: local and remote differ: {first:#?}\n{end}", shell.name);
        }
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn every_machine_gives_the_same_answers_by_every_shell() {
    for shell in shells::all() {
        for (name, machine) in machines::all().into_iter().chain(machines::in_several_connections()) {
            compare(name, &shell, machines::laid_out(&machine).path());
        }
    }
}

/// Reads that fail as a driver's do, and bytes that are no text, by real system calls.
#[test]
fn real_files_that_cannot_be_read_give_the_same_answers() {
    const CARD: &str = "/sys/bus/pci/devices/0000:05:00.0";
    if !fuse::require() {
        return;
    }
    let folder = machines::laid_out(&Machine::instinct_with_readings(2, 2));
    let served = Served::new(folder.path());
    // ENXIO is an answer to an open, and what was read by a shell says so; so is EACCES, except to root.
    for (file, errno) in [
        ("gpu_busy_percent", Errno::EINVAL),
        ("mem_busy_percent", Errno::EIO),
        ("mem_info_vram_used", Errno::EPERM),
        ("mem_info_gtt_total", Errno::ENODATA),
        ("pcie_replay_count", Errno::EOPNOTSUPP),
        ("current_link_speed", Errno::EBUSY),
        ("current_link_width", Errno::ENODEV),
        ("max_link_width", Errno::ETIMEDOUT),
        ("vbios_version", Errno::EAGAIN),
        ("ras/umc_err_count", Errno::EINVAL),
        ("mem_info_gtt_used", Errno::ETIME),
        ("mem_info_vis_vram_used", Errno::EREMOTEIO),
        ("max_link_speed", if nix::unistd::geteuid().is_root() { Errno::EACCES } else { Errno::EIO }),
    ] {
        served.fault(&format!("{CARD}/{file}"), Fault::Errno(errno));
    }
    served.fault("/sys/bus/pci/devices/0000:15:00.0/power/runtime_status", Fault::Errno(Errno::EIO));
    served.fault("/sys/class/kfd/kfd/topology/nodes/3/properties", Fault::Errno(Errno::EPERM));
    for shell in shells::all() {
        compare("files that cannot be read", &shell, served.path());
    }
    // busybox' ls says nothing of a folder that fails while it is listed: there it is empty.
    served.fault(&format!("{CARD}/fw_version"), Fault::Errno(Errno::EIO));
    for shell in shells::all().iter().filter(|shell| shell.name != "busybox") {
        compare("a folder that cannot be listed", shell, served.path());
    }
    // Nothing of amdgpu's is asked of a card whose state is not known, and nothing slow or harmful of any.
    served.take_log();
    shells::all()[0].read(served.path(), Wanted::Readings);
    let read: Vec<_> =
        served.take_log().into_iter().filter(|(it, _)| *it == Operation::Read).map(|it| it.1).collect();
    let asleep = served.real("/sys/bus/pci/devices/0000:15:00.0");
    let of_sleeper: Vec<_> = read.iter().filter_map(|path| path.strip_prefix(&asleep).ok()).collect();
    let harmless =
        ["class", "uevent", "vendor", "device", "numa_node", "sriov_numvfs", "power/runtime_status"];
    let is_harmless =
        |path: &&Path| harmless.iter().any(|it| *path == Path::new(it)) || path.ends_with("dev");
    assert!(of_sleeper.iter().all(is_harmless), "{of_sleeper:?}");
    let is_bad = |path: &&std::path::PathBuf| path.ends_with("pcie_bw") || path.ends_with("xgmi_error");
    assert_eq!(read.iter().find(is_bad), None);
}

/// With device nodes that the kernel has.
#[test]
fn real_device_nodes_are_those_of_a_local_command() {
    if !support::real::require_root(&[]) {
        return;
    }
    let machine = Machine::instinct_with_readings(2, 8);
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), layout::Nodes::Real).unwrap();
    for shell in shells::all() {
        compare("real nodes", &shell, folder.path());
    }
}
