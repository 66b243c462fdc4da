//! The alert rules, the recording rules and the dashboard name only what the exporter emits, and work in Prometheus.

mod dashboard;
mod emitted;
mod expression;
mod files;
mod prometheus;
mod real_fleet;
mod real_prometheus;
mod real_promtool;
mod rules;
