//! Parses text into [`Rules`], or names the fault and its line.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use inventory::series::{self, Series};
use kernel_log::knowledge::{Class, Knowledge, Severity};
use serde::Deserialize;
use toml::Spanned;

use super::unfit::{self, Fault};
use super::{Is, MOST_EVENTS, OfLog, OfMetric, Rule, Rules, Selector, When};

/// A month: what a rule looks back and a quarantine lasts at most.
const LONGEST_S: i64 = 30 * 86_400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    degraded_below: Spanned<i64>,
    unhealthy_below: Spanned<i64>,
    hold_s: Spanned<i64>,
    leftover_bytes: Option<Spanned<i64>>,
    #[serde(rename = "rule", default)]
    rules: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    id: Spanned<String>,
    points: Spanned<i64>,
    reason: Spanned<String>,
    group: Option<Spanned<String>>,
    #[serde(default)]
    hang: bool,
    log: Option<RawLog>,
    metric: Option<RawMetric>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLog {
    class: Class,
    message: Option<Spanned<String>>,
    severity: Option<Severity>,
    at_least: Option<Spanned<i64>>,
    within_s: Option<Spanned<i64>>,
    #[serde(default)]
    open: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMetric {
    name: Spanned<String>,
    #[serde(default)]
    labels: BTreeMap<Spanned<String>, String>,
    above: Option<Spanned<f64>>,
    at_least: Option<Spanned<f64>>,
    below: Option<Spanned<f64>>,
    above_other: Option<RawSelector>,
    below_other: Option<RawSelector>,
    grown_by: Option<Spanned<f64>>,
    within_s: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSelector {
    name: Spanned<String>,
    #[serde(default)]
    labels: BTreeMap<Spanned<String>, String>,
}

pub(super) fn rules(text: &str) -> Result<Rules, Fault> {
    let file: File = toml::from_str(text).map_err(|error| unfit::fault(text, &error))?;
    let degraded_below = within(&file.degraded_below, "degraded_below", 1..=100)?;
    let unhealthy_below = within(&file.unhealthy_below, "unhealthy_below", 1..=100)?;
    if unhealthy_below > degraded_below {
        return fault(
            &file.unhealthy_below,
            format!(
                "unhealthy_below is {unhealthy_below}, above degraded_below ({degraded_below}): lower it, or raise the \
                 other"
            ),
        );
    }
    let hold_s = within(&file.hold_s, "hold_s", 0..=LONGEST_S)?;
    let bytes = file.leftover_bytes.as_ref();
    let leftover_bytes = bytes.map(|bytes| within(bytes, "leftover_bytes", 1..=i64::MAX)).transpose()?;
    if file.rules.is_empty() {
        let problem = "no [[rule]]: write one, or remove the file to have the built-in rules".to_owned();
        return Err(Fault { at: text.len(), problem });
    }
    let mut rules: Vec<Rule> = Vec::new();
    for raw in file.rules {
        let id = raw.id.clone();
        let rule = rule(raw)?;
        if rules.iter().any(|other| other.id == rule.id) {
            return fault(&id, format!("a rule above has the id {:?}, too: give this one another", rule.id));
        }
        rules.push(rule);
    }
    Ok(Rules { degraded_below, unhealthy_below, hold_s, leftover_bytes, rules })
}

fn fault<T, V>(at: &Spanned<T>, problem: String) -> Result<V, Fault> {
    Err(Fault { at: at.span().start, problem })
}

/// A whole number in a range.
fn within<N: TryFrom<i64>>(number: &Spanned<i64>, key: &str, range: RangeInclusive<i64>) -> Result<N, Fault> {
    let value = *number.get_ref();
    match N::try_from(value) {
        Ok(fits) if range.contains(&value) => Ok(fits),
        _ => fault(number, format!("{key} is {value}: write {} to {}", range.start(), range.end())),
    }
}

fn rule(raw: RawRule) -> Result<Rule, Fault> {
    let id = word(&raw.id, "id")?;
    let group = raw.group.as_ref().map(|group| word(group, "group")).transpose()?;
    let reason = raw.reason.get_ref().trim().to_owned();
    if reason.is_empty() || reason.chars().count() > 300 || reason.contains(char::is_control) {
        return fault(
            &raw.reason,
            "reason is no sentence: write one line of at most 300 characters".to_owned(),
        );
    }
    let points = within(&raw.points, "points", 1..=100)?;
    let when = match (&raw.log, &raw.metric) {
        (Some(of_log), None) => When::Log(log(of_log)?),
        (None, Some(of_metric)) => When::Metric(metric(of_metric)?),
        (None, None) => return fault(&raw.id, format!("rule {id:?} has no condition: write log or metric")),
        (Some(_), Some(_)) => {
            return fault(&raw.id, format!("rule {id:?} has log and metric: make two rules of it"));
        }
    };
    Ok(Rule { id, points, reason, group, hang: raw.hang, when })
}

fn word(text: &Spanned<String>, key: &str) -> Result<String, Fault> {
    let word = text.get_ref();
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if word.is_empty() || word.len() > 64 || !word.chars().all(is_fit) {
        let problem = format!("{key} is {word:?}: write lower-case letters, digits and hyphens, at most 64");
        return fault(text, problem);
    }
    Ok(word.clone())
}

fn log(raw: &RawLog) -> Result<OfLog, Fault> {
    let most = i64::try_from(MOST_EVENTS).unwrap_or(i64::MAX);
    let at_least = raw.at_least.as_ref().map_or(Ok(1), |it| within(it, "at_least", 1..=most))?;
    let within_s = raw.within_s.as_ref().map(|it| within(it, "within_s", 1..=LONGEST_S)).transpose()?;
    let message = raw.message.as_ref().map(|id| message(id, raw.class)).transpose()?;
    Ok(OfLog {
        class: raw.class,
        message,
        severity: raw.severity.unwrap_or(Severity::Info),
        at_least,
        within_s,
        open: raw.open,
    })
}

/// The id of a known message of this class.
fn message(id: &Spanned<String>, class: Class) -> Result<String, Fault> {
    let wanted = id.get_ref();
    let messages = match Knowledge::built_in() {
        Ok(knowledge) => knowledge.messages(),
        Err(error) => return fault(id, error.to_string()),
    };
    let of_class = messages.iter().filter(|message| message.class == class);
    let ids: Vec<&str> = of_class.map(|message| message.id.as_str()).collect();
    if ids.contains(&wanted.as_str()) {
        return Ok(wanted.clone());
    }
    fault(id, format!("{wanted:?} is no message of this class: take one of {}", ids.join(", ")))
}

fn metric(raw: &RawMetric) -> Result<OfMetric, Fault> {
    let of = selector(&raw.name, &raw.labels)?;
    let finite = |number: &Spanned<f64>| match *number.get_ref() {
        value if value.is_finite() => Ok(value),
        value => fault(number, format!("{value} is no number to compare with: write a finite one")),
    };
    let other = |raw: &RawSelector| selector(&raw.name, &raw.labels);
    let mut found = Vec::new();
    found.extend(raw.above.as_ref().map(|it| finite(it).map(Is::Above)));
    found.extend(raw.at_least.as_ref().map(|it| finite(it).map(Is::AtLeast)));
    found.extend(raw.below.as_ref().map(|it| finite(it).map(Is::Below)));
    found.extend(raw.above_other.as_ref().map(|it| other(it).map(Is::AboveOther)));
    found.extend(raw.below_other.as_ref().map(|it| other(it).map(Is::BelowOther)));
    found.extend(raw.grown_by.as_ref().map(|it| grown(of.series, it, raw)));
    if let (Some(seconds), None) = (&raw.within_s, &raw.grown_by) {
        return fault(seconds, "within_s belongs to grown_by: write both, or neither".to_owned());
    }
    match (found.pop(), found.is_empty()) {
        (Some(is), true) => Ok(OfMetric { of, is: is? }),
        _ => fault(
            &raw.name,
            "a metric has one of above, at_least, below, above_other, below_other, grown_by: write just one"
                .to_owned(),
        ),
    }
}

fn grown(series: &Series, by: &Spanned<f64>, raw: &RawMetric) -> Result<Is, Fault> {
    let name = series.name;
    if !name.ends_with("_total") {
        return fault(by, format!("{name} is no counter: only a metric whose name ends in _total grows"));
    }
    let Some(within_s) = &raw.within_s else {
        return fault(by, "grown_by needs within_s: write in how many seconds".to_owned());
    };
    let within_s = within(within_s, "within_s", 1..=LONGEST_S)?;
    match *by.get_ref() {
        value if value.is_finite() && value > 0.0 => Ok(Is::Grown { by: value, within_s }),
        value => fault(by, format!("grown_by is {value}: write a number above 0")),
    }
}

fn selector(name: &Spanned<String>, labels: &BTreeMap<Spanned<String>, String>) -> Result<Selector, Fault> {
    let of = name.get_ref();
    let Some(series) = series::ALL.into_iter().find(|series| series.name == *of) else {
        return fault(
            name,
            format!("{of:?} is no reading of a card: take another metric of docs/metrics.md"),
        );
    };
    for label in labels.keys() {
        if !series.labels.contains(&label.get_ref().as_str()) {
            let has = match series.labels {
                [] => "it has none".to_owned(),
                labels => format!("it has {}", labels.join(", ")),
            };
            return fault(label, format!("{of} has no label {:?}: {has}", label.get_ref()));
        }
    }
    let labels = labels.iter().map(|(name, value)| (name.get_ref().clone(), value.clone())).collect();
    Ok(Selector { series, labels })
}
