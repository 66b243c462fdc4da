//! `cargo xtask bench`: each budget of the design as a ratio taken in one run, on the machine that runs it.

mod apply;
mod bundle;
mod busy;
mod daemon;
mod detect;
mod exporter;
mod fleet;
mod machine;
mod report;
mod runtime;
mod scrape;
mod timing;
mod wrapper;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::programs::Programs;
use crate::refusal::Refusal;
use report::Report;

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// The number of timed runs of each program; runc gets a tenth of them.
    runs: usize,
    rocworker: Option<PathBuf>,
    exporter: Option<PathBuf>,
    wrapper: Option<PathBuf>,
    /// A part of the name of what is wanted, and nothing but that: of the wrapper's rows, detect, apply, daemon, fleet,
    /// scrape.
    only: String,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options =
            Self { runs: 200, rocworker: None, exporter: None, wrapper: None, only: String::new() };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| Refusal::new(format!("{name} needs a value")));
            match name.as_str() {
                "--runs" => {
                    let value = value()?;
                    options.runs = value.parse().ok().filter(|runs| *runs >= 10).ok_or_else(|| {
                        Refusal::new(format!("--runs {value}: give a number of at least 10"))
                    })?;
                }
                "--wrapper" => options.wrapper = Some(program(value()?)?),
                "--rocworker" => options.rocworker = Some(program(value()?)?),
                "--exporter" => options.exporter = Some(program(value()?)?),
                "--only" => options.only = value()?.clone(),
                _ => return Err(Refusal::new(format!("`cargo xtask bench` does not know {name}"))),
            }
        }
        Ok(options)
    }
}

fn program(given: &str) -> Result<PathBuf> {
    std::fs::canonicalize(given).map_err(|error| Refusal::new(format!("{given}: {error}")))
}

/// Measures, prints, and fails when a budget is over or could not be measured.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Options { runs, rocworker, exporter, wrapper, only } = Options::parse(arguments)?;
    let work = tempfile::Builder::new().prefix("rocworker-bench-").tempdir().context("making a folder")?;
    let work = work.path();
    let Programs { rocworker, exporter, wrapper } = Programs::given_or_built([rocworker, exporter, wrapper])?;
    let mut report = Report::default();
    wrapper::measure(&wrapper, &rocworker, work, runs, &only, &mut report)?;
    if "detect".contains(&only) {
        detect::measure(&rocworker, work, runs, &mut report)?;
    }
    if "apply".contains(&only) {
        apply::measure(&rocworker, work, runs, &mut report);
    }
    if "daemon".contains(&only) {
        daemon::measure(&rocworker, work, runs, &mut report);
    }
    if "fleet".contains(&only) {
        fleet::measure(&rocworker, &mut report);
    }
    if "scrape".contains(&only) {
        scrape::measure(&exporter, work, runs, &mut report)?;
    }

    println!("\n{}", report::about_this_machine()?);
    println!("{runs} runs of each program; p50.\n");
    println!("{report}");
    let failed = report.failed();
    if !failed.is_empty() {
        bail!("over a budget, or not measured: {}", failed.join("; "));
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
        assert_eq!(parse(&[]).unwrap().runs, 200);
        let given = parse(&["--runs", "50", "--wrapper", "/proc/self/exe", "--only", "detect"]).unwrap();
        assert_eq!((given.runs, given.wrapper.is_some(), given.only.as_str()), (50, true, "detect"));
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
