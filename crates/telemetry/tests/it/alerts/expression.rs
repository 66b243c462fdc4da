//! The labels that an expression's result may have; a fault where it names what is never there.
//!
//! Matching follows Prometheus' engine: a comparison or an arithmetic operation of two vectors gives nothing, without an
//! error, where their labels differ. So differing labels are faults, too.

use std::collections::BTreeSet;
use std::convert::Infallible;

use promql_parser::label::{METRIC_NAME, MatchOp};
use promql_parser::parser::token::{T_LAND, T_LOR, T_LUNLESS};
use promql_parser::parser::{
    AggregateExpr, BinModifier, BinaryExpr, Call, Expr, LabelModifier, VectorMatchCardinality,
    VectorSelector, parse,
};
use promql_parser::util::{ExprVisitor, walk_expr};

use crate::alerts::emitted::{Labels, Series};

/// Functions whose result has the labels of their argument.
const PER_SERIES: [&str; 9] = [
    "increase",
    "rate",
    "last_over_time",
    "max_over_time",
    "min_over_time",
    "avg_over_time",
    "clamp_max",
    "round",
    "sort_desc",
];

/// The label that a series of a metric may be without: a card's has no partition. So it matches another card's.
const SOMETIMES: &str = "partition";

type Answer<T> = Result<T, String>;

/// # Errors
/// Says which metric, label or function is unknown, or which two operands never match.
pub(crate) fn labels_of(expression: &str, series: &Series) -> Answer<Labels> {
    let parsed = parse(expression).map_err(|error| format!("{expression}: {error}"))?;
    let labels = of(&parsed, series).map_err(|fault| format!("{expression}: {fault}"))?;
    Ok(labels.unwrap_or_default())
}

/// The selectors in an expression, as Prometheus takes them, without their offsets.
pub(crate) fn selectors_in(expression: &str) -> BTreeSet<String> {
    let mut selectors = Selectors::default();
    walk_expr(&mut selectors, &parse(expression).unwrap()).unwrap();
    selectors.found
}

#[derive(Default)]
struct Selectors {
    found: BTreeSet<String>,
}

impl ExprVisitor for Selectors {
    type Error = Infallible;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool, Infallible> {
        let selector = match expression {
            Expr::VectorSelector(selector) => Some(selector),
            Expr::MatrixSelector(selector) => Some(&selector.vs),
            _ => None,
        };
        let bare = selector.map(|selector| VectorSelector { offset: None, at: None, ..selector.clone() });
        self.found.extend(bare.map(|selector| selector.to_string()));
        Ok(true)
    }
}

/// `None`: a number.
fn of(expression: &Expr, series: &Series) -> Answer<Option<Labels>> {
    match expression {
        Expr::NumberLiteral(_) => Ok(None),
        Expr::Paren(inner) => of(&inner.expr, series),
        Expr::Unary(inner) => of(&inner.expr, series),
        Expr::Subquery(inner) => of(&inner.expr, series),
        Expr::VectorSelector(selector) => selected(selector, series).map(Some),
        Expr::MatrixSelector(selector) => selected(&selector.vs, series).map(Some),
        Expr::Aggregate(aggregate) => aggregated(aggregate, series).map(Some),
        Expr::Call(call) => called(call, series),
        Expr::Binary(binary) => combined(binary, series),
        Expr::StringLiteral(_) | Expr::Extension(_) => Err(format!("no vector: {expression}")),
    }
}

fn selected(selector: &VectorSelector, series: &Series) -> Answer<Labels> {
    let name = selector.name.as_deref().ok_or("a selector without a metric's name")?;
    let labels = series.get(name).ok_or_else(|| format!("no metric {name}"))?;
    if !selector.matchers.or_matchers.is_empty() {
        return Err(format!("{name}: alternatives of matchers are not checked"));
    }
    for matcher in &selector.matchers.matchers {
        if matcher.name == METRIC_NAME || !labels.contains(&matcher.name) {
            return Err(format!("{name} has no label {}", matcher.name));
        }
    }
    Ok(labels.clone())
}

fn aggregated(aggregate: &AggregateExpr, series: &Series) -> Answer<Labels> {
    let labels = vector(of(&aggregate.expr, series)?)?;
    match &aggregate.modifier {
        None => Ok(Labels::new()),
        Some(LabelModifier::Include(kept)) => known(&kept.labels, &labels),
        Some(LabelModifier::Exclude(dropped)) => Ok(&labels - &known(&dropped.labels, &labels)?),
    }
}

fn called(call: &Call, series: &Series) -> Answer<Option<Labels>> {
    let name = call.func.name;
    let first = call.args.args.first();
    match name {
        "time" => Ok(None),
        // absent() has the labels that its selector demands.
        "absent" => {
            let Some(Expr::VectorSelector(selector)) = first.map(|argument| &**argument) else {
                return Err("absent() of something else than a selector".to_owned());
            };
            selected(selector, series)?;
            let equal = selector.matchers.matchers.iter().filter(|matcher| matcher.op == MatchOp::Equal);
            Ok(Some(equal.map(|matcher| matcher.name.clone()).collect()))
        }
        _ if PER_SERIES.contains(&name) => of(first.ok_or("no argument")?, series),
        _ => Err(format!("{name}() is not checked")),
    }
}

