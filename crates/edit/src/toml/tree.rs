//! What a text says, and where.

use std::ops::Range;

use serde_json::Value as Json;
use toml_edit::{ArrayOfTables, Document, InlineTable, Item, Key, Table, Value};

use super::{lines, write};
use crate::Fault;

pub(super) struct Tree<'t> {
    text: &'t str,
    document: Document<&'t str>,
}

/// What a key names.
#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
    Table(&'a Table),
    Inline(&'a InlineTable),
    /// Anything but a table.
    Value(&'a Value),
    Tables(&'a ArrayOfTables),
}

/// A key, and what it names.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) key: &'a Key,
    pub(super) node: Node<'a>,
}

impl<'t> Tree<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, Fault> {
        let document = Document::parse(text).map_err(|error| Fault {
            line: lines::line_number(text, error.span().map_or(0, |span| span.start)),
            problem: error.message().replace('\n', ", "),
        })?;
        Ok(Self { text, document })
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    pub(super) fn root(&self) -> &Table {
        self.document.as_table()
    }

    /// As far as the path is there.
    pub(super) fn walk(&self, path: &[String]) -> Vec<Step<'_>> {
        let mut steps: Vec<Step<'_>> = Vec::new();
        for name in path {
            let at = steps.last().map_or(Node::Table(self.root()), |step| step.node);
            match at.child(name) {
                Some(step) => steps.push(step),
                None => break,
            }
        }
        steps
    }

    pub(super) fn find(&self, path: &[String]) -> Option<Step<'_>> {
        let steps = self.walk(path);
        steps.last().copied().filter(|_| steps.len() == path.len())
    }

    /// The keys of a table; none where there is no table.
    pub(super) fn names_in(&self, path: &[String]) -> Vec<String> {
        let node = if path.is_empty() {
            Some(Node::Table(self.root()))
        } else {
            self.find(path).map(|step| step.node)
        };
        match node {
            Some(Node::Table(table)) => table.iter().map(|(name, _)| name.to_owned()).collect(),
            Some(Node::Inline(table)) => table.iter().map(|(name, _)| name.to_owned()).collect(),
            _ => Vec::new(),
        }
    }

    /// Says what stands where something else is needed.
    pub(super) fn in_the_way(&self, path: &[String], node: Node<'_>, key: &Key, needed: &str) -> Fault {
        let line = lines::line_number(self.text, key.span().map_or(0, |span| span.start));
        Fault {
            line,
            problem: format!("{} is {}, and {needed} has to stand there", write::path(path), node.what()),
        }
    }
}

impl<'a> Node<'a> {
    fn child(self, name: &str) -> Option<Step<'a>> {
        let (key, item) = match self {
            Self::Table(table) => table.get_key_value(name)?,
            Self::Inline(table) => table.get_key_value(name)?,
            Self::Value(_) | Self::Tables(_) => return None,
        };
        Some(Step { key, node: Self::of(item)? })
    }

    fn of(item: &'a Item) -> Option<Self> {
        match item {
            Item::None => None,
            Item::Table(table) => Some(Self::Table(table)),
            Item::ArrayOfTables(tables) => Some(Self::Tables(tables)),
            Item::Value(Value::InlineTable(table)) => Some(Self::Inline(table)),
            Item::Value(value) => Some(Self::Value(value)),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Table(_) | Self::Inline(_) => "a table",
            Self::Tables(_) => "an array of tables",
            Self::Value(value) => match value {
                Value::String(_) => "a string",
                Value::Integer(_) | Value::Float(_) => "a number",
                Value::Boolean(_) => "true or false",
                Value::Datetime(_) => "a date",
                Value::Array(_) => "a list",
                Value::InlineTable(_) => "a table",
            },
        }
    }
}

/// Whether a table has a header of its own.
pub(super) fn is_headed(table: &Table) -> bool {
    !table.is_implicit() && !table.is_dotted()
}

/// Where the last of a table's own lines ends, those of dotted keys among them; without its header.
pub(super) fn end_of_body(table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => end_of_value(value),
        Item::Table(table) if table.is_dotted() => end_of_body(table),
        _ => None,
    });
    ends.max()
}

fn end_of_value(value: &Value) -> Option<usize> {
    match value {
        // Of dotted keys in an inline table, which has no braces of its own.
        Value::InlineTable(table) if table.is_dotted() => end_of_inline(table),
        value => value.span().map(|span| span.end),
    }
}

/// Where the last value of an inline table ends.
pub(super) fn end_of_inline(table: &InlineTable) -> Option<usize> {
    table.iter().filter_map(|(_, value)| end_of_value(value)).max()
}

/// Where the last line of a table or of any table in it ends.
pub(super) fn end_of_block(table: &Table) -> Option<usize> {
    let header = table.span().filter(|_| is_headed(table)).map(|span| span.end);
    let inner = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => end_of_value(value),
        Item::Table(table) => end_of_block(table),
        Item::ArrayOfTables(tables) => tables.iter().filter_map(end_of_block).max(),
        Item::None => None,
    });
    inner.chain(header).max()
}

/// A place that the parser has told.
pub(super) fn known(span: Option<Range<usize>>) -> Result<Range<usize>, Fault> {
    span.ok_or_else(|| Fault {
        line: 1,
        problem: "the TOML parser does not tell where a key stands".to_owned(),
    })
}

/// What a node says, as JSON has it; a date becomes its text.
pub(super) fn json(node: Node<'_>) -> Json {
    let of_item = |(name, item): (&str, &Item)| Some((name.to_owned(), json(Node::of(item)?)));
    match node {
        Node::Table(table) => Json::Object(table.iter().filter_map(of_item).collect()),
        Node::Inline(table) => {
            Json::Object(table.iter().map(|(name, value)| (name.to_owned(), of_value(value))).collect())
        }
        Node::Tables(tables) => tables.iter().map(|table| json(Node::Table(table))).collect(),
        Node::Value(value) => of_value(value),
    }
}

fn of_value(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(is) => (*is.value()).into(),
        Value::Datetime(date) => date.value().to_string().into(),
        Value::Array(list) => list.iter().map(of_value).collect(),
        Value::InlineTable(table) => json(Node::Inline(table)),
    }
}
