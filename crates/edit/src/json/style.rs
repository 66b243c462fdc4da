//! How what is added is laid out: as what stands around it.

use serde_json::Value;

use super::scan::{Document, Object};

/// What docker's own documentation indents its daemon.json by.
const INDENT: &str = "    ";

/// What a document's author does everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Style<'a> {
    newline: &'static str,
    /// What each level is indented by.
    unit: &'a str,
    /// From a key to its value: `: `.
    colon: &'a str,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout<'a> {
    /// On a line that begins with this; an object may take lines of its own.
    Lines(&'a str),
    /// Among others on one line.
    Inline,
}

impl Default for Style<'_> {
    fn default() -> Self {
        Self { newline: "\n", unit: INDENT, colon: ": " }
    }
}

impl<'a> Style<'a> {
    pub(super) fn of(document: &Document<'a>) -> Self {
        let newline = if document.text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut style = Self { newline, ..Self::default() };
        if document.byte(document.root) != b'{' {
            return style;
        }
        let object = document.object(document.root);
        if let Some(first) = object.items.first() {
            let colon = document.raw(first.key.end..first.value.start);
            if !colon.contains('\n') {
                style.colon = colon;
            }
            match layout_after(document, object.span.start + 1..first.key.start) {
                Layout::Lines(unit) if !unit.is_empty() => style.unit = unit,
                _ => {}
            }
        }
        style
    }

    /// Between two items that share a line.
    fn comma(&self) -> &'static str {
        if self.colon.ends_with(' ') { ", " } else { "," }
    }

    /// What stands between an item and one that follows it.
    pub(super) fn between(&self, layout: Layout<'_>) -> String {
        match layout {
            Layout::Lines(indent) => format!(",{}", self.line(indent)),
            Layout::Inline => self.comma().to_owned(),
        }
    }

    /// A new line, indented.
    fn line(&self, indent: &str) -> String {
        format!("{}{indent}", self.newline)
    }

    /// A key and its value.
    pub(super) fn member(&self, key: &str, value: &Value, layout: Layout<'_>) -> String {
        format!("{}{}{}", quoted(key), self.colon, self.value(value, layout))
    }

    pub(super) fn value(&self, value: &Value, layout: Layout<'_>) -> String {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let members = members.iter();
                match layout {
                    Layout::Lines(indent) => {
                        let inner = format!("{indent}{}", self.unit);
                        let members = members.map(|(key, value)| {
                            let member = self.member(key, value, Layout::Lines(&inner));
                            format!("{}{member}", self.line(&inner))
                        });
                        let members: Vec<String> = members.collect();
                        format!("{{{}{}}}", members.join(","), self.line(indent))
                    }
                    Layout::Inline => {
                        let members = members.map(|(key, value)| self.member(key, value, layout));
                        let members: Vec<String> = members.collect();
                        format!("{{{}}}", members.join(self.comma()))
                    }
                }
            }
            // Lists are short here: of folders, of arguments.
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item, Layout::Inline));
                let items: Vec<String> = items.collect();
                format!("[{}]", items.join(self.comma()))
            }
            scalar => scalar.to_string(),
        }
    }

    /// An object of one member, whose brackets stand on a line that begins with `indent`.
    pub(super) fn object(&self, key: &str, value: &Value, layout: Layout<'_>) -> String {
        match layout {
            Layout::Lines(indent) => {
                let inner = format!("{indent}{}", self.unit);
                let member = self.member(key, value, Layout::Lines(&inner));
                format!("{{{}{member}{}}}", self.line(&inner), self.line(indent))
            }
            Layout::Inline => format!("{{{}}}", self.member(key, value, layout)),
        }
    }
}

/// The layout of the values in an object: as its last member's.
pub(super) fn layout_in<'a>(document: &Document<'a>, object: &Object) -> Layout<'a> {
    let mut from = object.span.start + 1;
    let mut layout = Layout::Inline;
    for member in &object.items {
        layout = layout_after(document, from..member.key.start);
        from = member.value.end;
    }
    layout
}

/// The layout of an item by what leads from the one before it, or from the opening bracket.
pub(super) fn layout_after<'a>(document: &Document<'a>, lead: std::ops::Range<usize>) -> Layout<'a> {
    let lead = document.raw(lead);
    // The comma may stand on a line of its own.
    let lead = lead.rsplit_once(',').map_or(lead, |(_, lead)| lead);
    lead.rsplit_once('\n').map_or(Layout::Inline, |(_, indent)| Layout::Lines(indent))
}

fn quoted(key: &str) -> String {
    Value::from(key).to_string()
}
