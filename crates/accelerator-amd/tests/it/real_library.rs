//! The libraries as files: what they export, and what they need.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::real;
use support::said::Said;

/// The libraries, and what was measured upstream of the ABI of each.
const LIBRARIES: [(&str, &str); 2] = [
    ("libaccelerator_amd.so", include_str!("../abi/abi-of-today.json")),
    ("libaccelerator_amd_v1.so", include_str!("../abi/abi-of-the-source.json")),
];

fn printed(program: &str, option: &str, library: &Path) -> String {
    Said::from(Command::new(program).args([option, "--wide"]).arg(library).output().unwrap()).well()
}

#[test]
fn real_each_library_exports_its_abi_and_no_other_name() {
    let Some([provider]) = real::require_made(["ROCWORKER_PROVIDER"], &["readelf"]) else { return };
    for (library, abi) in LIBRARIES {
        let abi: Value = serde_json::from_str(abi).unwrap();
        let expected: BTreeSet<&str> =
            abi["functions"].as_object().unwrap().keys().map(String::as_str).collect();
        let table = printed("readelf", "--dyn-syms", &provider.join(library));
        // Num: Value Size Type Bind Vis Ndx Name
        let symbols = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let exported: BTreeSet<&str> = symbols
            .filter(|fields| {
                fields.len() == 8 && fields[0].ends_with(':') && fields[6] != "UND" && fields[6] != "Ndx"
            })
            .map(|fields| fields[7])
            .collect();
        assert_eq!(exported, expected, "{library}");
    }
}

#[test]
fn real_each_library_needs_libc_alone_and_no_glibc_above_2_34() {
    let Some([provider]) = real::require_made(["ROCWORKER_PROVIDER"], &["readelf"]) else { return };
    for (library, _) in LIBRARIES {
        let library = provider.join(library);
        let dynamic = printed("readelf", "--dynamic", &library);
        let needed: Vec<&str> = dynamic
            .lines()
            .filter(|line| line.contains("(NEEDED)"))
            .filter_map(|line| line.split(['[', ']']).nth(1))
            .filter(|name| !name.starts_with("ld-linux"))
            .collect();
        assert_eq!(needed, ["libc.so.6"], "{}", library.display());
        assert!(dynamic.contains("NODELETE"), "its threads outlive a dlclose: {dynamic}");
        let versions = printed("readelf", "--version-info", &library);
        let minors: Vec<u32> = versions
            .split("GLIBC_2.")
            .skip(1)
            .filter_map(|text| text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
            .collect();
        assert!(minors.iter().max().is_some_and(|minor| *minor <= 34), "{}: {versions}", library.display());
    }
}

#[test]
fn real_pkg_config_finds_header_and_library() {
    let Some([provider]) = real::require_made(["ROCWORKER_PROVIDER"], &["pkg-config", "gcc"]) else { return };
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "accelerator_amd"])
        .env("PKG_CONFIG_PATH", &provider)
        .output()
        .unwrap();
    let flags = Said::from(flags).well();
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["use.c", "use"].map(|name| folder.path().join(name));
    std::fs::write(&source, "#include <accelerator_amd.h>\nint main(void) { return (int)AccelInit(); }\n")
        .unwrap();
    let mut gcc = Command::new("gcc");
    gcc.arg(&source).args(flags.split_whitespace()).arg("-o").arg(&program);
    Said::from(gcc.output().unwrap()).well();
    Said::from(Command::new(&program).env("LD_LIBRARY_PATH", &provider).output().unwrap()).well();
}

/// A library that is linked as the provider's are, and panics.
const PANICS: &str = r#"
#[unsafe(no_mangle)]
pub extern "C" fn caught() -> i32 {
    std::panic::set_hook(Box::new(|_| {}));
    std::panic::catch_unwind(|| panic!("for the test")).is_err().into()
}
"#;

#[test]
fn real_a_panic_is_caught_by_the_unwinder_that_the_libraries_carry() {
    let Some([provider]) = real::require_made(["ROCWORKER_PROVIDER"], &["rustc", "gcc", "readelf"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [source, library, caller, program] =
        ["panics.rs", "libpanics.so", "caller.c", "caller"].map(|name| folder.path().join(name));
    std::fs::write(&source, PANICS).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "panics"]);
    rustc.args(["--target", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH), "-L"]);
    rustc.arg(format!("native={}", provider.join("link").display())).arg("-o").args([&library, &source]);
    Said::from(rustc.output().unwrap()).well();
    assert!(!printed("readelf", "--dynamic", &library).contains("libgcc_s"));
    std::fs::write(&caller, "int caught(void);\nint main(void) { return caught() == 1 ? 0 : 1; }\n").unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args([&caller, &library]).arg("-o").arg(&program);
    Said::from(gcc.output().unwrap()).well();
    Said::from(Command::new(&program).env("LD_LIBRARY_PATH", folder.path()).output().unwrap()).well();
}
