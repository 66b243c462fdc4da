//! The tables against AMD's own headers and libraries: Debian 12's of ROCm 5 (5.2.3), which are installed, and those of ROCm 6
//! in Debian sid (6.4.3), which are unpacked.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use hip_abi::memory::{self, Kind, PointerAttributes};
use hip_abi::properties::{self, Layout};
use hip_abi::release::Release;
use hip_abi::{attributes, errors, symbols};

const RELEASES: [Release; 2] = [Release::Rocm5, Release::Rocm6];

/// The folder `usr` of the distribution that has a release.
fn usr(release: Release) -> PathBuf {
    if release == Release::Rocm5 {
        return "/usr".into();
    }
    let tree = std::env::var_os("ROCWORKER_ROCM_SID").map(PathBuf::from);
    tree.filter(|tree| tree.is_dir()).expect(ABSENT).join("usr")
}

const ABSENT: &str = "ROCWORKER_ROCM_SID names no folder: \
    `cargo xtask test` fetches ~/.cache/rocworker-tests/rocm/sid-*/tree and names it";

fn libraries(release: Release) -> PathBuf {
    usr(release).join("lib/x86_64-linux-gnu")
}

/// What a C program prints that knows a release's header and has its library.
fn printed(release: Release, statements: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["a.c", "a"].map(|name| folder.path().join(name));
    let code = format!(
        "#define __HIP_PLATFORM_AMD__\n#include <hip/hip_runtime_api.h>\n#include <stddef.h>\n#include <stdio.h>\n\
         int main(void) {{\n{statements}return 0;\n}}\n"
    );
    std::fs::write(&source, code).unwrap();
    let made = Command::new("gcc")
        // This machine's glibc lacks what sid's library asks for.
        .args(["-w", "-Wl,--allow-shlib-undefined", "-isystem"])
        .args([usr(release).join("include"), source, "-o".into(), program.clone()])
        .arg(libraries(release).join(release.soname()))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // The distribution's own loader, and its glibc.
    let output = Command::new(usr(release).join("lib64/ld-linux-x86-64.so.2"))
        .arg("--library-path")
        .args([libraries(release), program])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn real_properties_lie_where_the_header_puts_them() {
    for (release, layout) in RELEASES.into_iter().zip([Layout::Rocm5, Layout::Rocm6]) {
        let mut statements = String::from("printf(\"%zu\\n\", sizeof(hipDeviceProp_t));\n");
        let mut expected = format!("{}\n", layout.size());
        for (name, range) in properties::fields(layout) {
            let _ = writeln!(
                statements,
                "printf(\"{name} %zu %zu\\n\", offsetof(hipDeviceProp_t, {name}), sizeof(((hipDeviceProp_t *)0)->{name}));"
            );
            let _ = writeln!(expected, "{name} {} {}", range.start, range.len());
        }
        assert_eq!(printed(release, &statements), expected);
    }
}

#[test]
fn real_attributes_of_a_pointer_lie_where_the_header_puts_them() {
    let expected = [
        std::mem::offset_of!(PointerAttributes, kind),
        std::mem::offset_of!(PointerAttributes, device),
        std::mem::offset_of!(PointerAttributes, device_pointer),
        std::mem::offset_of!(PointerAttributes, host_pointer),
        std::mem::offset_of!(PointerAttributes, managed),
        std::mem::offset_of!(PointerAttributes, flags),
        size_of::<PointerAttributes>(),
    ];
    for (release, kind) in RELEASES.into_iter().zip(["memoryType", "type"]) {
        let fields = [kind, "device", "devicePointer", "hostPointer", "isManaged", "allocationFlags"];
        let offsets = fields
            .map(|field| format!("printf(\"%zu \", offsetof(hipPointerAttribute_t, {field}));\n"))
            .concat();
        let printed =
            printed(release, &format!("{offsets}printf(\"%zu\", sizeof(hipPointerAttribute_t));\n"));
        assert_eq!(printed, expected.map(|number| number.to_string()).join(" "));
    }
}

#[test]
fn real_kinds_of_memory_have_the_numbers_of_their_release() {
    let kinds = [(Kind::Host, "Host"), (Kind::Device, "Device"), (Kind::Unregistered, "Unregistered")];
    for release in RELEASES {
        for (kind, name) in kinds {
            let Some(number) = memory::number(release, kind) else { continue };
            let printed = printed(release, &format!("printf(\"%d\", hipMemoryType{name});\n"));
            assert_eq!(printed, number.to_string(), "{release:?} {name}");
        }
    }
}

fn compare_errors(release: Release, call: &str, ours: impl Fn(Release, i32) -> &'static CStr) {
    let printed =
        printed(release, &format!("for (int code = -1; code < 1100; code++) puts({call}(code));\n"));
    assert_eq!(printed.lines().count(), 1101);
    for (code, text) in (-1..).zip(printed.lines()) {
        assert_eq!(ours(release, code).to_str(), Ok(text), "{release:?} {code}");
    }
}

#[test]
fn real_errors_have_the_names_that_the_library_gives() {
    for release in RELEASES {
        compare_errors(release, "hipGetErrorName", errors::name);
    }
}

/// 5.2.3 gave the names as texts.
#[test]
fn real_errors_have_the_texts_that_the_library_of_rocm_6_gives() {
    compare_errors(Release::Rocm6, "hipGetErrorString", errors::text);
}

#[test]
fn real_each_symbol_of_the_library_is_listed_with_its_version() {
    for release in RELEASES {
        let listed = Command::new("nm")
            .args(["-D", "--defined-only", "--with-symbol-versions"])
            .arg(libraries(release).join(release.soname()))
            .output()
            .unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let exported = listed
            .lines()
            .filter_map(|line| line.rsplit(' ').next()?.split_once("@@"))
            .collect::<BTreeSet<_>>();
        let ours: BTreeSet<_> = symbols::of(release).map(|symbol| (symbol.name, symbol.version)).collect();
        assert!(exported.len() > 400, "{listed}");
        assert_eq!(exported.difference(&ours).collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
        if release == Release::Rocm6 {
            // ROCm 5 has symbols of 5.7.1 too.
            assert_eq!(ours.len(), exported.len());
        }
    }
}

#[test]
fn real_attributes_of_what_does_not_go_over_the_network_are_known_by_the_headers_numbers() {
    let answer = |names: &[&str], expected: bool| {
        let statements = names.iter().map(|name| format!("printf(\"%d\\n\", hipDeviceAttribute{name});\n"));
        let statements = statements.collect::<String>();
        for release in RELEASES {
            for (number, name) in printed(release, &statements).lines().zip(names) {
                assert_eq!(
                    attributes::is_not_remote(number.parse().unwrap()),
                    expected,
                    "{release:?} {name}"
                );
            }
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
