//! The tables beside the kernels' own headers: gcc says where each field is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use amdgpu::{
    gpu_metrics::ATTRIBUTES, gpu_metrics::Field, gpu_metrics::File, gpu_metrics::Format,
    gpu_metrics::Structure, gpu_metrics::VERSIONS,
};
use support::real;

use crate::compiled::{HEADERS, NEWEST, printed};

/// Linux 6.1, 6.12 and the newest.
const SUITES: [&str; 3] = ["bookworm", "trixie", NEWEST];
const HEADER: &str = "drivers/gpu/drm/amd/include/kgd_pp_interface.h";
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
fn real_offsets_of_each_kernel_are_what_the_compiler_says() {
    let Some([headers]) = real::require_made([HEADERS], &["gcc"]) else { return };
    for suite in SUITES {
        let headers = headers.join(suite);
        let declared = declared_in(&headers);
        let mut program = String::from("#include \"kgd_pp_interface.h\"\nint main(void) {\n");
        let mut expected = String::new();
        for (file, version, format) in VERSIONS {
            let Format::Structure(structure) = format else { continue };
            let name = structure_name(*file, *version);
            if declared.contains_key(&name) {
                ask_and_expect(&name, *structure, &mut program, &mut expected);
            }
        }
        program.push_str("}\n");
        compare(suite, &printed(&program, &headers), &expected);
    }
}

/// Adds to the program what prints a structure's layout, and to what is expected the table's.
fn ask_and_expect(name: &str, structure: Structure, program: &mut String, expected: &mut String) {
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

/// The first line that differs, not two texts of a thousand lines.
fn compare(suite: &str, printed: &str, expected: &str) {
    for (number, (c, table)) in printed.lines().zip(expected.lines()).enumerate() {
        assert_eq!(
            c, table,
            "{suite}, line {number}: name, offset, whether the type agrees, structures, stride"
        );
    }
    assert_eq!(printed.lines().count(), expected.lines().count(), "{suite}");
}

#[test]
fn real_headers_have_no_structure_and_no_field_that_the_tables_lack() {
    let Some([headers]) = real::require_made([HEADERS], &["gcc"]) else { return };
    let known: BTreeMap<String, Format> =
        VERSIONS.iter().map(|(file, version, format)| (structure_name(*file, *version), *format)).collect();
    for suite in SUITES {
        let declared = declared_in(&headers.join(suite));
        let of_files =
            |name: &&String| name.starts_with("gpu_metrics_v") || name.contains("partition_metrics");
        let names: Vec<&String> = declared.keys().filter(of_files).collect();
        if suite == NEWEST {
            assert_eq!(names, known.keys().collect::<Vec<_>>());
        }
        assert!(names.iter().any(|name| *name == "gpu_metrics_v1_3"), "{suite}: {names:?}");
        for name in names {
            let expected: Vec<&str> = match known.get(name) {
                Some(Format::Structure(structure)) => {
                    structure.fields().iter().map(|field| field.name).collect()
                }
                Some(Format::Attributes) => vec!["attr_count", "metrics_attrs"],
                None => panic!("{suite}: {name} has no table"),
            };
            assert_eq!(members_of(&declared, name), expected, "{suite}: {name}");
        }
    }
}

#[test]
fn real_header_numbers_attributes_types_and_units_as_the_table_does() {
    let Some([headers]) = real::require_made([HEADERS], &["gcc"]) else { return };
    let text = code_of(&headers.join(NEWEST));
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

/// The header without comments.
fn code_of(headers: &Path) -> String {
    let path = headers.join(HEADER);
    let text = fs::read_to_string(&path);
    let text =
        text.unwrap_or_else(|error| panic!("{}: {error}: cargo xtask test fetches it", path.display()));
    without_comments(&text)
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
fn declared_in(headers: &Path) -> BTreeMap<String, String> {
    let text = code_of(headers);
    let parts = text.split("\nstruct ").skip(1);
    parts
        .filter_map(|part| part.split_once(" {\n").filter(|(name, _)| !name.contains(';')))
        .map(|(name, rest)| (name.to_owned(), rest.split_once("\n}").unwrap().0.to_owned()))
        .collect()
}

/// The names of a structure's members without the header; those of a structure within are `ARRAY.MEMBER`.
fn members_of(declared: &BTreeMap<String, String>, structure: &str) -> Vec<String> {
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

/// The rest of each enumerator's name after the prefix, in order; none of them has an explicit value.
fn enumerators(text: &str, prefix: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix(prefix));
    lines.map(|line| line.strip_suffix(',').unwrap().to_owned()).collect()
}
