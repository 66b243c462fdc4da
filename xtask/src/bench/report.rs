//! What was measured, as a table that can be pasted into docs/dev/benchmarks.md.

use std::fmt;

use anyhow::{Context, Result};
use sysinfo::System;

use crate::command::Command;

/// One budget of the design.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) outcome: Outcome,
    /// The ratio that the design allows.
    pub(crate) limit: f64,
    /// What the ratio is of, as it is written after a number: `× the floor`.
    pub(crate) unit: &'static str,
    /// Whether being over it fails the run.
    pub(crate) enforced: bool,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Measured { figures: String, ratio: f64 },
    LeftOut { reason: String },
}

impl Row {
    fn is_over(&self) -> bool {
        matches!(self.outcome, Outcome::Measured { ratio, .. } if ratio > self.limit)
    }

    fn is_measured(&self) -> bool {
        matches!(self.outcome, Outcome::Measured { .. })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// The enforced rows that are over or were not measured: unknown is not good.
    pub(crate) fn failed(&self) -> Vec<&str> {
        let bad = |row: &&Row| row.enforced && (row.is_over() || !row.is_measured());
        self.rows.iter().filter(bad).map(|row| row.what.as_str()).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | figures | ratio | budget | enforced | verdict |")?;
        writeln!(f, "| --- | --- | --- | --- | --- | --- |")?;
        for row in &self.rows {
            let (figures, ratio, verdict) = match &row.outcome {
                Outcome::Measured { figures, ratio } => {
                    let verdict = if row.is_over() { "**over**" } else { "pass" };
                    (figures.as_str(), format!("{ratio:.2} {}", row.unit), verdict)
                }
                Outcome::LeftOut { reason } => (reason.as_str(), "–".to_owned(), "**not measured**"),
            };
            let enforced = if row.enforced { "yes" } else { "no" };
            let figures = figures.replace('|', "\\|").replace('\n', " ");
            let Row { what, limit, unit, .. } = row;
            writeln!(f, "| {what} | {figures} | {ratio} | ≤ {limit} {unit} | {enforced} | {verdict} |")?;
        }
        Ok(())
    }
}

/// The date and the machine, in one line of Markdown.
pub(crate) fn about_this_machine() -> Result<String> {
    let date = Command::new(["date", "-u", "+%Y-%m-%d"]).read()?;
    let mut system = System::new().context("asking what machine this is")?;
    system.refresh_memory();
    system.refresh_cpu_all();
    let processor = system.cpus().first().map_or("an unknown processor", |cpu| cpu.brand());
    let cores = system.cpus().len();
    // To the nearest: the kernel keeps a part of what the machine has for itself.
    let memory = (system.total_memory() + (1 << 29)) >> 30;
    let kernel = System::kernel_version().context("asking for the version of the kernel")?;
    let distribution = System::name().context("asking for the distribution")?;
    let release = System::os_version().context("asking for the distribution's release")?;
    Ok(format!(
        "**{}**, {processor}, {cores} cores, {memory} GiB of memory, {distribution} {release}, Linux {kernel}.",
        date.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(what: &str, ratio: Option<f64>, enforced: bool) -> Row {
        let outcome = match ratio {
            Some(ratio) => Outcome::Measured { figures: "1 | 2".into(), ratio },
            None => Outcome::LeftOut { reason: "no root".into() },
        };
        Row { what: what.into(), outcome, limit: 2.0, unit: "× the floor", enforced }
    }

    #[test]
    fn only_an_enforced_row_that_is_over_or_unknown_fails_the_run() {
        let mut report = Report::default();
        let rows = [
            ("exactly at it", Some(2.0), true),
            ("over", Some(2.1), true),
            ("unknown", None, true),
            ("over, shown only", Some(9.0), false),
            ("unknown, shown only", None, false),
        ];
        rows.into_iter().for_each(|(what, ratio, enforced)| report.add(row(what, ratio, enforced)));
        assert_eq!(report.failed(), ["over", "unknown"]);
    }

    #[test]
    fn a_row_says_its_ratio_its_budget_and_whether_it_is_enforced() {
        let mut report = Report::default();
        report.add(row("create", Some(2.345), false));
        report.add(row("start", None, true));
        let text = report.to_string();
        assert!(
            text.contains("| create | 1 \\| 2 | 2.35 × the floor | ≤ 2 × the floor | no | **over** |"),
            "{text}"
        );
        assert!(
            text.contains("| start | no root | – | ≤ 2 × the floor | yes | **not measured** |"),
            "{text}"
        );
    }
}
