//! `cargo xtask fuzz`: every fuzz target for a while, on its seeds and on what earlier runs found.

mod target;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::command::Command;
use crate::privilege::Privilege;
use crate::refusal::Refusal;
use crate::repository;
use target::{TARGETS, Target};

/// How long each target runs by default.
const USUAL: Duration = Duration::from_secs(60);
/// How many targets run at a time: each keeps one core busy.
const AT_ONCE: usize = 2;

/// Runs one target, or all.
///
/// # Errors
/// A [`Refusal`] for arguments that make no sense; else the first promise that a target saw broken.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (duration, targets) = read(arguments)?;
    let privilege = Privilege::of_this_process().ok();
    build()?;
    run_each(&targets, duration, privilege)
}

/// Runs all, as a part of `cargo xtask test --all`.
///
/// # Errors
/// Fails where [`run`] fails.
pub(crate) fn all(privilege: Privilege) -> Result<()> {
    formatting()?;
    let targets: Vec<_> = TARGETS.iter().collect();
    build()?;
    run_each(&targets, USUAL, Some(privilege))
}

fn read(arguments: &[String]) -> Result<(Duration, Vec<&'static Target>)> {
    let usage =
        || Refusal::new("`cargo xtask fuzz` takes --seconds N and the name of a target, or of none for all");
    let (duration, rest) = match arguments {
        [option, seconds, rest @ ..] if option == "--seconds" => {
            let seconds: u64 = seconds.parse().map_err(|_| usage())?;
            (Duration::from_secs(seconds.max(1)), rest)
        }
        rest => (USUAL, rest),
    };
    let targets = match rest {
        [] => TARGETS.iter().collect(),
        [name] => match TARGETS.iter().find(|target| target.name == name) {
            Some(target) => vec![target],
            None => {
                let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
                return Err(Refusal::new(format!(
                    "there is no fuzz target {name}; there are {}",
                    names.join(", ")
                )));
            }
        },
        _ => return Err(usage()),
    };
    Ok((duration, targets))
}

/// The workspace of the fuzz targets, beneath the repository's top.
const FOLDER: &str = "fuzz";

fn manifest() -> PathBuf {
    repository::top().join(FOLDER).join("Cargo.toml")
}

fn formatting() -> Result<()> {
    Command::new(["cargo", "fmt", "--check", "--manifest-path"]).arguments([manifest()]).run()
}

/// Everything of a run: builds, corpora, what failed.
fn folder() -> PathBuf {
    repository::target().join("fuzz")
}

/// Builds the targets, with the address sanitizer where it links. The flags that this
/// takes are unstable ones, which a stable compiler takes with RUSTC_BOOTSTRAP.
fn build() -> Result<()> {
    let with = |sanitizer: &str| {
        Command::new(["cargo", "fuzz", "build", "--sanitizer", sanitizer, "--fuzz-dir", FOLDER])
            .arguments(["--target-dir".into(), folder()])
            .environment("RUSTC_BOOTSTRAP", "1")
            .run()
    };
    with("address").or_else(|error| {
        println!("{error:#}; once more without a sanitizer");
        with("none")
    })
}

fn run_each(targets: &[&'static Target], duration: Duration, privilege: Option<Privilege>) -> Result<()> {
    println!("{:<13} {:>12} {:>7} {:>8} {:>7}", "target", "executions", "cov", "ft", "corpus");
    let mut broken = Vec::new();
    for together in targets.chunks(AT_ONCE) {
        let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
            let running: Vec<_> = together
                .iter()
                .map(|target| scope.spawn(move || target.run(&folder(), duration, privilege)))
                .collect();
            let joined = running.into_iter().map(|thread| thread.join());
            joined
                .map(|outcome| outcome.unwrap_or_else(|_| bail!("the thread that ran it panicked")))
                .collect()
        });
        for (target, outcome) in together.iter().zip(outcomes) {
            broken.extend(outcome.with_context(|| format!("the fuzz target {}", target.name)).err());
        }
    }
    match broken.len() {
        0 => Ok(()),
        _ => bail!("{}", broken.iter().map(|error| format!("{error:#}")).collect::<Vec<_>>().join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn runs_all_for_a_minute_unless_told_otherwise() {
        let cases: [(&[&str], u64, usize); 4] = [
            (&[], 60, TARGETS.len()),
            (&["bundle"], 60, 1),
            (&["--seconds", "5"], 5, TARGETS.len()),
            (&["--seconds", "0", "args"], 1, 1),
        ];
        for (arguments, seconds, count) in cases {
            let (duration, targets) = read(&owned(arguments)).unwrap();
            assert_eq!((duration.as_secs(), targets.len()), (seconds, count), "{arguments:?}");
        }
    }

    #[test]
    fn what_it_does_not_know_is_refused_by_name() {
        for (arguments, expected) in [
            (&["bundel"][..], "there is no fuzz target bundel; there are bundle, "),
            (&["--seconds", "x"], "`cargo xtask fuzz` takes"),
            (&["--seconds"], "there is no fuzz target --seconds"),
            (&["bundle", "cdi"], "`cargo xtask fuzz` takes"),
        ] {
            let error = read(&owned(arguments)).unwrap_err();
            assert!(error.is::<Refusal>() && error.to_string().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn every_target_is_built_and_has_seeds() {
        let manifest = std::fs::read_to_string(manifest()).unwrap();
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
        for target in TARGETS {
            assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
            assert!(std::fs::read_dir(target.seeds()).unwrap().count() > 1, "{}", target.name);
            assert!(target.dictionary().is_none_or(|dictionary| dictionary.is_file()), "{}", target.name);
        }
    }
}
