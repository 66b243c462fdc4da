//! The headers against the two ABIs as gcc measured them upstream: crates/accelerator-amd/tests/abi.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};
use tempfile::TempDir;

/// A header's name, and what was measured upstream of the ABI that it declares.
const ABIS: [(&str, &str); 2] = [
    ("accelerator_amd.h", include_str!("../abi/abi-of-today.json")),
    ("accelerator_amd_v1.h", include_str!("../abi/abi-of-the-source.json")),
];

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

fn object<'a>(value: &'a Value, name: &str) -> &'a Map<String, Value> {
    value[name].as_object().unwrap()
}

/// C that compiles, as C and as C++, only with a header that declares the whole ABI.
fn assertions(header: &str, abi: &str) -> String {
    let abi: Value = serde_json::from_str(abi).unwrap();
    // C++ names the two operators differently.
    let mut c = format!(
        "#include \"{header}\"\n#ifdef __cplusplus\n#define _Static_assert static_assert\n#define _Alignof alignof\n#endif\n"
    );
    let mut equal = |what: &str, number: &Value| {
        writeln!(c, "_Static_assert({what} == {number}, \"{what} is not {number}\");").unwrap();
    };
    for (name, number) in object(&abi, "constants") {
        equal(name, number);
    }
    for (name, enumerators) in object(&abi, "enums") {
        equal(&format!("sizeof({name})"), &Value::from(4));
        for (enumerator, number) in enumerators.as_object().unwrap() {
            equal(enumerator, number);
        }
    }
    for (name, layout) in object(&abi, "structs") {
        equal(&format!("sizeof({name})"), &layout["size"]);
        equal(&format!("_Alignof({name})"), &layout["align"]);
        for field in layout["fields"].as_array().unwrap() {
            let member = field["name"].as_str().unwrap();
            equal(&format!("offsetof({name}, {member})"), &field["offset"]);
            equal(&format!("sizeof((({name} *)0)->{member})"), &field["size"]);
        }
    }
    for (name, layout) in object(&abi, "structs") {
        for field in layout["fields"].as_array().unwrap() {
            let (member, kind) = (field["name"].as_str().unwrap(), field["type"].as_str().unwrap());
            let check = format!("type_of_{name}_{member}");
            writeln!(c, "void {check}({name} *s);").unwrap();
            writeln!(
                c,
                "void {check}({name} *s) {{ __typeof__({kind}) *member = &s->{member}; (void)member; }}"
            )
            .unwrap();
        }
    }
    for (name, signature) in object(&abi, "functions") {
        let takes: Vec<&str> =
            signature["takes"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        let (returns, takes) = (signature["returns"].as_str().unwrap(), takes.join(", "));
        writeln!(c, "{returns} (*pointer_to_{name})({takes}) = {name};").unwrap();
    }
    // The JSON names the callback's type only; its note has the signature.
    c.push_str("void (*callback)(const char *level, const char *message) = (LogCallbackFunc)0;\n");
    c
}

/// What a compiler says of `source`, which includes a header of `folder`; nothing where it accepts it.
fn complaints(compiler: &[&str], folder: &Path, source: &str) -> String {
    let here = TempDir::new().unwrap();
    let file = here.path().join("source.c");
    fs::write(&file, source).unwrap();
    let (program, options) = compiler.split_first().unwrap();
    let output = Command::new(program)
        .args(options)
        .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
        .args([folder, &file])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), said.is_empty(), "{compiler:?}: {} {said}", output.status);
    said
}

const C: &[&str] = &["gcc", "-std=c11"];
const CPP: &[&str] = &["g++", "-std=c++11", "-x", "c++"];

#[test]
fn each_header_declares_its_abi_in_c_and_in_cpp() {
    for (header, abi) in ABIS {
        for compiler in [C, CPP] {
            assert_eq!(
                complaints(compiler, &include(), &assertions(header, abi)),
                "",
                "{header} {compiler:?}"
            );
        }
    }
}

