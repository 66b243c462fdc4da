use std::ffi::OsString;
use std::path::Path;

use hip_remote_tests::{Program, Worker, ended, python};

/// A program of hip-python that loads a code object and launches its kernel.
pub(crate) fn script() -> [OsString; 3] {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/module.py");
    [python().into(), script.into(), test_gpu::built::compile_code_object("vadd").into()]
}

#[test]
fn real_hip_python_launches_a_kernel_of_a_module() {
    let worker = Worker::start();
    let shown = ended(&mut Program::on(&worker.unix()).command(script())).well();
    assert!(shown.starts_with("ok gfx90a"), "{shown}");
}

#[test]
fn real_hip_python_prefers_no_library_of_rocm_path() {
    let worker = Worker::start();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("lib")).unwrap();
    std::fs::write(folder.path().join("lib/libamdhip64.so"), "no library").unwrap();
    let shown = ended(Program::on(&worker.unix()).command(script()).env("ROCM_PATH", folder.path())).well();
    assert!(shown.starts_with("ok gfx90a"), "{shown}");
}
