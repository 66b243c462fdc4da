//! `cargo xtask bench`: each budget of the design as a ratio taken in one run, on the machine that runs it.

mod apply;
mod bundle;
mod busy;
mod daemon;
mod detect;
mod explain;
mod exporter;
mod fleet;
mod machine;
mod programs;
mod report;
mod scrape;
mod slow_machine;
mod timing;
mod wrapper;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::refusal::Refusal;
use crate::{static_program, wrapper_build};
use report::Report;

/// What the command line asked for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// Timed runs of each program in each situation of the wrapper; a tenth of it for detect.
    runs: usize,
    wrapper: Option<PathBuf>,
    rocworker: Option<PathBuf>,
    exporter: Option<PathBuf>,
    /// A part of the name of what is wanted, and nothing but that: of the wrapper's situations, detect, apply, daemon,
    /// explain, fleet, scrape.
    only: Option<String>,
    /// A tool with its options, the rest of the command line, under which the wrapper is run instead of being timed.
    under: Option<Vec<String>>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options =
            Self { runs: 2_000, wrapper: None, rocworker: None, exporter: None, only: None, under: None };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            if name == "--under" {
                options.under = Some(rest.by_ref().cloned().collect());
                break;
            }
            if !["--runs", "--wrapper", "--rocworker", "--exporter", "--only"].contains(&name.as_str()) {
                return Err(Refusal::new(format!("`cargo xtask bench` does not know {name}")));
            }
            let value = rest.next().ok_or_else(|| Refusal::new(format!("{name} needs a value")))?;
            match name.as_str() {
                "--runs" => {
                    options.runs = value.parse().ok().filter(|runs| *runs >= 10).ok_or_else(|| {
                        Refusal::new(format!("--runs {value}: give a number of at least 10"))
                    })?;
                }
                "--wrapper" => options.wrapper = Some(program(value)?),
                "--rocworker" => options.rocworker = Some(program(value)?),
                "--exporter" => options.exporter = Some(program(value)?),
                _ => options.only = Some(value.clone()),
            }
        }
        Ok(options)
    }
}

fn program(given: &str) -> Result<PathBuf> {
    std::fs::canonicalize(given).map_err(|error| Refusal::new(format!("{given}: {error}")))
}

/// Measures, prints, and fails when an enforced budget is over or could not be measured.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let work = tempfile::Builder::new().prefix("rocworker-bench-").tempdir().context("making a folder")?;
    let wrapper = options.wrapper.map_or_else(wrapper_build::build, Ok)?;
    let rocworker = options.rocworker.map_or_else(static_program::release, Ok)?;
    let shims = programs::build(work.path())?;
    let only = options.only.as_deref().unwrap_or_default();
    if let Some(tool) = &options.under {
        if tool.is_empty() {
            return Err(Refusal::new("--under needs a tool: --under strace -c".to_owned()));
        }
        return wrapper::watch(&wrapper, &rocworker, &shims, work.path(), only, tool);
    }

    let mut report = Report::default();
    // As install(1) leaves it. A linker writes a file piece by piece, and then the page cache has it in small pieces too:
    // each call maps them one by one, which takes a tenth of the time of all.
    let installed = work.path().join("runc-amd-wrapper");
    std::fs::copy(&wrapper, &installed).with_context(|| format!("copying {}", wrapper.display()))?;
    wrapper::measure(&installed, &rocworker, &shims, work.path(), options.runs, only, &mut report)?;
    let runs = (options.runs / 10).max(10);
    if "detect".contains(only) {
        detect::measure(&rocworker, work.path(), runs, &mut report)?;
    }
    if "apply".contains(only) {
        apply::measure(&rocworker, work.path(), runs, &mut report);
    }
    if "daemon".contains(only) {
        daemon::measure(&rocworker, work.path(), runs, &mut report);
    }
    if "explain".contains(only) {
        explain::measure(&rocworker, work.path(), runs, &mut report);
    }
    if "fleet".contains(only) {
        fleet::measure(&rocworker, &mut report);
    }
    if "scrape".contains(only) {
        let exporter = options.exporter.map_or_else(static_program::release_exporter, Ok)?;
        scrape::measure(&exporter, work.path(), runs, &mut report);
    }

    println!("\n{}", report::about_this_machine()?);
    println!("{} runs of each program in each situation of the wrapper; p50.\n", options.runs);
    println!("{report}");
    let failed = report.failed();
    if !failed.is_empty() {
        bail!("over an enforced budget, or not measured: {}", failed.join("; "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options> {
        Options::parse(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options_have_defaults_and_a_program_that_is_not_there_is_refused_by_name() {
        let default =
            Options { runs: 2_000, wrapper: None, rocworker: None, exporter: None, only: None, under: None };
        assert_eq!(parse(&[]).unwrap(), default);
        let given =
            parse(&["--runs", "50", "--wrapper", "/proc/self/exe", "--under", "strace", "-c"]).unwrap();
        assert_eq!((given.runs, given.wrapper.is_some()), (50, true));
        assert_eq!(given.under.unwrap(), ["strace", "-c"]);
        for wrong in
            [&["--runs"][..], &["--runs", "3"], &["--runs", "x"], &["--wrapper", "/not/there"], &["x", "y"]]
        {
            let error = parse(wrong).unwrap_err();
            assert!(
                error.is::<Refusal>() && error.to_string().contains(wrong[0].trim_start_matches("--wrapper"))
            );
        }
    }
}
