//! Where the tests find this GPU's library, and the programs that run on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The folder of `libamdhip64.so.5` and `libamdhip64.so`, for `LD_LIBRARY_PATH`.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("OUT_DIR"))
}

/// The library itself.
pub fn library() -> PathBuf {
    folder().join("libamdhip64.so.5")
}

/// The folder of the programs' sources.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs")
}

/// The names of the programs, each of which ends with `ok` where its result is right.
pub const PROGRAMS: &[&str] = &[
    "arithmetic",
    "functions",
    "lanes",
    "vadd",
    "saxpy",
    "reduction",
    "matmul",
    "stencil",
    "streams",
    "pointers",
    "globals",
    "copy2d",
    "async",
];

/// Compiles a program of hip-remote/tests/programs by Debian's hipcc, unless it is there and newer than its source.
pub fn compile(program: &str) -> PathBuf {
    hipcc(program, program, &["-O3"])
}

/// Compiles a program as [`compile`] does, but without optimisation: other instructions do its work.
pub fn compile_plainly(program: &str) -> PathBuf {
    hipcc(program, &format!("{program}.plain"), &["-O0"])
}

/// Compiles a program's device code alone: a bundle, as hipModuleLoad takes it.
pub fn compile_code_object(program: &str) -> PathBuf {
    hipcc(program, &format!("{program}.hsaco"), &["-O3", "--genco"])
}

/// Compiles a program with further options of hipcc, and links it with another library than this one.
pub fn compile_with(program: &str, options: &[&str], library: &Path, output: &Path) {
    // The programs know which of HIP's names are old. hipcc would link Debian's library as well.
    let all = [&["-O3", "-c", "-Wno-deprecated-declarations"], options].concat();
    let object = hipcc(program, &format!("{program}{}.o", options.concat()), &all);
    let linked = Command::new("c++").arg("-o").args([output, &object, library]).output();
    let linked = linked.unwrap_or_else(|error| panic!("c++: {error}: install it by apt-get install g++"));
    assert!(linked.status.success(), "c++ {program}: {}", String::from_utf8_lossy(&linked.stderr));
}

fn hipcc(program: &str, name: &str, arguments: &[&str]) -> PathBuf {
    // Threads of one process wait for the one that compiles.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let source = sources().join(format!("{program}.hip"));
    let output = folder().join(name);
    let time = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let newest = [time(&source), time(&sources().join("program.h"))].into_iter().max().flatten();
    if newest.is_some() && time(&output) >= newest {
        return output;
    }
    // Tests of several processes may compile one program: each makes a file of its own, and the last rename wins.
    let own = folder().join(format!("{name}.{}", std::process::id()));
    // hipcc leaves folders where it puts its temporary files.
    let temporary = folder().join(format!("{name}.{}.tmp", std::process::id()));
    fs::create_dir_all(&temporary).unwrap_or_else(|error| panic!("{}: {error}", temporary.display()));
    let result = Command::new("hipcc")
        .args(["--offload-arch=gfx90a"])
        .args(arguments)
        .arg("-o")
        .args([&own, &source])
        .env("TMPDIR", &temporary)
        .output();
    let _ = fs::remove_dir_all(&temporary);
    let result = result.unwrap_or_else(|error| panic!("hipcc: {error}: install it by apt-get install hipcc"));
    assert!(
        result.status.success(),
        "hipcc {}: {}",
        source.display(),
        String::from_utf8_lossy(&result.stderr)
    );
    fs::rename(&own, &output).unwrap_or_else(|error| panic!("{}: {error}", output.display()));
    output
}
