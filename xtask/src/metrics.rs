//! `cargo xtask metrics`: the lists of docs/metrics.md, from the table in crates/telemetry.

use std::fmt::Write;

use anyhow::{Context, Result};
use telemetry::metric::{Metric, Scope};
use telemetry::metrics::ALL;

use crate::refusal::no_argument;
use crate::repository;

const PLACE: &str = "docs/metrics.md";

/// The lines of the page between which the lists stand.
const BEGIN: &str = "<!-- `cargo xtask metrics` writes the lists from crates/telemetry/src/metrics. -->\n";
const END: &str = "\n<!-- End of the lists. -->\n";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_argument("metrics", arguments)?;
    let path = repository::top().join(PLACE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let page = with_lists(&page)?;
    std::fs::write(&path, page).with_context(|| format!("writing {}", path.display()))?;
    println!("the lists of {} are written", path.display());
    Ok(())
}

/// The page, with the lists of today between its two marks.
fn with_lists(page: &str) -> Result<String> {
    let marks = || format!("{PLACE} lacks the lines {BEGIN:?} and {END:?}, between which the lists stand");
    let (before, rest) = page.split_once(BEGIN).with_context(marks)?;
    let (_, after) = rest.split_once(END).with_context(marks)?;
    Ok([before, BEGIN, &lists(), END, after].concat())
}

fn lists() -> String {
    let mut lists = String::new();
    for (scope, heading) in [
        (Scope::Card, "Of a card"),
        (Scope::Gpu, "Of a card or a partition"),
        (Scope::Machine, "Of the machine"),
    ] {
        write!(lists, "\n## {heading}\n\n").ok();
        ALL.iter().filter(|metric| metric.scope == scope).for_each(|metric| entry(&mut lists, metric));
    }
    lists
}

fn entry(lists: &mut String, metric: &Metric) {
    let Metric { name, help, .. } = metric;
    let of = [metric.kind.name(), metric.unit].map(str::to_owned);
    let of = of.into_iter().chain([code(metric.labels.iter().copied())]);
    let of = of.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let source = code(metric.source.split(", "));
    let others = code([metric.dcgm, metric.dme].into_iter().flat_map(|names| names.split(", ")));
    write!(lists, "- `{name}` ({of}). {help}").ok();
    for (what, names) in [("From", source), ("Nearest:", others)] {
        if !names.is_empty() {
            write!(lists, " {what} {names}.").ok();
        }
    }
    lists.push('\n');
}

/// Each name in backticks; "each file" stays as it is.
fn code<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names = names.filter(|name| !name.is_empty());
    let marked = names.map(|name| if name == "each file" { name.to_owned() } else { format!("`{name}`") });
    marked.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_the_page_are_those_of_the_program() {
        let path = repository::top().join(PLACE);
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(
            written == with_lists(&written).unwrap(),
            "{PLACE} is out of date: run `cargo xtask metrics`"
        );
        for metric in ALL {
            assert_eq!(written.matches(&format!("\n- `{}` (", metric.name)).count(), 1, "{}", metric.name);
        }
    }
}
