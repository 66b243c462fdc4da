//! A minute of hostile calls from 16 threads, under the sanitizers.
//!
//! `cargo xtask test --all` builds the library for each of them, with the sanitizer's runtime beside it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use layout::{Machine, Nodes};
use support::real;
use support::said::Said;

use crate::c_programs::compile;

/// Compiles C for a sanitizer and links it without gcc's runtime, of which a process can have but one.
fn sanitized(sanitizer: &str, file: &str, options: &[&str], link: &[&OsStr], to: &Path) {
    let object = to.with_extension("o");
    let sanitize = format!("-fsanitize={sanitizer}");
    compile(file, &object, &[&["-c", "-fPIC", &sanitize], options].concat());
    let mut gcc = Command::new("gcc");
    gcc.arg(object).args(link).args(["-pthread", "-ldl", "-lm", "-lrt", "-o"]).arg(to);
    Said::from(gcc.output().unwrap()).well();
}

/// Runs the hostile program, with a sanitizer's runtime in it, on a machine of 64 devices.
fn hostile(sanitizer: &str, runtime: &Path, library: &Path, seconds: &str) -> Said {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("hostile");
    let whole = ["-rdynamic", "-Wl,--whole-archive"].map(OsStr::new);
    let link = [&whole[..], &[runtime.as_os_str(), OsStr::new("-Wl,--no-whole-archive")]].concat();
    sanitized(sanitizer, "hostile.c", &[], &link, &program);
    let machine = place.path().join("machine");
    fs::create_dir(&machine).unwrap();
    Machine::instinct(8, 8).lay_out(&machine, Nodes::Recorded).unwrap();
    let mut run = Command::new(program);
    run.arg(library).args([seconds, "16"]).env("ACCELERATOR_AMD_ROOT", machine);
    run.output().unwrap().into()
}

/// The library calls the sanitizer, which otherwise finds nothing; and hostile calls find nothing.
fn nothing_is_found(provider: &Path, sanitizer: &str, calls: &str) {
    let folder = provider.join(sanitizer);
    let (library, runtime) = (folder.join("libaccelerator_amd.so"), folder.join("runtime.a"));
    let content = fs::read(&library).unwrap();
    assert!(content.windows(calls.len()).any(|bytes| bytes == calls.as_bytes()), "{sanitizer}");
    let said = hostile(sanitizer, &runtime, &library, "60");
    assert_eq!(said.stderr, "", "{}", said.stdout);
    assert!(said.well().ends_with("\nfaults: 0\n"));
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_address_sanitizer_finds_nothing_in_a_minute_of_hostile_calls() {
    let Some([provider]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    nothing_is_found(&provider, "address", "__asan_init");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_thread_sanitizer_finds_nothing_in_a_minute_of_hostile_calls_but_a_race_where_there_is_one() {
    let Some([provider]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    nothing_is_found(&provider, "thread", "__tsan_read8");
    let place = tempfile::tempdir().unwrap();
    let stub = place.path().join("stub.so");
    sanitized("thread", "stub.c", &["-DBROKEN=RACE"], &[OsStr::new("-shared")], &stub);
    let said = hostile("thread", &provider.join("thread/runtime.a"), &stub, "1").badly();
    assert!(said.contains("ThreadSanitizer: data race"), "{said}");
}
