//! What TensorFusion's hypervisor sees of a provider: a program in Go loads it by purego, as the hypervisor does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use layout::{Machine, Nodes};
use support::said::Said;
use support::{captures, real};

use crate::c_programs::compile;

/// The measured ABI, of which the program in Go makes its structs.
const ABI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/abi/abi-of-today.json");

/// Where `cargo xtask test` has put Go and what it imports.
struct Go {
    root: PathBuf,
    path: PathBuf,
}

impl Go {
    /// Needs no C compiler: purego does without cgo. Debian's Go reads the sources where the package puts them.
    fn build(&self, into: &Path) -> PathBuf {
        let program = into.join("provider");
        let build = Command::new(self.root.join("bin/go"))
            .args(["build", "-trimpath", "-o"])
            .arg(&program)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go"))
            .env("GOROOT", &self.root)
            .env("GOPATH", &self.path)
            .env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"))
            .env("GO111MODULE", "off")
            .env("GOENV", "off")
            .env("GOFLAGS", "")
            .env("GOTOOLCHAIN", "local")
            .env("CGO_ENABLED", "0")
            .output()
            .unwrap();
        Said::from(build).well();
        program
    }
}

/// The stub provider, broken by a rule of its own.
fn broken(rule: &str) -> String {
    format!("#define BROKEN {rule}\n#include \"stub.c\"\n")
}

/// The stub provider with another function of this name.
fn replaced(name: &str, arguments_and_body: &str) -> String {
    format!(
        "#define {name} Replaced\n{}#undef {name}\nAccelResult {name}{arguments_and_body}\n",
        broken("NOTHING")
    )
}

/// How the hypervisor loads a library. `topology` is whose DeviceTopoNode it has.
fn load(program: &Path, topology: &str, library: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["-topology", topology, "-abi", ABI]).arg(library).env("ACCELERATOR_AMD_TOPOLOGY", topology);
    command
}

#[test]
fn real_go_sees_of_each_captured_machine_what_c_sees_in_both_layouts() {
    let variables = ["ROCWORKER_GO", "ROCWORKER_GO_PATH", "ROCWORKER_PROVIDER"];
    let Some([root, path, provider]) = real::require_made(variables, &["gcc"]) else { return };
    let place = tempfile::tempdir().unwrap();
    let (library, dump) = (provider.join("libaccelerator_amd.so"), place.path().join("dump"));
    compile("dump.c", &dump, &[]);
    let program = Go { root, path }.build(place.path());
    let mut devices = 0;
    let sixty_four = ("8 cards of 8 partitions", (|| Machine::instinct(8, 8)) as fn() -> Machine);
    for (name, machine) in captures::ALL.into_iter().chain([sixty_four]) {
        let folder = tempfile::tempdir().unwrap();
        machine().lay_out(folder.path(), Nodes::Recorded).unwrap();
        for topology in ["c", "go"] {
            let run = |command: &mut Command| {
                Said::from(command.env("ACCELERATOR_AMD_ROOT", folder.path()).output().unwrap()).well()
            };
            let in_c = run(Command::new(&dump).arg(&library).args(["--topology", topology]));
            let in_go = run(&mut load(&program, topology, &library));
            assert_eq!(in_go, in_c, "{name}, {topology}");
            let has_bandwidth = in_go.contains(".bandwidthBytesPerSec: ");
            assert_eq!(has_bandwidth, topology == "go" && in_go.contains(".peers[0]."), "{name}: {in_go}");
            devices = in_go.lines().filter(|line| line.contains(".basic.uuid: ")).count();
        }
    }
    assert_eq!(devices, 64, "of the last machine");
}

#[test]
fn real_go_ends_where_a_provider_would_end_the_hypervisor() {
    let Some([root, path]) = real::require_made(["ROCWORKER_GO", "ROCWORKER_GO_PATH"], &["gcc"]) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let program = Go { root, path }.build(place.path());
    let run = |code: &str| {
        let (source, library) = (place.path().join("provider.c"), place.path().join("provider.so"));
        fs::write(&source, code).unwrap();
        compile(source.to_str().unwrap(), &library, &["-shared", "-fPIC"]);
        Said::from(load(&program, "c", &library).output().unwrap())
    };
    run(&broken("NOTHING")).well();
    let too_many = "(ProcessInformation *infos, size_t maximum, size_t *count) {
        (void)infos; *count = maximum + 1; return ACCEL_SUCCESS; }";
    for (code, sentence) in [
        (
            replaced("AccelGetProcessInformation", too_many),
            "1025 processInfos, where there is room for 1024: the hypervisor panics",
        ),
        (
            broken("EXTRA_METRICS"),
            "65 metrics[0].extraMetrics, where there is room for 64: the hypervisor panics",
        ),
        (
            replaced("AccelInit", "(void) { return ACCEL_ERROR_INTERNAL; }"),
            "AccelInit gives 6, where the hypervisor goes on with 0 alone",
        ),
        (broken("LOGS_FATAL"), "the provider ends the hypervisor by its log"),
        (broken("NO_NUL"), "devices[0].basic.uuid does not end in its 64 bytes"),
    ] {
        let said = run(&code).badly();
        assert!(said.contains(sentence), "{code}: {said}");
    }
}
