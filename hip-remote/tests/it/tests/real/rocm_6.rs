use std::path::Path;
use std::process::Command;

use hip_remote_tests::{Program, Worker, built, ended, sid};

#[test]
fn real_program_with_the_headers_of_rocm_6_computes_with_the_library_of_its_release() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let mut gcc = Command::new("gcc");
    gcc.args(["-Wall", "-Werror", "-isystem"])
        .arg(sid().join("usr/include"))
        .arg("-o")
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/rocm_6.c"))
        .arg(built().join("lib/libamdhip64.so.6"));
    ended(&mut gcc).well();
    let worker = Worker::start();
    let code = test_gpu::built::compile_code_object("vadd");
    assert_eq!(ended(&mut Program::on(&worker.unix()).command([&program, &code])).well(), "ok\n");
}
