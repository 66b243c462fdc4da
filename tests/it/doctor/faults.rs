//! Machines with one thing wrong, and what doctor must say of each.

use layout::{Device, Gpu, Kfd, KfdNode, Machine, Module};

use crate::doctor::*;

/// Name, subject, status, part of the evidence, part of the remedy.
pub(crate) type Finding = (&'static str, &'static str, &'static str, &'static str, &'static str);

pub(crate) fn device(major: u32, minor: u32, gid: u32, mode: u32) -> Device {
    Device::new(major, minor, gid).mode(mode)
}

pub(crate) fn faults() -> Vec<(Machine, Vec<Finding>)> {
    let render = "/dev/dri/renderD128";
    let unloaded = || with_groups(Machine::new().gpu(Gpu::amd(ADDRESS, 0x7448).unbound()));
    vec![
        (
            unloaded(),
            vec![
                ("driver", "amdgpu", "failed", "not loaded", "modprobe amdgpu"),
                ("driver", ADDRESS, "skipped", "no driver is bound, as amdgpu is not loaded", ""),
                ("kfd", "topology", "failed", "there is none", "driver first"),
                ("user_namespace", "", "skipped", "no node", ""),
            ],
        ),
        (
            unloaded().put("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n").put(
                "/lib/modules/6.8.0-45-generic/modules.dep",
                "kernel/drivers/gpu/drm/radeon/radeon.ko.zst: kernel/amdgpu.ko\n",
            ),
            vec![("driver", "amdgpu", "failed", "modules.dep names no amdgpu", "linux-modules-extra")],
        ),
        (
            unloaded().put("/etc/modprobe.d/no-gpu.conf", "# why\n\nblacklist amdgpu\n"),
            vec![(
                "blacklist",
                "/etc/modprobe.d/no-gpu.conf:3",
                "failed",
                "blacklist amdgpu",
                "remove the line",
            )],
        ),
        (
            good().put("/lib/modprobe.d/no-gpu.conf", "install amdgpu /bin/false\n"),
            vec![("blacklist", "/lib/modprobe.d/no-gpu.conf:1", "warning", "next boot", "remove the line")],
        ),
        (
            good().put("/proc/cmdline", "BOOT_IMAGE=/vmlinuz nomodeset quiet\n"),
            vec![("blacklist", "/proc/cmdline", "warning", "nomodeset", "update-grub")],
        ),
        (
            good()
                .put("/sys/fs/selinux/enforce", "1")
                .put("/sys/fs/selinux/booleans/container_use_devices", "0 0"),
            vec![("selinux", "", "warning", "cannot open /dev/kfd", "setsebool -P container_use_devices=1")],
        ),
        (
            good()
                .put("/sys/fs/selinux/enforce", "1")
                .put("/sys/fs/selinux/booleans/container_use_devices", "1 1"),
            vec![("selinux", "", "ok", "lets containers use", "")],
        ),
        (
            good().put("/sys/fs/selinux/enforce", "1"),
            vec![("selinux", "", "skipped", "no boolean container_use_devices", "")],
        ),
        (
            good()
                .put("/sys/fs/selinux/enforce", "0")
                .put("/sys/fs/selinux/booleans/container_use_devices", "0 0"),
            vec![("selinux", "", "ok", "permissive", "")],
        ),
        (
            good()
                .put("/lib/modprobe.d/a.conf", "blacklist amdgpu\n")
                .put("/etc/modprobe.d/a.conf", "# nothing\n"),
            vec![("blacklist", "", "ok", "neither", "")],
        ),
        (
            good().remove("/proc/cmdline").put("/etc/modprobe.d/folder.conf", layout::Entry::Directory),
            vec![
                ("blacklist", "/proc/cmdline", "skipped", "cannot open", ""),
                ("blacklist", "/etc/modprobe.d/folder.conf", "skipped", "cannot read", ""),
            ],
        ),
        (
            with_groups(
                Machine::new()
                    .module(Module::new("amdgpu"))
                    .gpu(Gpu::amd(ADDRESS, 0x7448).driver("vfio-pci")),
            ),
            vec![
                ("driver", ADDRESS, "warning", "bound to vfio-pci", "virtual machine"),
                ("configuration", "gpu-device-ids", "warning", "none is usable", "above"),
            ],
        ),
        (
            with_groups(
                Machine::new()
                    .module(Module::new("amdgpu"))
                    .gpu(Gpu::amd(ADDRESS, 0x7448).card(0))
                    .kfd(kfd()),
            ),
            vec![("driver", ADDRESS, "failed", "did not finish", "firmware")],
        ),
        (
            good().remove(render),
            vec![(
                "nodes",
                render,
                "failed",
                "is not there",
                "mknod /dev/dri/renderD128 c 226 128, then udevadm trigger --action=add /sys/class/drm/renderD128",
            )],
        ),
        (
            good().remove("/dev/kfd"),
            vec![("nodes", "/dev/kfd", "failed", "is not there", "mknod /dev/kfd c 511 0, then")],
        ),
        (
            good().remove("/dev/dri/card0"),
            vec![("nodes", "/dev/dri/card0", "warning", "is not there", "--action=add /sys/class/drm/card0")],
        ),
        (
            good().put(render, device(226, 129, 992, 0o660)),
            vec![(
                "nodes",
                render,
                "failed",
                "226:129, and the kernel says 226:128",
                "rm /dev/dri/renderD128, mknod",
            )],
        ),
        (
            good().put(render, device(226, 128, 992, 0o666)),
            vec![
                (
                    "nodes",
                    render,
                    "warning",
                    "open to every user of this host",
                    "rocworker apply; where that",
                ),
                ("user_namespace", render, "ok", "anybody", ""),
            ],
        ),
        (
            good().put(render, device(226, 128, 0, 0o660)),
            vec![
                ("nodes", render, "warning", "root:root 0660: only root", "rocworker apply"),
                (
                    "user_namespace",
                    render,
                    "failed",
                    "group is root (0)",
                    "--action=add /sys/class/drm/renderD128",
                ),
            ],
        ),
        (
            good().put("/dev/kfd", device(511, 0, 992, 0o600)),
            vec![
                ("nodes", "/dev/kfd", "warning", "its group may not open it", "rocworker apply"),
                ("user_namespace", "/dev/kfd", "failed", "may not read and write", "rocworker apply"),
            ],
        ),
        (
            good().put("/dev/dri/card0", device(226, 0, 0, 0o600)),
            vec![(
                "user_namespace",
                "/dev/dri/card0",
                "warning",
                "group is root",
                "DRIVERS==\"amdgpu\", GROUP=\"video\"",
            )],
        ),
        (
            good().put("/proc/devices", "Character devices:\n  1 mem\n241 kfd\n\nBlock devices:\n511 kfd\n"),
            vec![(
                "kfd",
                "/dev/kfd",
                "failed",
                "511:0, and /proc/devices has kfd as 241",
                "rm /dev/kfd and reboot",
            )],
        ),
        (
            good().put(render, device(226, 128, 109, 0o660)),
            vec![
                ("groups", render, "warning", "109 has no name", "rocworker apply"),
                ("nodes", render, "ok", "root:gid 109 0660", ""),
                ("user_namespace", render, "ok", "gid 109", ""),
            ],
        ),
        (
            good().put("/etc/group", "video:x:44:\n"),
            vec![
                (
                    "groups",
                    "render",
                    "warning",
                    "not in /etc/group",
                    "groupadd --system --gid 992 render, then rocworker apply",
                ),
                ("groups", render, "warning", "992 has no name", "groupadd --system --gid 992 render"),
                ("groups", "/dev/kfd", "warning", "992 has no name", "groupadd --system --gid 992 render"),
            ],
        ),
        (
            good().put("/etc/group", "render:x:992:\n"),
            vec![(
                "groups",
                "video",
                "warning",
                "not in /etc/group",
                "groupadd --system --gid 44 video, then reboot",
            )],
        ),
        (
            good().put("/etc/group", "video:x:44:\n").put(render, device(226, 128, 0, 0o660)),
            vec![
                (
                    "groups",
                    "render",
                    "warning",
                    "not in /etc/group",
                    "groupadd --system --gid 992 render, then rocworker apply",
                ),
                (
                    "nodes",
                    render,
                    "warning",
                    "only root",
                    "groupadd --system --gid 992 render, then rocworker",
                ),
            ],
        ),
        (
            good().put("/etc/group", "video:x:44:\nsgx:x:992:\n"),
            vec![(
                "groups",
                "render",
                "warning",
                "not in /etc/group",
                "groupadd --system render, then rocworker apply",
            )],
        ),
        (good().remove("/etc/group"), vec![("groups", "", "warning", "not known", "install")]),
        (
            good().kfd(Kfd::new(511).node(KfdNode::cpu(16))),
            vec![("kfd", "GPU 0", "failed", "KFD does not know render minor 128", "journalctl -k --grep")],
        ),
        (
            good().kfd(kfd().node(node(ADDRESS, 128))),
            vec![("kfd", "GPU 0", "failed", "nodes [1, 2] all name render minor 128", "report")],
        ),
        (
            good().put("/etc/rocworker/config.yaml", "gpu-device-ids: [0000:64:00.0]\n"),
            vec![(
                "configuration",
                "gpu-device-ids",
                "failed",
                "config.yaml:1: gpu-device-ids names",
                "write all",
            )],
        ),
        (
            good().remove(render).put("/etc/rocworker/config.yaml", "gpu-device-ids: 0\n"),
            vec![
                ("configuration", "GPU 0", "warning", "left out", "take it out"),
                ("configuration", "gpu-device-ids", "warning", "none is usable", "above"),
            ],
        ),
        (
            good().put("/sys/class/kfd/kfd/topology/nodes/2/properties", "not a node\n"),
            vec![("pci", "", "failed", "KFD node 2", "report")],
        ),
    ]
}
