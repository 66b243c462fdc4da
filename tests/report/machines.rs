//! Machines of every kind whose report must be them again.

use layout::{Device, Entry, Gpu, Kfd, Machine, Module, XcpNames};
use support::captures;

use super::{card, machine, node};

pub(crate) fn all() -> Vec<(&'static str, Machine)> {
    let physical =
        Gpu::amd("0000:05:00.0", 0x74a1).card(0).render(128).virtual_functions(8, &["0000:05:00.1"]);
    let function = Gpu::amd("0000:05:00.1", 0x74b5).driver("vfio-pci").virtual_function_of("0000:05:00.0");
    let passed = Machine::instinct(3, 1).put("/dev/lxd/sock", "").remove("/dev/dri");
    vec![
        ("phoenix beside an NVIDIA card", captures::phoenix_beside_rtx4080()),
        ("vangogh", captures::vangogh()),
        ("a card whose files are padded", captures::rx6900xt()),
        ("an Intel card", captures::a380()),
        ("63 partitions, dots", captures::mi300x(XcpNames::Dot)),
        ("63 partitions, underscores", captures::mi300x(XcpNames::Underscore)),
        ("the demo's", Machine::demo()),
        ("a server", Machine::instinct(8, 8)),
        ("two KFD nodes of one minor", machine().kfd(Kfd::new(511).node(node()).node(node()))),
        ("virtual functions", Machine::new().module(Module::new("amdgpu")).gpu(physical).gpu(function)),
        ("inside LXD", passed.put("/dev/dri/renderD144", Device::new(226, 144, 992))),
        ("inside a container that says so", machine().put("/run/systemd/container", "lxc\n")),
        ("init was told", machine().put("/proc/1/environ", "A=b\0container=podman\0HOME=/root\0")),
        ("docker", machine().put("/.dockerenv", "")),
        ("podman", machine().put("/run/.containerenv", "name=\"x\"\n")),
        (
            "by its DMI",
            machine()
                .put("/sys/devices/virtual/dmi/id/product_name", "KVM Guest\n")
                .put("/sys/class/dmi/id", Entry::Link("../../devices/virtual/dmi/id".into())),
        ),
        (
            "by its CPU",
            machine().put(
                "/proc/cpuinfo",
                "processor\t: 0\nmodel name\t: X\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\n",
            ),
        ),
        ("Xen", machine().put("/sys/hypervisor/type", "xen\n")),
        ("no driver", Machine::new().gpu(card().unbound())),
        ("no KFD", Machine::new().module(Module::new("amdgpu")).gpu(card())),
        ("no nodes", machine().remove("/dev")),
        ("a stale node", machine().put("/dev/dri/renderD128", Device::new(226, 129, 992))),
        ("a plain file for a node", machine().put("/dev/dri/renderD128", "not a device")),
        ("a folder for a node", machine().put("/dev/kfd", Entry::Directory)),
        ("an empty attribute", machine().put("/sys/class/drm/renderD128/dev", "")),
        (
            "a binary attribute",
            machine().put("/sys/class/drm/card0/device/product_name", vec![0xff, 0xfe, 0x00]),
        ),
        (
            "a folder for an attribute",
            machine().put("/sys/class/drm/card0/device/unique_id", Entry::Directory),
        ),
        ("a KFD node without properties", machine().remove("/sys/class/kfd/kfd/topology/nodes/1/properties")),
        ("a render node of nothing", machine().put("/sys/class/drm/renderD200/dev", "226:200\n")),
        ("no bus", machine().remove("/sys/bus")),
        ("nothing", Machine::new()),
    ]
}
