//! The checks of this repository, and its measurements.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a person or CI reads what a check says")]
#![allow(
    clippy::disallowed_methods,
    reason = "xtask drives the build on the developer's own machine; it is no part of the product"
)]

mod bench;
mod captures;
mod command;
#[cfg(test)]
mod dependencies;
mod dist;
#[cfg(test)]
mod documents;
mod fuzz;
mod hip_remote;
mod metrics;
mod pci_ids;
mod picture;
mod privilege;
mod programs;
mod provider;
mod refusal;
mod repository;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use refusal::Refusal;

/// A task of `cargo xtask`.
struct Task {
    name: &'static str,
    /// What `--help` prints: how the task is called, and what it does.
    help: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const TASKS: [Task; 12] = [
    Task {
        name: "test",
        help: "\
cargo xtask test [--yes] [--changed | --all]
    installs what the tests of real components need (asks first, unless CI is set or --yes is given),
    then runs formatting, lints, the doc build and the tests; what would be skipped fails.
    --changed: only what a change since the main branch reaches, and nothing slow: before each commit.
    --all: and what is slow: ignored tests, the wrapper built with glibc and for Arm, a minute of each fuzz
    target
cargo xtask test [--yes] [--all] -- ARGUMENT…
    installs and builds as above, then runs only the tests that these arguments of `cargo nextest run` select:
        cargo xtask test -- documents                 the tests with `documents` in their names
        cargo xtask test -- -E 'package(gpu-health)'  the tests of a package
        cargo xtask test -- -E 'test(/^doctor::/)'    the tests of a folder of tests/it",
        run: test::run,
    },
    Task {
        name: "bench",
        help: "\
cargo xtask bench [wrapper | detect | apply | daemon | fleet | scrape | device-plugin | provider |
    hip-remote]…
    prints each budget of the design as a ratio taken in one run; fails when one is over",
        run: bench::run,
    },
    Task {
        name: "dist",
        help: "\
cargo xtask dist
    makes the Debian package, the tarball, the program for tasks, the bill of materials, their
    checksums, and the folder that charmcraft packs, in target/dist",
        run: dist::run,
    },
    Task {
        name: "provider",
        help: "\
cargo xtask provider
    makes TensorFusion's provider, libaccelerator_amd.so and libaccelerator_amd_v1.so, and their headers, in
    target/provider",
        run: provider::run,
    },
    Task {
        name: "hip-remote",
        help: "\
cargo xtask hip-remote [--dev]
    makes HIP over the network in target/hip-remote: lib has the libraries that programs of ROCm 5, 6 and 7 load,
    bin has rocworker-hip-run and rocworker-hip-worker. --dev builds faster and does not optimise",
        run: hip_remote::run,
    },
    Task {
        name: "fuzz",
        help: "\
cargo xtask fuzz [--seconds N] [TARGET]
    runs each fuzz target, or one, for N seconds (default 60); docs/dev/fuzzing.md says what they check",
        run: fuzz::run,
    },
    Task {
        name: "kernel",
        help: "\
cargo xtask kernel SUITE
    fetches the kernel of a suite of Debian's into the cache folder; the full run does so for its two",
        run: test::fetch::kernels::run,
    },
    Task {
        name: "charmcraft",
        help: "\
cargo xtask charmcraft
    fetches charmcraft into the cache folder, for the test that packs the charm; the full run does so",
        run: test::fetch::run_charmcraft,
    },
    Task {
        name: "picture",
        help: "\
cargo xtask picture
    draws docs/demo.svg from what the demo prints, and docs/top.svg from what top shows",
        run: picture::run,
    },
    Task {
        name: "metrics",
        help: "\
cargo xtask metrics
    writes the lists of docs/metrics.md from the table in crates/telemetry",
        run: metrics::run,
    },
    Task {
        name: "captures",
        help: "\
cargo xtask captures [NAME…]
    lays the machines of tests/captures out in target/captures, and \"demo\": a synthetic one with readings, processes and
    a hang. Names the commands that read each",
        run: captures::run,
    },
    Task {
        name: "pci-ids",
        help: "\
cargo xtask pci-ids FILE
    takes the names of chips from a newer PCI id database (/usr/share/misc/pci.ids) into
    crates/inventory/src/names/pci.ids",
        run: pci_ids::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            if error.is::<Refusal>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let is_help = |word: &String| matches!(word.as_str(), "help" | "--help" | "-h");
    let Some((name, rest)) = arguments.split_first() else {
        return Err(Refusal::new(all_help()));
    };
    if is_help(name) {
        println!("{}", all_help());
        return Ok(());
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        return Err(Refusal::new(format!("there is no task {name}\n{}", all_help())));
    };
    // What stands behind `--` is nextest's.
    if rest.iter().take_while(|word| *word != "--").any(is_help) {
        println!("{}", task.help);
        return Ok(());
    }
    (task.run)(rest)
}

fn all_help() -> String {
    TASKS.map(|task| task.help).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_prints_its_help_and_runs_nothing() {
        for task in TASKS {
            assert!(task.help.starts_with(&format!("cargo xtask {}", task.name)), "{}", task.help);
            for flag in ["--help", "-h", "help"] {
                run(&[task.name.to_owned(), flag.to_owned()]).unwrap();
            }
        }
    }

    #[test]
    fn what_is_no_task_is_refused_with_the_help() {
        for arguments in [&[][..], &["tset".to_owned()]] {
            let refused = run(arguments).unwrap_err();
            assert!(refused.is::<Refusal>() && refused.to_string().ends_with(&all_help()), "{refused}");
        }
    }
}
