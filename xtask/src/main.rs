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
mod metrics;
mod pci_ids;
mod picture;
mod privilege;
mod programs;
mod refusal;
mod repository;
mod test;

use std::process::ExitCode;

use refusal::Refusal;

const USAGE: &str = "\
usage: cargo xtask test [--yes] [--changed | --all]
           installs what the tests of real components need (asks first, unless CI is set or --yes is given),
           then runs formatting, lints, the doc build and the tests; what would be skipped fails.
           --changed: only what a change since the main branch reaches, and nothing slow: before each commit.
           --all: and what is slow: ignored tests, the wrapper built with glibc and for Arm, a minute of each fuzz
           target
       cargo xtask test [--yes] [--all] -- ARGUMENT…
           installs and builds the same, then runs only the tests that these arguments of `cargo nextest run` select
       cargo xtask bench [wrapper | detect | apply | daemon | fleet | scrape]…
           prints each budget of the design as a ratio taken in one run; fails when one is over
       cargo xtask dist
           makes the Debian package, the tarball, the program for tasks, the bill of materials, their
           checksums, and the folder that charmcraft packs, in target/dist
       cargo xtask fuzz [--seconds N] [TARGET]
           runs each fuzz target, or one, for N seconds (default 60); docs/dev/fuzzing.md says what they check
       cargo xtask kernel SUITE
           fetches the kernel of a suite of Debian's into the cache folder; the full run does so for its two
       cargo xtask charmcraft
           fetches charmcraft into the cache folder, for the test that packs the charm; the full run does so
       cargo xtask picture
           draws docs/demo.svg from what the demo prints, and docs/top.svg from what top shows
       cargo xtask metrics
           writes docs/metrics.md from the table of metrics in crates/telemetry
       cargo xtask captures [NAME…]
           lays the machines of tests/captures out in target/captures, and names the command that reads each
       cargo xtask pci-ids FILE
           takes the names of chips from a newer PCI id database (/usr/share/misc/pci.ids) into crates/inventory/src/names/pci.ids";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((task, rest)) if task == "test" => test::run(rest),
        Some((task, rest)) if task == "bench" => bench::run(rest),
        Some((task, [])) if task == "dist" => dist::run(),
        Some((task, rest)) if task == "fuzz" => fuzz::run(rest),
        Some((task, [suite])) if task == "kernel" => {
            test::fetch::kernels::fetch(suite).map(|place| println!("{} holds the kernel", place.display()))
        }
        Some((task, [])) if task == "charmcraft" => test::fetch::charmcraft()
            .map(|place| println!("{} -m charmcraft", place.join("bin/python").display())),
        Some((task, rest)) if task == "picture" => picture::run(rest),
        Some((task, [])) if task == "metrics" => metrics::run(),
        Some((task, rest)) if task == "captures" => captures::run(rest),
        Some((task, rest)) if task == "pci-ids" => pci_ids::run(rest),
        Some((task, _)) if matches!(task.as_str(), "help" | "--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(Refusal::new(USAGE)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            if error.is::<Refusal>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
