use serde_json::Number;

/// A part of a YAML text, with the line on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// `plain`: without quotes, so that it may be a number, true, false or nothing.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Key {
    /// The key as a configuration spells it: older ones have `_` where it has `-`.
    pub(super) fn dashed(&self) -> String {
        self.text.replace('_', "-")
    }
}

/// A text without a value.
impl Default for Node {
    fn default() -> Self {
        Self { line: 1, value: Value::Scalar { text: String::new(), plain: true } }
    }
}

impl Node {
    /// A key's value that is not there, as behind `tag:`, or null.
    pub(crate) fn is_empty(&self) -> bool {
        let Value::Scalar { text, plain: true } = &self.value else { return false };
        matches!(&**text, "" | "~" | "null" | "Null" | "NULL")
    }

    /// Whether a configuration of this text has no key.
    pub(crate) fn has_no_key(&self) -> bool {
        self.is_empty() || matches!(&self.value, Value::Map(keys) if keys.is_empty())
    }

    /// The line of a key such as `daemon.settle-s`, or of the section that lacks it. `item`: a word of the key's value,
    /// whose last line is then meant.
    pub(crate) fn line_of(&self, key: &str, item: Option<&str>) -> usize {
        match (self.find(key), key.rsplit_once('.')) {
            (Some((key, value)), _) => item.and_then(|item| value.last_line(item)).unwrap_or(key.line),
            (None, Some((section, _))) => self.line_of(section, None),
            (None, None) => self.line,
        }
    }

    /// A key such as `daemon.settle-s`, and its value. The name of a group may have dots, too.
    pub(crate) fn find(&self, path: &str) -> Option<(&Key, &Self)> {
        self.entries().iter().find_map(|(key, node)| {
            let rest = path.strip_prefix(&*key.text).or_else(|| path.strip_prefix(&*key.dashed()))?;
            if rest.is_empty() { Some((key, node)) } else { node.find(rest.strip_prefix('.')?) }
        })
    }

    /// `true` or `false`, without quotes.
    pub(super) fn truth(&self) -> Option<bool> {
        let Value::Scalar { text, plain: true } = &self.value else { return None };
        match &**text {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => None,
        }
    }

    /// The tree as JSON. A number that JSON would write otherwise, such as 30.10, is text.
    pub(crate) fn json(&self) -> serde_json::Value {
        let number = |text: &str| text.parse().ok().filter(|it: &Number| it.to_string() == text);
        match &self.value {
            _ if self.is_empty() => serde_json::Value::Null,
            Value::Scalar { text, plain } => match (self.truth(), number(text)) {
                (Some(truth), _) => truth.into(),
                (None, Some(number)) if *plain => number.into(),
                _ => text.as_str().into(),
            },
            Value::List(items) => items.iter().map(Self::json).collect(),
            Value::Map(entries) => {
                entries.iter().map(|(key, node)| (key.text.clone(), node.json())).collect()
            }
        }
    }

    fn entries(&self) -> &[(Key, Self)] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    fn last_line(&self, item: &str) -> Option<usize> {
        match &self.value {
            Value::Scalar { text, .. } => {
                let is_there = text == item || text.split(',').any(|word| word.trim() == item);
                is_there.then_some(self.line)
            }
            Value::List(items) => items.iter().rev().find_map(|node| node.last_line(item)),
            Value::Map(entries) => entries.iter().rev().find_map(|(key, node)| {
                node.last_line(item).or_else(|| (key.text == item).then_some(key.line))
            }),
        }
    }
}