fn combined(binary: &BinaryExpr, series: &Series) -> Answer<Option<Labels>> {
    let (left, right) = match (of(&binary.lhs, series)?, of(&binary.rhs, series)?) {
        (Some(left), Some(right)) => (left, right),
        (one, other) => return Ok(one.or(other)),
    };
    let modifier = binary.modifier.as_ref();
    let is_or = binary.op.id() == T_LOR;
    let matched = matched(modifier, &left, &right, is_or)?;
    if is_or {
        return Ok(Some(&left | &right));
    }
    if [T_LAND, T_LUNLESS].contains(&binary.op.id()) {
        return Ok(Some(left));
    }
    match modifier.map(|modifier| &modifier.card) {
        Some(VectorMatchCardinality::ManyToOne(more)) => Ok(Some(&left | &known(&more.labels, &right)?)),
        Some(VectorMatchCardinality::OneToMany(more)) => Ok(Some(&right | &known(&more.labels, &left)?)),
        _ => Ok(Some(matched)),
    }
}

/// The labels by which two operands are matched: both have them.
fn matched(modifier: Option<&BinModifier>, left: &Labels, right: &Labels, is_or: bool) -> Answer<Labels> {
    let ignored = match modifier.and_then(|modifier| modifier.matching.as_ref()) {
        Some(LabelModifier::Include(on)) => {
            known(&on.labels, left)?;
            return known(&on.labels, right);
        }
        Some(LabelModifier::Exclude(ignored)) => known(&ignored.labels, &(left | right))?,
        None => Labels::new(),
    };
    let (left, right) = (left - &ignored, right - &ignored);
    let only: Vec<&String> = left.symmetric_difference(&right).filter(|label| *label != SOMETIMES).collect();
    if only.is_empty() || is_or {
        return Ok(&left | &right);
    }
    Err(format!("its operands never match: one of them alone has {only:?}"))
}

fn vector(labels: Option<Labels>) -> Answer<Labels> {
    labels.ok_or_else(|| "a number where a vector belongs".to_owned())
}

fn known(named: &[String], labels: &Labels) -> Answer<Labels> {
    match named.iter().find(|name| !labels.contains(*name)) {
        Some(unknown) => Err(format!("no label {unknown} among {labels:?}")),
        None => Ok(named.iter().cloned().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::labels_of;
    use crate::alerts::emitted::{Series, set};

    fn series() -> Series {
        let used = set(["instance", "job", "gpu"]);
        let temperature = set(["instance", "job", "gpu", "sensor"]);
        let limit = set(["instance", "job", "gpu", "sensor", "limit"]);
        let named = [("used", used.clone()), ("total", used), ("temp", temperature), ("limit_of", limit)];
        named.map(|(name, labels)| (name.to_owned(), labels)).into()
    }

    #[test]
    fn a_result_has_the_labels_that_prometheus_gives_it() {
        for (expression, labels) in [
            ("used / total > 0.9", "gpu instance job"),
            ("temp > ignoring (limit) (limit_of{limit='critical'} - 5)", "gpu instance job sensor"),
            ("temp > 85 unless on (gpu) limit_of", "gpu instance job sensor"),
            ("limit_of / ignoring (sensor, limit) group_left () used", "gpu instance job limit sensor"),
            (
                "sum by (gpu) (temp) * on (gpu) group_left (instance) max by (gpu, instance) (used)",
                "gpu instance",
            ),
            ("max without (sensor) (temp)", "gpu instance job"),
            ("max(temp)", ""),
            ("group by (gpu) (last_over_time(used[1d:5m]))", "gpu"),
            ("rate(used[5m]) or temp", "gpu instance job sensor"),
            ("absent(used{gpu='0'})", "gpu"),
            ("time() - used", "gpu instance job"),
        ] {
            let expected = set(labels.split_whitespace());
            assert_eq!(labels_of(expression, &series()).unwrap(), expected, "{expression}");
        }
    }

    #[test]
    fn what_is_never_there_is_a_fault() {
        for (expression, fault) in [
            ("usde > 1", "no metric usde"),
            ("rate(usde[5m])", "no metric usde"),
            ("used or (temp and usde)", "no metric usde"),
            ("used > scalar(usde)", "scalar() is not checked"),
            ("sum by (gpu) (max_over_time(usde[1h:5m]))", "no metric usde"),
            ("used{pgu='0'}", "used has no label pgu"),
            ("used{gpu!='0',sensor=~'.*'}", "used has no label sensor"),
            ("sum by (sensor) (used)", "no label sensor"),
            ("sum without (sensor) (used)", "no label sensor"),
            ("used and on (sensor) temp", "no label sensor"),
            ("temp and on (sensor) used", "no label sensor"),
            ("used * on (gpu) group_left (sensor) total", "no label sensor"),
            ("used / ignoring (node) total", "no label node"),
            ("temp / total", "never match"),
            ("temp > limit_of", "never match"),
            ("temp unless limit_of", "never match"),
            ("{gpu='0'}", "without a metric's name"),
            ("absent(usde)", "no metric usde"),
            ("used >", "used >: "),
        ] {
            let found = labels_of(expression, &series()).unwrap_err();
            assert!(found.contains(fault), "{expression}: {found}");
        }
    }
}
