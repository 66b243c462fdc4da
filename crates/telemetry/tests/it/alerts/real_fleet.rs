//! Measures what the alerts cost Prometheus, which refuses a query that needs more than 50 million samples.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use layout::{JUDGED_AT, Machine};
use root::Root;
use support::laid::Laid;
use support::real;
use telemetry::exporter::Exporter;
use telemetry::exposition::{self, Format};
use telemetry::sample::count;
use telemetry::samples::samples;

use crate::alerts::expression::selectors_in;
use crate::alerts::files::{self, ALERTS};
use crate::alerts::prometheus::Prometheus;

/// Prometheus' default of `--query.max-samples`.
const LIMIT: u64 = 50_000_000;
/// The machines of eight cards with eight partitions each that docs/metrics.md promises.
const MACHINES: u64 = 10_000;
/// A day, as far as a subquery looks back, in its steps.
const STEPS: u64 = 288;
const STEP: Duration = Duration::from_mins(5);

#[test]
fn real_prometheus_evaluates_each_alert_of_ten_thousand_machines_within_its_limit_of_samples() {
    if !real::require(&["prometheus", "promtool"]) {
        return;
    }
    let rules = files::rules(&files::text(ALERTS));
    let prometheus = Prometheus::knowing(&day_of_a_machine());
    // The day is there: the subquery of one card has each of its steps.
    let one = prometheus.samples_for("last_over_time(rocm_exporter_build_info[1d:5m])");
    assert!(one >= STEPS - 1, "{one}");
    for rule in rules {
        let each = prometheus.samples_for(rule.expression());
        assert!(each * MACHINES <= LIMIT, "{} needs {each} samples for a machine", rule.name());
    }
}

/// The series of one machine that the rules read, for each step of the last day.
fn day_of_a_machine() -> String {
    let laid = Laid::out(&Machine::instinct_in_trouble(8, 8));
    let root = Root::open(laid.top()).unwrap();
    let text =
        exposition::write(&samples(&Exporter::default().scrape(&root, count(JUDGED_AT))), Format::Prometheus);
    let rules = files::rules(&files::text(ALERTS));
    let selectors = rules.iter().flat_map(|rule| selectors_in(rule.expression()));
    let read: Vec<String> = selectors.map(|it| it.split('{').next().unwrap().to_owned()).collect();
    let is_read = |line: &&str| read.iter().any(|name| line.split(['{', ' ']).next() == Some(name));
    let lines: Vec<&str> = text.lines().filter(is_read).collect();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let mut day = String::new();
    for step in (0..=STEPS).rev() {
        let at = now - STEP * u32::try_from(step).unwrap();
        for line in lines.iter().chain(&["up 1", "rocm_daemon_published_timestamp_seconds 1"]) {
            writeln!(day, "{line} {}", at.as_secs()).unwrap();
        }
    }
    day + "# EOF\n"
}
