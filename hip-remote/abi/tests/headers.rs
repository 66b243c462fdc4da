//! The tables against AMD's own header and library, as the distribution has them (Debian 12: 5.2.3).
#![allow(clippy::disallowed_methods, reason = "gcc and nm are run on files of the test's own")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use hip_abi::memory::{self, Kind, PointerAttributes};
use hip_abi::properties::{self, Layout};
use hip_abi::release::Release;
use hip_abi::{attributes, errors, symbols};

/// What a C program prints that knows AMD's header and has AMD's library.
fn printed(statements: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["a.c", "a"].map(|name| folder.path().join(name));
    let code = format!(
        "#define __HIP_PLATFORM_AMD__\n#include <hip/hip_runtime_api.h>\n#include <stddef.h>\n#include <stdio.h>\n\
         int main(void) {{\n{statements}return 0;\n}}\n"
    );
    std::fs::write(&source, code).unwrap();
    let made = Command::new("gcc")
        .arg("-w")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .arg("-lamdhip64")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let output = Command::new(&program).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn properties_lie_where_the_header_puts_them() {
    let names = [
        "name",
        "warpSize",
        "maxGridSize",
        "memoryClockRate",
        "arch",
        "gcnArch",
        "gcnArchName",
        "memPitch",
        "asicRevision",
    ];
    let mut statements = String::from("printf(\"%zu\\n\", sizeof(hipDeviceProp_t));\n");
    let mut expected = format!("{}\n", Layout::Rocm5.size());
    for name in names {
        let _ = writeln!(
            statements,
            "printf(\"%zu %zu\\n\", offsetof(hipDeviceProp_t, {name}), sizeof(((hipDeviceProp_t *)0)->{name}));"
        );
        let range = properties::range(Layout::Rocm5, name).unwrap();
        let _ = writeln!(expected, "{} {}", range.start, range.len());
    }
    assert_eq!(printed(&statements), expected);
}

#[test]
fn attributes_of_a_pointer_lie_where_the_header_puts_them() {
    let fields = ["memoryType", "device", "devicePointer", "hostPointer", "isManaged", "allocationFlags"];
    let offsets =
        fields.map(|field| format!("printf(\"%zu \", offsetof(hipPointerAttribute_t, {field}));\n")).concat();
    let expected = [
        std::mem::offset_of!(PointerAttributes, kind),
        std::mem::offset_of!(PointerAttributes, device),
        std::mem::offset_of!(PointerAttributes, device_pointer),
        std::mem::offset_of!(PointerAttributes, host_pointer),
        std::mem::offset_of!(PointerAttributes, managed),
        std::mem::offset_of!(PointerAttributes, flags),
        size_of::<PointerAttributes>(),
    ];
    let printed = printed(&format!("{offsets}printf(\"%zu\", sizeof(hipPointerAttribute_t));\n"));
    assert_eq!(printed, expected.map(|number| number.to_string()).join(" "));
}

#[test]
fn kinds_of_memory_have_the_numbers_of_rocm_5() {
    let expected =
        [Kind::Host, Kind::Device].map(|kind| memory::number(Release::Rocm5, kind).unwrap().to_string());
    assert_eq!(printed("printf(\"%d %d\", hipMemoryTypeHost, hipMemoryTypeDevice);\n"), expected.join(" "));
}

#[test]
fn errors_have_the_names_that_the_library_gives() {
    let printed = printed("for (int code = -1; code < 1100; code++) puts(hipGetErrorName(code));\n");
    for (code, name) in (-1..).zip(printed.lines()) {
        assert_eq!(errors::name(Release::Rocm5, code).to_str(), Ok(name), "{code}");
    }
}

#[test]
fn each_symbol_of_the_library_is_listed_with_its_version() {
    let library = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";
    let listed = Command::new("nm")
        .args(["-D", "--defined-only", "--with-symbol-versions", library])
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let exported =
        listed.lines().filter_map(|line| line.rsplit(' ').next()?.split_once("@@")).collect::<BTreeSet<_>>();
    let ours: BTreeSet<_> = symbols::of(Release::Rocm5).map(|symbol| (symbol.name, symbol.version)).collect();
    assert!(exported.len() > 400, "{listed}");
    assert_eq!(exported.difference(&ours).collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
}

#[test]
fn attributes_of_what_does_not_go_over_the_network_are_known_by_the_headers_numbers() {
    let answer = |names: &[&str], expected: bool| {
        let statements = names.iter().map(|name| format!("printf(\"%d\\n\", hipDeviceAttribute{name});\n"));
        for (number, name) in printed(&statements.collect::<String>()).lines().zip(names) {
            assert_eq!(attributes::is_not_remote(number.parse().unwrap()), expected, "{name}");
        }
    };
    answer(
        &[
            "CanMapHostMemory",
            "CanUseHostPointerForRegisteredMem",
            "ConcurrentManagedAccess",
            "CooperativeLaunch",
            "CooperativeMultiDeviceLaunch",
            "DirectManagedMemAccessFromHost",
            "HostNativeAtomicSupported",
            "ManagedMemory",
            "MaxSurface1D",
            "MaxTextureCubemapLayered",
            "PageableMemoryAccess",
            "PageableMemoryAccessUsesHostPageTables",
            "MemoryPoolsSupported",
            "HdpMemFlushCntl",
            "HdpRegFlushCntl",
            "CooperativeMultiDeviceUnmatchedFunc",
            "CooperativeMultiDeviceUnmatchedSharedMem",
            "IsLargeBar",
            "CanUseStreamWaitValue",
            "ImageSupport",
            "FineGrainSupport",
        ],
        true,
    );
    answer(
        &[
            "EccEnabled",
            "MaxGridDimZ",
            "MaxThreadsDim",
            "WarpSize",
            "AsicRevision",
            "PhysicalMultiProcessorCount",
            "Integrated",
        ],
        false,
    );
}
