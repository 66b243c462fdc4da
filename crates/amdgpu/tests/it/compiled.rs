//! C programs around files of the kernel's sources, compiled by gcc.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The folder with a folder for each suite of Debian, in which drivers/ is.
pub(crate) const HEADERS: &str = "ROCWORKER_AMDGPU_HEADERS";
pub(crate) const NEWEST: &str = "trixie-backports";

/// Definitions that the kernel's headers need and do not include.
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

/// The output of a C program. Kernel headers that are missing count as empty.
pub(crate) fn printed(program: &str, headers: &Path) -> String {
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
