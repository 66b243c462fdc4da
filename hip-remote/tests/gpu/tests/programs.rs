//! Runs unmodified programs of hipcc on the tests' GPU. Each compares its result with plain C.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use test_gpu::isa::Instruction;
use test_gpu::{built, compile};

fn run(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", built::folder()).envs(environment.iter().copied());
    command.output().unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn each_program_computes_what_plain_c_computes() {
    for program in built::PROGRAMS {
        let compiled = compile(program);
        let mut results = Vec::new();
        for size in ["1", "64", "150", "333"] {
            let output = run(&compiled, &[size], &[]);
            let text = printed(&output);
            assert!(output.status.success() && text.starts_with("ok "), "{program} {size}: {text}");
            results.push(text);
        }
        results.dedup();
        assert!(results.len() > 1, "{program} has one checksum for all sizes");
    }
}

#[test]
fn a_program_without_optimisation_computes_what_it_computes_with_it() {
    for program in ["arithmetic", "functions", "lanes", "reduction", "pointers"] {
        let [plain, optimised] =
            [built::compile_plainly(program), compile(program)].map(|compiled| run(&compiled, &["200"], &[]));
        assert!(printed(&plain).starts_with("ok "), "{program}: {}", printed(&plain));
        assert_eq!(printed(&plain), printed(&optimised), "{program}");
    }
}

#[test]
fn the_null_stream_orders_streams_as_hip_says() {
    let output = run(&compile("order"), &[], &[("TEST_GPU_SLOW_MS", "50")]);
    assert_eq!(printed(&output), "ok\n");
}

#[test]
fn what_hip_says_of_devices_pointers_and_kernels_holds_together() {
    let output = run(&compile("queries"), &[], &[]);
    assert_eq!(printed(&output), "ok\n");
}

#[test]
fn each_device_has_its_own_memory_and_variables() {
    let output = run(&compile("devices"), &[], &[("TEST_GPU_DEVICES", "2")]);
    assert_eq!(printed(&output), "ok\n");
}

#[test]
fn an_error_comes_where_hip_says_and_stays() {
    let output = run(&compile("faults"), &[], &[]);
    let text = printed(&output);
    assert!(output.status.success() && text.starts_with("ok\n"), "{text}");
    assert!(text.contains("a lane reached for 4 bytes at 0x10, which nobody has allocated"), "{text}");
}

/// vadd's code object, with a change to the one instruction whose text begins so.
fn changed_vadd(begins: &str, change: impl Fn(u32) -> u32) -> Vec<u8> {
    let mut bytes = fs::read(built::compile_code_object("vadd")).expect("the code object");
    let places: Vec<usize> = (0..bytes.len() - 8)
        .step_by(4)
        .filter(|at| {
            let words =
                [0, 4].map(|i| u32::from_le_bytes(bytes[at + i..at + i + 4].try_into().expect("four bytes")));
            Instruction::decode(&words).is_some_and(|instruction| instruction.text().starts_with(begins))
        })
        .collect();
    let [place] = places[..] else { panic!("vadd has {} of {begins}", places.len()) };
    let word = u32::from_le_bytes(bytes[place..place + 4].try_into().expect("four bytes"));
    bytes[place..place + 4].copy_from_slice(&change(word).to_le_bytes());
    bytes
}

fn results(code_object: &[u8], name: &str) -> Output {
    let file = built::folder().join(format!("{name}.{}.hsaco", std::process::id()));
    fs::write(&file, code_object).expect("a file beside the library");
    let output = run(&compile("module"), &[file.to_str().expect("a path of UTF-8")], &[]);
    fs::remove_file(&file).expect("the file");
    output
}

fn hold(output: &Output, expected: impl Fn(f64, f64) -> f64) {
    assert!(output.status.success(), "{}", printed(output));
    let mut lines = 0;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let numbers: Vec<f64> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
        assert_eq!(numbers[2], expected(numbers[0], numbers[1]), "{line}");
        lines += 1;
    }
    assert_eq!(lines, 300);
}

#[test]
fn one_changed_instruction_changes_the_result() {
    let original = fs::read(built::compile_code_object("vadd")).expect("the code object");
    hold(&results(&original, "original"), |a, b| a + b);
    // VOP2's codes of v_mul_f32 and v_max_f32, in which the order of the operands does not matter either.
    for (code, expected) in [(5, (|a, b| a * b) as fn(f64, f64) -> f64), (11, f64::max)] {
        let changed = changed_vadd("v_add_f32_e32 ", |word| word & !(0x3f << 25) | code << 25);
        hold(&results(&changed, &format!("code{code}")), expected);
    }
}

#[test]
fn an_unknown_instruction_is_named_and_ends_the_launch() {
    // VOP2 has no instruction of the code 0x3e.
    let changed = changed_vadd("v_add_f32_e32 ", |word| word & !(0x3f << 25) | 0x3e << 25);
    let output = results(&changed, "unknown");
    let text = printed(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("this interpreter does not know the instruction 0x7"), "{text}");
    assert!(text.contains("hipErrorLaunchFailure"), "{text}");
}

#[test]
fn the_environment_shapes_the_gpu() {
    let vadd = compile("vadd");
    let crashed = run(&vadd, &[], &[("TEST_GPU_CRASH_AFTER", "1")]);
    assert!(printed(&crashed).contains("TEST_GPU_CRASH_AFTER ends the process at launch 1"));
    assert!(!crashed.status.success());
    let small = run(&vadd, &["2000000"], &[("TEST_GPU_MEMORY", "20000000")]);
    assert!(printed(&small).contains("hipErrorOutOfMemory"), "{}", printed(&small));
    let none = run(&vadd, &[], &[("TEST_GPU_DEVICES", "0")]);
    assert!(
        printed(&none).contains("hipErrorInvalidDevice") || printed(&none).contains("hipErrorNoDevice"),
        "{}",
        printed(&none)
    );
    let report = built::folder().join(format!("report.{}", std::process::id()));
    let well = run(&vadd, &[], &[("TEST_GPU_REPORT", report.to_str().expect("a path of UTF-8"))]);
    assert!(well.status.success());
    let text = fs::read_to_string(&report).expect("the report");
    fs::remove_file(&report).expect("the report");
    assert_eq!(text, "allocations 0\npinned 0\nregistered 0\nstreams 0\nevents 0\nmodules 0\n");
}

/// The symbols that a library gives, with their versions.
fn symbols(library: &Path) -> Vec<String> {
    let output =
        Command::new("nm").args(["-D", "--defined-only", "--with-symbol-versions"]).arg(library).output();
    let output = output.expect("nm: install it by apt-get install binutils");
    assert!(output.status.success(), "{}", printed(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().filter_map(|line| line.rsplit(' ').next().map(str::to_string)).collect()
}

#[test]
fn each_symbol_has_the_version_that_debian_gives_it() {
    let real = symbols(Path::new("/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"));
    let ours = symbols(&test_gpu::library());
    assert!(ours.len() > 100, "{ours:?}");
    let others: Vec<_> = ours.iter().filter(|symbol| !real.contains(symbol)).collect();
    assert!(others.is_empty(), "Debian's library does not have {others:?}");
}
