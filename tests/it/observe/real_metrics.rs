//! What readers of other projects say of the expositions: Prometheus' promtool, and Prometheus' parsers in Python.
#![allow(clippy::disallowed_methods, reason = "the tests run real programs")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use support::real;
use telemetry::exposition::{self, Format};

use crate::observe::metrics::{machines, scrape};

fn run(command: &mut Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn real_promtool_finds_nothing_to_say_of_any_machine() {
    if !real::require(&["promtool"]) {
        return;
    }
    let promtool = || {
        let mut command = Command::new(real::program("promtool").unwrap());
        command.args(["check", "metrics"]);
        command
    };
    for (name, machine) in machines() {
        let output = run(&mut promtool(), &exposition::write(&scrape(&machine), Format::Prometheus));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{name}: {}: {said}", output.status);
    }
    // promtool does find what is wrong.
    let wrong = run(&mut promtool(), "# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n");
    assert_eq!(wrong.status.code(), Some(3));
}

/// Reads both formats of one machine, and ends with 0 where they say the same.
const COMPARE: &str = r"
import sys
from prometheus_client.parser import text_string_to_metric_families as text
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
one, other = sys.stdin.read().split('\f')
def samples(families):
    return [(s.name, s.labels, s.value) for family in families for s in family.samples]
one, other = samples(text(one)), samples(openmetrics(other))
assert one == other, [pair for pair in zip(one, other) if pair[0] != pair[1]][:3]
print(len(one))
";

#[test]
fn real_pythons_parsers_read_the_same_from_both_formats() {
    // Debian's package is for Debian's Python.
    const PYTHON: &str = "/usr/bin/python3";
    let mut has_client = Command::new(PYTHON);
    has_client.args(["-c", "import prometheus_client.openmetrics.parser"]);
    let is_there = has_client.output().is_ok_and(|output| output.status.success());
    if !real::require_that(is_there, "python3-prometheus-client is not installed") {
        return;
    }
    for (name, machine) in machines() {
        let samples = scrape(&machine);
        let both =
            [Format::Prometheus, Format::OpenMetrics].map(|format| exposition::write(&samples, format));
        let output = run(Command::new(PYTHON).args(["-c", COMPARE]), &both.join("\x0c"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), samples.len().to_string(), "{name}");
    }
}
