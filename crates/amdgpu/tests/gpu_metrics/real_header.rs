//! The tables beside the kernel's own header: gcc says where each field is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use amdgpu::gpu_metrics::{ATTRIBUTES, Field, File, Format, VERSIONS};
use support::real;

/// The folder with drivers/ in it.
pub(super) const HEADERS: &str = "ROCWORKER_AMDGPU_HEADERS";
const HEADER: &str = "drivers/gpu/drm/amd/include/kgd_pp_interface.h";
/// What the kernel's headers take for granted.
const PREAMBLE: &str = r"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef int8_t s8; typedef int16_t s16; typedef int32_t s32; typedef int64_t s64;
";

/// What a C program prints. Kernel headers that are not there are taken as empty.
pub(super) fn printed(program: &str, headers: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("linux")).unwrap();
    fs::write(at("linux/units.h"), "").unwrap();
    fs::write(at("amdgpu_smu.h"), "").unwrap();
    fs::write(at("program.c"), [PREAMBLE, program].concat()).unwrap();
    let amd = headers.join("drivers/gpu/drm/amd");
    let compiled = Command::new("gcc")
        .args(["-w", "-I"])
        .arg(folder.path())
        .arg("-I")
        .arg(amd.join("include"))
        .arg("-I")
        .arg(amd.join("pm/swsmu"))
        .arg("-o")
        .args([at("program"), at("program.c")])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{program}\n{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(at("program")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn structure_name(file: File, (format, content): (u8, u8)) -> String {
    let name = match file {
        File::Gpu => "gpu_metrics",
        File::Partition => "amdgpu_partition_metrics",
    };
    format!("{name}_v{format}_{content}")
}

/// `xcp_stats.gfx_busy_inst` is `xcp_stats[0].gfx_busy_inst` in C.
fn first_in_c(field: &Field) -> String {
    field.name.replacen('.', "[0].", 1)
}

/// The field's type as the table has it.
fn type_in_c(field: &Field) -> String {
    let name = format!("{:?}", field.integer);
    let (sign, bits) = name.split_at(1);
    let sign = if sign == "U" { "uint" } else { "int" };
    let count = if field.count == 1 { String::new() } else { format!("[{}]", field.count) };
    format!("{sign}{bits}_t{count}")
}

#[test]
fn real_offsets_are_what_the_compiler_says() {
    let Some([headers]) = real::require_made([HEADERS], &["gcc"]) else { return };
    let mut program = String::from("#include \"kgd_pp_interface.h\"\nint main(void) {\n");
    let mut expected = String::new();
    for (file, version, format) in VERSIONS {
        let Format::Structure(structure) = format else { continue };
        let name = structure_name(*file, *version);
        writeln!(program, "printf(\"{name} %zu\\n\", sizeof(struct {name}));").unwrap();
        writeln!(expected, "{name} {}", structure.size()).unwrap();
        for field in structure.fields() {
            let (in_c, in_table) = (first_in_c(&field), field.name);
            // The array of structures: how many, and how far apart.
            let array = match field.name.split_once('.') {
                Some((array, _)) => format!(
                    "sizeof(p->{array}) / sizeof(p->{array}[0]), (char *)&p->{array}[1] - (char *)&p->{array}[0]"
                ),
                None => "(size_t)1, (long)0".to_owned(),
            };
            writeln!(
                program,
                "{{ struct {name} *p = 0; printf(\"{in_table} %zu %d %zu %ld\\n\", offsetof(struct {name}, {in_c}), \
                 __builtin_types_compatible_p(__typeof__(p->{in_c}), {}), {array}); }}",
                type_in_c(&field)
            )
            .unwrap();
            let Field { offset, structures, stride, .. } = field;
            writeln!(expected, "{in_table} {offset} 1 {structures} {stride}").unwrap();
        }
    }
    program.push_str("}\n");
    pretty_compare(&printed(&program, &headers), &expected);
}

/// The first line that differs, not two texts of a thousand lines.
fn pretty_compare(printed: &str, expected: &str) {
    for (number, (c, table)) in printed.lines().zip(expected.lines()).enumerate() {
        assert_eq!(c, table, "line {number}: name, offset, whether the type agrees, structures, stride");
    }
    assert_eq!(printed.lines().count(), expected.lines().count());
}

#[test]
fn real_header_has_no_structure_and_no_field_that_the_tables_lack() {
    let Some([headers]) = real::require_made([HEADERS], &["gcc"]) else { return };
    let text = without_comments(&fs::read_to_string(headers.join(HEADER)).unwrap());
    let declared = structures_in(&text);
    let of_files = |name: &str| name.starts_with("gpu_metrics_v") || name.contains("partition_metrics");
    let names: Vec<&str> = declared.keys().copied().filter(|name| of_files(name)).collect();
    let mut known: Vec<String> =
        VERSIONS.iter().map(|(file, version, _)| structure_name(*file, *version)).collect();
    known.sort();
    assert_eq!(names, known);

    for (file, version, format) in VERSIONS {
        let name = structure_name(*file, *version);
        let members = members_of(&declared, &name);
        let expected: Vec<&str> = match format {
            Format::Structure(structure) => structure.fields().iter().map(|field| field.name).collect(),
            Format::Attributes => vec!["attr_count", "metrics_attrs"],
        };
        assert_eq!(members, expected, "{name}");
    }
}

#[test]
fn real_header_numbers_attributes_types_and_units_as_the_table_does() {
    let Some([headers]) = real::require_made([HEADERS], &["gcc"]) else { return };
    let text = without_comments(&fs::read_to_string(headers.join(HEADER)).unwrap());
    let ids = enumerators(&text, "AMDGPU_METRICS_ATTR_ID_");
    let (ids, of_boards) = ids.split_at(ATTRIBUTES.len());
    let known: Vec<String> = ATTRIBUTES.iter().map(|(name, _)| name.to_uppercase()).collect();
    assert_eq!(ids, known);
    // The rest is in the files of boards, which rocworker does not read.
    let prefixes = ["LABEL_VERSION", "NODE_", "VR_TEMP_", "SYSTEM_TEMP_", "MAX"];
    for id in of_boards {
        assert!(prefixes.iter().any(|prefix| id.starts_with(prefix)), "{id} is new: is it a card's?");
    }
    let types = enumerators(&text, "AMDGPU_METRICS_TYPE_");
    let known: Vec<String> =
        amdgpu::gpu_metrics::Integer::ALL.iter().map(|integer| format!("{integer:?}")).collect();
    assert_eq!(types, [&known[..], &["MAX".to_owned()]].concat());
    let units = enumerators(&text, "AMDGPU_METRICS_UNIT_");
    let unit_of = |name: &str| {
        let unit = ATTRIBUTES.iter().find(|(known, _)| *known == name).unwrap().1;
        units[usize::from(unit)].as_str()
    };
    for (name, unit) in [
        ("energy_accumulator", "NONE"),
        ("current_uclk", "CLOCK_1"),
        ("temperature_xcd", "TEMP_1"),
        ("curr_socket_power", "POWER_1"),
        ("system_clock_counter", "TIME_1"),
        ("firmware_timestamp", "TIME_2"),
        ("xgmi_link_speed", "SPEED_1"),
        ("pcie_link_speed", "SPEED_2"),
        ("pcie_bandwidth_inst", "BW_1"),
        ("xgmi_read_data_acc", "DATA_1"),
        ("vcn_busy", "PERCENT"),
    ] {
        assert_eq!(unit_of(name), unit, "{name}");
    }
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut code = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").unwrap().1;
    }
    code.push_str(rest);
    code.lines().map(|line| line.split("//").next().unwrap().to_owned() + "\n").collect()
}

/// The body of each structure that is declared at the left margin.
fn structures_in(text: &str) -> BTreeMap<&str, &str> {
    let parts = text.split("\nstruct ").skip(1);
    parts
        .filter_map(|part| part.split_once(" {\n").filter(|(name, _)| !name.contains(';')))
        .map(|(name, rest)| (name, rest.split_once("\n}").unwrap().0))
        .collect()
}

/// The names of a structure's members without the header; those of a structure within are `ARRAY.MEMBER`.
fn members_of(declared: &BTreeMap<&str, &str>, structure: &str) -> Vec<String> {
    let declarations = declared[structure].split(';').map(str::trim).filter(|line| !line.is_empty());
    let mut names = Vec::new();
    for declaration in declarations {
        let (kind, name) = declaration.rsplit_once(char::is_whitespace).unwrap();
        let name = name.split('[').next().unwrap();
        match kind.trim().strip_prefix("struct ") {
            Some("metrics_table_header") => assert!(names.is_empty(), "{structure}"),
            Some(inner) if inner.contains("xcp_metrics") => {
                names.extend(members_of(declared, inner).iter().map(|member| format!("{name}.{member}")));
            }
            _ => names.push(name.to_owned()),
        }
    }
    names
}

/// What follows the prefix in each enumerator, in order; none of them has a value of its own.
fn enumerators(text: &str, prefix: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix(prefix));
    lines.map(|line| line.strip_suffix(',').unwrap().to_owned()).collect()
}