#[test]
fn old_and_pedantic_compilers_take_each_header() {
    for (header, _) in ABIS {
        let source = format!("#include \"{header}\"\n");
        for compiler in
            [&["gcc", "-std=c99", "-Wpedantic"][..], &["g++", "-std=c++98", "-Wpedantic", "-x", "c++"]]
        {
            assert_eq!(complaints(compiler, &include(), &source), "", "{header} {compiler:?}");
        }
    }
}

#[test]
fn no_program_includes_both_headers() {
    for order in
        [["accelerator_amd.h", "accelerator_amd_v1.h"], ["accelerator_amd_v1.h", "accelerator_amd.h"]]
    {
        let source = order.map(|header| format!("#include \"{header}\"\n")).concat();
        let said = complaints(C, &include(), &source);
        assert!(said.contains("include one of them"), "{said}");
    }
}

/// One change of a header, and what a compiler's message then names.
struct Drift {
    from: &'static str,
    to: &'static str,
    named: &'static str,
    /// C takes an enum for its integer type, and only C++ tells them apart.
    cpp_alone: bool,
}

const fn drift(from: &'static str, to: &'static str, named: &'static str) -> Drift {
    Drift { from, to, named, cpp_alone: false }
}

#[test]
fn a_header_that_differs_in_one_thing_is_refused() {
    let today = [
        drift("char driverVersion[80]", "char driverVersion[64]", "DeviceBasicInfo"),
        drift(
            "uint32_t pcieGen;\n    uint32_t pcieWidth;",
            "uint32_t pcieWidth;\n    uint32_t pcieGen;",
            "pcieGen",
        ),
        drift(
            "bool supportsRemoting;",
            "uint8_t supportsRemoting;",
            "type_of_VirtualizationCapabilities_supportsRemoting",
        ),
        drift(
            "int32_t numaNode;\n    uint64_t total",
            "uint32_t numaNode;\n    uint64_t total",
            "type_of_DeviceBasicInfo_numaNode",
        ),
        drift(
            "TopoLevelType topoLevel;",
            "TopoLevelType topoLevel;\n    int64_t bandwidthBytesPerSec;",
            "DeviceTopoNode",
        ),
        drift("TOPO_LEVEL_SELF = 6", "TOPO_LEVEL_SELF = 8", "TOPO_LEVEL_SELF"),
        drift("#define MAX_DEVICE_UUIDS 64", "#define MAX_DEVICE_UUIDS 65", "MAX_DEVICE_UUIDS"),
        drift("uint32_t computeUnitLimit)", "uint64_t computeUnitLimit)", "AccelSetComputeUnitHardLimit"),
        drift("AccelResult AccelShutdown(void);", "", "AccelShutdown"),
        drift("(const char *level, const char *message)", "(const char *message)", "callback"),
        Drift {
            cpp_alone: true,
            ..drift("TopoLevelType topoLevel;", "uint32_t topoLevel;", "type_of_DeviceTopoNode_topoLevel")
        },
    ];
    let source = [
        drift(
            "int32_t numaNode;\n} DeviceTopology;",
            "int64_t numaNode;\n} DeviceTopology;",
            "DeviceTopology",
        ),
        drift("bool AssignPartition", "Result AssignPartition", "AssignPartition"),
        drift("RESULT_ERROR_INTERNAL = 6", "RESULT_ERROR_INTERNAL = 7", "RESULT_ERROR_INTERNAL"),
    ];
    for ((header, abi), drifts) in ABIS.into_iter().zip([&today[..], &source[..]]) {
        let text = fs::read_to_string(include().join(header)).unwrap();
        let assertions = assertions(header, abi);
        for Drift { from, to, named, cpp_alone } in drifts {
            assert_eq!(text.matches(from).count(), 1, "{header}: {from}");
            let folder = TempDir::new().unwrap();
            fs::write(folder.path().join(header), text.replace(from, to)).unwrap();
            let compilers = if *cpp_alone { &[CPP][..] } else { &[C, CPP] };
            for compiler in compilers {
                let said = complaints(compiler, folder.path(), &assertions);
                assert!(said.contains(named), "{header}, {from} → {to}, {compiler:?}: {said}");
            }
        }
    }
}
