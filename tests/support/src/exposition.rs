//! Parses another program's exposition in Prometheus' text format, as far as the tests need it.

use std::collections::BTreeMap;

/// A line of the exposition.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Series {
    /// A label's value; that of an absent one is empty, as in Prometheus.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// The lines of the exposition that are series; comments and other lines are skipped.
pub fn parse(text: &str) -> Vec<Series> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(series).collect()
}

fn series(line: &str) -> Option<Series> {
    let at = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(at);
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':'));
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = value.split_whitespace().next()?.parse().ok()?;
    is_name.then(|| Series { name: name.to_owned(), labels, value })
}

/// `name="value",…}` with `\\`, `\"` and `\n`, and what follows the brace.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, behind) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = behind.char_indices();
        let end = loop {
            match characters.next()? {
                (end, '"') => break end,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.to_owned(), value);
        rest = &behind[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_its_name_its_labels_and_its_value() {
        let text = "HTTP/1.0 200 OK\n# HELP a b\na 1\nb{} 2.5 1700\nc{x=\"1,}\",y=\"a\\\"b\\\\\\n\"} 3e+09\n";
        let read = parse(text);
        assert_eq!(
            read.iter().map(|it| (it.name.as_str(), it.value)).collect::<Vec<_>>(),
            [("a", 1.0), ("b", 2.5), ("c", 3e9)]
        );
        assert_eq!((read[2].label("x"), read[2].label("y"), read[2].label("z")), ("1,}", "a\"b\\\n", ""));
    }
}
