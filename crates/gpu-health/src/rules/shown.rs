//! A rule's condition in words, for the list of docs/health.md.

use std::fmt;

use kernel_log::knowledge::{Class, Severity};

use super::{Is, OfLog, OfMetric, Selector, When};

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(log) => log.fmt(f),
            Self::Metric(metric) => metric.fmt(f),
        }
    }
}

impl fmt::Display for OfLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, message, severity, at_least, within_s, open } = self;
        write!(f, "log: {at_least} × `{}", word(*class))?;
        if let Some(message) = message {
            write!(f, "/{message}")?;
        }
        f.write_str("`")?;
        match severity {
            Severity::Info => {}
            Severity::Warning => write!(f, ", warning or critical")?,
            Severity::Critical => write!(f, ", critical")?,
        }
        match within_s {
            Some(seconds) => write!(f, ", within {}", Span(*seconds))?,
            None => write!(f, ", since boot")?,
        }
        f.write_str(if *open { ", open" } else { "" })
    }
}

impl fmt::Display for OfMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.of;
        match &self.is {
            Is::Above(number) => write!(f, "`{of}` above {number}"),
            Is::AtLeast(number) => write!(f, "`{of}` at least {number}"),
            Is::Below(number) => write!(f, "`{of}` below {number}"),
            Is::AboveOther(other) => write!(f, "`{of}` above `{other}`"),
            Is::BelowOther(other) => write!(f, "`{of}` below `{other}`"),
            Is::Grown { by, within_s } => write!(f, "`{of}` grew by {by} within {}", Span(*within_s)),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<String> =
            self.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        match &labels[..] {
            [] => write!(f, "{}", self.series.name),
            labels => write!(f, "{}{{{}}}", self.series.name, labels.join(",")),
        }
    }
}

/// Seconds as a person says them.
pub(crate) struct Span(pub(crate) u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, seconds) in [("day", 86_400), ("hour", 3_600), ("minute", 60)] {
            if self.0 >= seconds && self.0.is_multiple_of(seconds) {
                let number = self.0 / seconds;
                return match number {
                    1 => write!(f, "1 {unit}"),
                    _ => write!(f, "{number} {unit}s"),
                };
            }
        }
        write!(f, "{} s", self.0)
    }
}

/// The class in the file's spelling.
fn word(class: Class) -> String {
    toml::Value::try_from(class).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
