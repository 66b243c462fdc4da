//! New members and items are laid out like those around them: on lines of their own, with an indentation, or on one
//! line with others.

use serde_json::Value;

use super::{Json, members};
use crate::lines;

/// Docker's own documentation indents its daemon.json by this.
const INDENT: &str = "    ";

/// The style that a document's author uses throughout.
#[derive(Debug)]
pub(super) struct Style<'a> {
    newline: &'static str,
    /// The indentation of one level.
    unit: &'a str,
    /// The text between a key and its value: `: `.
    colon: &'a str,
}

impl<'a> Style<'a> {
    pub(super) fn of(document: &'a Json) -> Self {
        let mut style = Self { newline: lines::end_of_line(&document.text), unit: INDENT, colon: ": " };
        if let Some(first) = members(document.root()).first() {
            let colon = document.span(first.key).end..document.span(first.value).start;
            let colon = document.text.get(colon).unwrap_or_default();
            if !colon.contains('\n') {
                style.colon = colon;
            }
            style.unit = document.indent(first.key).filter(|unit| !unit.is_empty()).unwrap_or(INDENT);
        }
        style
    }

    /// The text between two items that share a line.
    fn comma(&self) -> &'static str {
        if self.colon.ends_with(' ') { ", " } else { "," }
    }

    /// The text between an item and the next one.
    pub(super) fn between(&self, indent: Option<&str>) -> String {
        indent.map_or_else(|| self.comma().to_owned(), |indent| format!(",{}{indent}", self.newline))
    }

    /// A key and its value.
    pub(super) fn member(&self, key: &str, value: &Value, indent: Option<&str>) -> String {
        format!("{}{}{}", Value::from(key), self.colon, self.value(value, indent))
    }

    pub(super) fn value(&self, value: &Value, indent: Option<&str>) -> String {
        match (value, indent) {
            (Value::Object(members), Some(indent)) if !members.is_empty() => {
                let (newline, inner) = (self.newline, format!("{indent}{}", self.unit));
                let member = |(key, value): (&String, &Value)| {
                    format!("{newline}{inner}{}", self.member(key, value, Some(&inner)))
                };
                let members: Vec<String> = members.iter().map(member).collect();
                format!("{{{}{newline}{indent}}}", members.join(","))
            }
            (Value::Object(members), _) => {
                let members = members.iter().map(|(key, value)| self.member(key, value, None));
                format!("{{{}}}", members.collect::<Vec<_>>().join(self.comma()))
            }
            // Lists are short here: of folders, of arguments.
            (Value::Array(items), _) => {
                let items = items.iter().map(|item| self.value(item, None));
                format!("[{}]", items.collect::<Vec<_>>().join(self.comma()))
            }
            (scalar, _) => scalar.to_string(),
        }
    }
}
