//! The rules of modes beside the kernel's own functions: gcc compiles them from its newest source, around structures that
//! have no more than the functions ask for (model.c).

use std::fmt::Write as _;
use std::fs;

use inventory::partitioning::{Compute, Generation, Memory, Rules};
use support::real;

use crate::compiled::{HEADERS, NEWEST, printed};

const FOLDER: &str = "drivers/gpu/drm/amd/amdgpu";

/// The files, and the functions that are taken from each.
const FUNCTIONS: [(&str, &[&str]); 3] = [
    ("amdgpu_xcp.c", &["amdgpu_xcp_update_supported_modes"]),
    (
        "aqua_vanjaram.c",
        &[
            "__aqua_vanjaram_get_px_mode_info",
            "aqua_vanjaram_get_xcp_res_info",
            "__aqua_vanjaram_get_auto_mode",
            "__aqua_vanjaram_is_valid_mode",
        ],
    ),
    ("soc_v1_0.c", &["soc_v1_0_get_xcp_res_info", "__soc_v1_0_get_auto_mode", "__soc_v1_0_is_valid_mode"]),
];

/// A function's text: from the line with its name, and one with its type before it, to the brace at the margin.
fn function<'t>(text: &'t str, name: &str) -> &'t str {
    let called = format!("{name}(");
    let starts = text.match_indices(&called).map(|(at, _)| {
        let line = text[..at].rfind('\n').unwrap() + 1;
        // The type may stand on a line of its own.
        if line == at { text[..line - 1].rfind('\n').unwrap() + 1 } else { line }
    });
    let bodies = starts.filter(|start| !text[*start..].starts_with(['\t', ' ']));
    let mut functions = bodies.map(|start| text[start..].split_inclusive("\n}\n").next().unwrap());
    functions.find(|it| it.contains("\n{\n")).unwrap_or_else(|| panic!("no function {name}"))
}

#[test]
fn real_kernels_functions_allow_the_combinations_that_the_rules_allow() {
    let Some([headers]) = real::require_made([HEADERS], &["gcc"]) else { return };
    let mut program = include_str!("model.c").to_owned();
    for (file, names) in FUNCTIONS {
        let text = fs::read_to_string(headers.join(NEWEST).join(FOLDER).join(file)).unwrap();
        program.extend(names.iter().map(|name| function(&text, name)));
    }
    program += include_str!("ask.c");
    let mut expected = String::new();
    for generation in [Generation::Mi300, Generation::Mi350, Generation::Mi400] {
        for xcds in 1..=8 {
            let rules = Rules { generation, xcds };
            for memory in ["NPS1", "NPS2", "NPS3", "NPS4", "NPS6", "NPS8"] {
                for is_apu in [false, true] {
                    let of = Memory::parse(memory).unwrap();
                    let picked = rules.after_load(of, is_apu).map_or("-", Compute::name);
                    write!(expected, "{generation:?} {xcds} {memory} {} {picked}", u8::from(is_apu)).unwrap();
                    for mode in Compute::ALL.into_iter().filter(|mode| rules.allow(*mode, of)) {
                        write!(expected, " {mode}").unwrap();
                    }
                    expected.push('\n');
                }
            }
        }
    }
    let printed = printed(&program, &headers);
    for (kernel, rules) in printed.lines().zip(expected.lines()) {
        assert_eq!(kernel, rules, "generation, XCDs, memory mode, APU, mode after a load, modes allowed");
    }
    assert_eq!(printed.lines().count(), expected.lines().count());
}
