//! How these tests make an archive, and look into one.

use flate2::read::GzDecoder;
use layout::{Device, Entry, Gpu, Kfd, KfdNode, Machine, Module, XcpNames};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::captures;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");
pub(crate) const ADDRESS: &str = "0000:03:00.0";
/// Stands in every file that must not be in an archive.
pub(crate) const SECRET: &str = "hunter2-correct-horse";

pub(crate) fn report(root: &Path, file: &Path) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("--root").arg(root).args(["--output", "json", "report", "--file"]).arg(file).output().unwrap()
}

/// The archive of a machine that is laid out, which must be taken.
pub(crate) fn archive(root: &Path) -> Vec<u8> {
    let output = report(root, Path::new("-"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// An archive's entries by their path beneath its one top folder.
pub(crate) fn entries(archive: &[u8]) -> BTreeMap<String, (tar::Header, Vec<u8>)> {
    let mut entries = BTreeMap::new();
    for entry in tar::Archive::new(GzDecoder::new(archive)).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let (top, inside) = path.split_once('/').unwrap_or((&path, ""));
        assert!(top.starts_with("rocworker-report-"), "{path}");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        entries.insert(inside.trim_end_matches('/').to_owned(), (entry.header().clone(), bytes));
    }
    entries
}

pub(crate) fn text<'a>(entries: &'a BTreeMap<String, (tar::Header, Vec<u8>)>, path: &str) -> &'a str {
    let (_, bytes) = entries.get(path).unwrap_or_else(|| panic!("{path} is not in the archive"));
    std::str::from_utf8(bytes).unwrap()
}

/// Unpacks an archive; the folder in it.
pub(crate) fn unpack(archive: &[u8], into: &Path) -> PathBuf {
    tar::Archive::new(GzDecoder::new(archive)).unpack(into).unwrap();
    let tops: Vec<_> = fs::read_dir(into).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [top] = tops.as_slice() else { panic!("{tops:?}") };
    top.clone()
}

/// An answer as it would be on the machine itself: sentences name paths where they were read.
pub(crate) fn as_on_the_machine(answer: &Value, root: &Path) -> String {
    format!("{answer:#}").replace(root.to_str().unwrap(), "")
}

pub(crate) fn doctor_beneath(root: &Path) -> Value {
    let output =
        Command::new(PROGRAM).arg("--root").arg(root).args(["--output", "json", "doctor"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn card() -> Gpu {
    Gpu::amd(ADDRESS, 0x7448).card(0).render(128).attribute("product_name", "AMD Radeon PRO W7900")
}

pub(crate) fn node() -> KfdNode {
    KfdNode::gpu(7001, 0x7448, 110_000).at(ADDRESS).render(128).memory(48 << 30)
}

pub(crate) fn machine() -> Machine {
    Machine::new()
        .module(Module::new("amdgpu").srcversion("5AC1AB1E5AC1AB1E5AC1AB1"))
        .gpu(card())
        .kfd(Kfd::new(511).node(KfdNode::cpu(16)).node(node()))
        .put("/etc/group", "root:x:0:\nvideo:x:44:ann\nrender:x:992:ann,bob\nwheel:x:10:ann\n")
}

pub(crate) fn machine_of(card: Gpu) -> Machine {
    Machine::new().module(Module::new("amdgpu")).gpu(card).kfd(Kfd::new(511).node(node()))
}

pub(crate) fn machines() -> Vec<(&'static str, Machine)> {
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

/// In no name and no byte of the unpacked archive.
#[track_caller]
pub(crate) fn assert_nowhere(archive: &[u8], needle: &str) {
    let mut bytes = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut bytes).unwrap();
    let found = bytes.windows(needle.len()).position(|window| window == needle.as_bytes());
    let around = found
        .map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at + needle.len()]).into_owned());
    assert_eq!(around, None, "{needle}");
}

/// Stands in for a program: prints `text` whatever it is asked.
pub(crate) fn stand_in(folder: &Path, name: &str, text: &str) {
    let script = folder.join("text");
    fs::write(&script, format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\n")).unwrap();
    // Not written in place: a test that forks meanwhile would inherit the descriptor (ETXTBSY).
    assert!(Command::new("install").arg(&script).arg(folder.join(name)).status().unwrap().success());
}
