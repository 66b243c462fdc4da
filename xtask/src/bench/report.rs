//! Prints the measurements as a table for docs/dev/performance.md.

use std::fmt;

use anyhow::{Context, Result};

use crate::command::Command;

/// A budget of the design with its measurement.
#[derive(Debug)]
struct Row {
    what: String,
    outcome: Result<Outcome>,
    /// The ratio that the design allows.
    limit: f64,
    /// What the ratio refers to, as it stands behind a number: `× 25 ms`.
    unit: &'static str,
}

/// A measurement.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) figures: String,
    pub(crate) ratio: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a row; one that could not be measured has its reason.
    pub(crate) fn add(&mut self, what: &str, outcome: Result<Outcome>, limit: f64, unit: &'static str) {
        self.rows.push(Row { what: what.to_owned(), outcome, limit, unit });
    }

    /// The rows that are over or were not measured: unknown is not good.
    pub(crate) fn failed(&self) -> Vec<&str> {
        let is_good = |row: &&Row| row.outcome.as_ref().is_ok_and(|it| it.ratio <= row.limit);
        self.rows.iter().filter(|row| !is_good(row)).map(|row| row.what.as_str()).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | figures | ratio | budget | verdict |")?;
        writeln!(f, "| --- | --- | --- | --- | --- |")?;
        for Row { what, outcome, limit, unit } in &self.rows {
            let (figures, ratio, verdict) = match outcome {
                Ok(Outcome { figures, ratio }) => {
                    let verdict = if ratio <= limit { "pass" } else { "**over**" };
                    (figures.clone(), format!("{ratio:.2} {unit}"), verdict)
                }
                Err(error) => (format!("{error:#}"), "–".to_owned(), "**not measured**"),
            };
            writeln!(f, "| {what} | {figures} | {ratio} | ≤ {limit} {unit} | {verdict} |")?;
        }
        Ok(())
    }
}

/// The date and the machine, in one line of Markdown.
pub(crate) fn about_this_machine() -> Result<String> {
    let said = |argv: &[&str]| Ok::<_, anyhow::Error>(Command::new(argv).read()?.trim().to_owned());
    let processors = std::fs::read_to_string("/proc/cpuinfo").context("reading /proc/cpuinfo")?;
    let name = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let (date, kernel, cores) = (said(&["date", "-u", "+%F"])?, said(&["uname", "-sr"])?, said(&["nproc"])?);
    Ok(format!(
        "**{date}**, {}, {cores} cores, {kernel}.",
        name.map_or("an unknown processor", |(_, name)| name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_over_or_unknown_fails_the_run_and_each_says_its_ratio_and_its_budget() {
        let mut report = Report::default();
        for (what, ratio) in [("exactly at it", Some(2.0)), ("over", Some(2.345)), ("unknown", None)] {
            let outcome = ratio.map(|ratio| Outcome { figures: "1".into(), ratio });
            report.add(what, outcome.context("no root"), 2.0, "× 25 ms");
        }
        assert_eq!(report.failed(), ["over", "unknown"]);
        let text = report.to_string();
        assert!(text.contains("| over | 1 | 2.35 × 25 ms | ≤ 2 × 25 ms | **over** |"), "{text}");
        assert!(text.contains("| unknown | no root | – | ≤ 2 × 25 ms | **not measured** |"), "{text}");
    }
}
