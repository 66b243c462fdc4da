//! Machines to be read: captured ones, and synthetic ones with what captures lack.

use layout::{Gpu, Machine, Module, Nodes, XcpNames};
use support::captures;
use tempfile::TempDir;

/// Each by its name.
pub(crate) fn all() -> Vec<(&'static str, Machine)> {
    vec![
        ("phoenix", captures::phoenix()),
        ("vangogh", captures::vangogh()),
        ("rx6900xt", captures::rx6900xt()),
        ("rx7800xt", captures::rx7800xt()),
        ("rx9070", captures::rx9070()),
        ("vega", captures::vega()),
        ("rtx4080", captures::rtx4080(0, 128)),
        ("a380", captures::a380()),
        ("phoenix beside rtx4080", captures::phoenix_beside_rtx4080()),
        ("mi300x", captures::mi300x(XcpNames::Dot)),
        ("demo", Machine::demo()),
        ("8 cards", Machine::instinct_with_readings(8, 1)),
        ("2 cards of 8 partitions", Machine::instinct_with_readings(2, 8)),
        ("2 cards in trouble", Machine::instinct_in_trouble(2, 2)),
        ("linked", Machine::instinct_linked(2, 2)),
        ("suspended", suspended()),
        ("nothing", Machine::new()),
        ("odd", odd()),
    ]
}

/// One card that sleeps, and others in states that are none or cannot be asked.
pub(crate) fn suspended() -> Machine {
    let card = |address: &str, minor: u32, state: &str| {
        let gpu = Gpu::amd(address, 0x74a1).card(minor).render(128 + minor);
        let gpu = gpu.attribute("power/runtime_status", state).attribute("unique_id", "0123456789abcdef\n");
        gpu.attribute("gpu_busy_percent", "7\n").attribute("mem_info_vram_total", "17163091968\n")
    };
    Machine::new()
        .module(Module::new("amdgpu"))
        .gpu(card("0000:03:00.0", 0, "suspended\n"))
        .gpu(card("0000:04:00.0", 1, "active\n"))
        .gpu(card("0000:05:00.0", 2, "suspending"))
        .gpu(card("0000:06:00.0", 3, "dreaming\n"))
        .gpu(card("0000:07:00.0", 4, "active"))
}

/// Values without a line's end, empty ones, bytes that no shell can hold.
pub(crate) fn odd() -> Machine {
    let gpu = Gpu::amd("0000:03:00.0", 0x74a1).card(0).render(128);
    Machine::new().module(Module::new("amdgpu").version("6.10.5")).gpu(
        gpu.attribute("gpu_busy_percent", "7")
            .attribute("mem_busy_percent", "")
            .attribute("vbios_version", "113-\\n\\0 $(id) `id` %s %d\n\n\n")
            .attribute("product_name", "caf\u{e9} \u{1f600}\n")
            .attribute("mem_info_vram_total", "1\0\0\0\n")
            .entry("gpu_metrics", vec![0x0a, 0, 0x0a, 0x0a, 0, 0xff, 0x80, b'\n'])
            .entry("mem_info_gtt_total", vec![0xff, 0xfe, b'\n']),
    )
}

/// Beneath a folder, its nodes recorded.
pub(crate) fn laid_out(machine: &Machine) -> TempDir {
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    folder
}
