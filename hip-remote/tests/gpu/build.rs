//! Makes `libamdhip64.so.5`: the crate as an archive, always optimised, and the C files that AMD's header checks.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) {
    let status = command.status();
    let well = status.as_ref().is_ok_and(|status| status.success());
    assert!(well, "{command:?}: {status:?}");
}

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=build.rs");
    let output = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let archive = output.join("libtest_gpu.a");
    let rustc = env::var_os("RUSTC").unwrap();
    run(Command::new(rustc)
        .args(["--edition=2024", "--crate-name=test_gpu", "--crate-type=staticlib", "--cap-lints=allow"])
        .args(["-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=4", "src/lib.rs", "-o"])
        .arg(&archive));
    let sources = fs::read_dir("c").unwrap().map(|entry| entry.unwrap().path());
    let sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    let library = output.join("libamdhip64.so.5");
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-D__HIP_PLATFORM_AMD__"])
        .args(["-Wl,-soname,libamdhip64.so.5", "-Wl,--version-script,c/symbols.map", "-Wl,-z,defs", "-o"])
        .arg(&library)
        .args(sources)
        .arg(&archive)
        .args(["-lm", "-lpthread", "-ldl"]));
    link(&library, &output.join("libamdhip64.so"));
}

/// Programs that are linked or opened by the bare name find the library too.
fn link(library: &Path, name: &Path) {
    let _ = fs::remove_file(name);
    std::os::unix::fs::symlink(library.file_name().unwrap(), name).unwrap();
}
