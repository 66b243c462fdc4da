//! New members and items are laid out like those around them.

use serde_json::Value;

use super::{BLANKS, Json, members};
use crate::lines;

/// Docker's own documentation indents its daemon.json by this.
const INDENT: &str = "    ";

/// What a document's author does everywhere.
#[derive(Debug)]
pub(super) struct Style<'a> {
    newline: &'static str,
    /// The indentation of one level.
    unit: &'a str,
    /// Between a key and its value: `: `.
    colon: &'a str,
}

/// The lines that a value is on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Layout<'a> {
    /// On a line that begins with this indentation; an object may take lines of its own.
    Lines(&'a str),
    /// Among others on one line.
    Inline,
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
            if let Layout::Lines(unit) = Layout::of(document, first.key)
                && !unit.is_empty()
            {
                style.unit = unit;
            }
        }
        style
    }

    /// Between two items that share a line.
    fn comma(&self) -> &'static str {
        if self.colon.ends_with(' ') { ", " } else { "," }
    }

    /// Between an item and one that follows it.
    pub(super) fn between(&self, layout: Layout<'_>) -> String {
        match layout {
            Layout::Lines(indent) => format!(",{}{indent}", self.newline),
            Layout::Inline => self.comma().to_owned(),
        }
    }

    /// A key and its value.
    pub(super) fn member(&self, key: &str, value: &Value, layout: Layout<'_>) -> String {
        format!("{}{}{}", Value::from(key), self.colon, self.value(value, layout))
    }

    pub(super) fn value(&self, value: &Value, layout: Layout<'_>) -> String {
        match (value, layout) {
            (Value::Object(members), Layout::Lines(indent)) if !members.is_empty() => {
                let (newline, inner) = (self.newline, format!("{indent}{}", self.unit));
                let member = |(key, value): (&String, &Value)| {
                    format!("{newline}{inner}{}", self.member(key, value, Layout::Lines(&inner)))
                };
                let members: Vec<String> = members.iter().map(member).collect();
                format!("{{{}{newline}{indent}}}", members.join(","))
            }
            (Value::Object(members), _) => {
                let members = members.iter().map(|(key, value)| self.member(key, value, Layout::Inline));
                format!("{{{}}}", members.collect::<Vec<_>>().join(self.comma()))
            }
            // Lists are short here: of folders, of arguments.
            (Value::Array(items), _) => {
                let items = items.iter().map(|item| self.value(item, Layout::Inline));
                format!("[{}]", items.collect::<Vec<_>>().join(self.comma()))
            }
            (scalar, _) => scalar.to_string(),
        }
    }
}

impl<'a> Layout<'a> {
    /// The layout of an item, or of a member by its key.
    pub(super) fn of(document: &'a Json, item: &str) -> Self {
        let before = document.text.get(..document.span(item).start).unwrap_or_default();
        let lead = before.get(before.trim_end_matches(BLANKS).len()..).unwrap_or_default();
        lead.rsplit_once('\n').map_or(Self::Inline, |(_, indent)| Self::Lines(indent))
    }
}
