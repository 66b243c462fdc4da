//! Values of a text and their places, as toml_edit parses them.

use std::ops::Range;

use serde_json::Value as Json;
use toml_edit::{Array, Document, InlineTable, Item, Key, Table, TableLike, Value};

use crate::Fault;

/// A text without a byte order mark.
pub(crate) struct Tree(pub(super) Document<String>);

/// A key, and what it names.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) key: &'a Key,
    pub(super) item: &'a Item,
}

impl Tree {
    pub(super) fn item(&self) -> &Item {
        self.0.as_item()
    }

    pub(super) fn root(&self) -> &Table {
        self.0.as_table()
    }

    /// The steps of a path, as far as they are there.
    pub(super) fn walk(&self, path: &[String]) -> Vec<Step<'_>> {
        let mut steps = Vec::new();
        let mut at = self.item();
        for name in path {
            let Some((key, item)) = at.as_table_like().and_then(|table| table.get_key_value(name)) else {
                break;
            };
            steps.push(Step { key, item });
            at = item;
        }
        steps
    }

    pub(super) fn find(&self, path: &[String]) -> Option<Step<'_>> {
        let steps = self.walk(path);
        steps.last().copied().filter(|_| steps.len() == path.len())
    }
}

pub(super) fn what(item: &Item) -> &'static str {
    match item {
        Item::None | Item::Table(_) | Item::Value(Value::InlineTable(_)) => "a table",
        Item::ArrayOfTables(_) => "an array of tables",
        Item::Value(Value::String(_)) => "a string",
        Item::Value(Value::Integer(_) | Value::Float(_)) => "a number",
        Item::Value(Value::Boolean(_)) => "true or false",
        Item::Value(Value::Datetime(_)) => "a date",
        Item::Value(Value::Array(_)) => "a list",
    }
}

/// The value of a key that is no table.
pub(super) fn plain(item: &Item) -> Option<&Value> {
    item.as_value().filter(|value| !value.is_inline_table())
}

/// Whether a table has a header of its own.
pub(super) fn is_headed(table: &Table) -> bool {
    !table.is_implicit() && !table.is_dotted()
}

/// The ends of a table's own keys, including dotted ones. A table of dotted keys has no place of its own.
pub(super) fn ends(table: &dyn TableLike) -> Vec<usize> {
    let of = |(_, item): (&str, &Item)| match item {
        Item::Value(Value::InlineTable(table)) if table.is_dotted() => ends(table),
        Item::Value(value) => value.span().map(|span| span.end).into_iter().collect(),
        Item::Table(table) if table.is_dotted() => ends(table),
        _ => Vec::new(),
    };
    table.iter().flat_map(of).collect()
}

/// The end of a table's last key; `None` where the table has none.
pub(super) fn end_of_body(table: &Table) -> Option<usize> {
    ends(table).into_iter().max()
}

/// The end of the last line of a table and of the tables in it.
pub(super) fn end_of_block(table: &Table) -> Option<usize> {
    let header = table.span().filter(|_| is_headed(table)).map(|span| span.end);
    let inner = table.iter().filter_map(|(_, item)| match item {
        Item::Table(table) => end_of_block(table),
        Item::ArrayOfTables(tables) => tables.iter().filter_map(end_of_block).max(),
        Item::Value(_) | Item::None => None,
    });
    inner.chain(header).chain(end_of_body(table)).max()
}

/// A place, which the parser records for everything that it has parsed.
pub(super) fn known(span: Option<Range<usize>>) -> Result<Range<usize>, Fault> {
    span.ok_or_else(|| Fault { line: 1, problem: "the TOML parser does not say where a key is".to_owned() })
}

/// An item as a JSON value; a date becomes its text.
pub(super) fn json(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Table(table) => of_table(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| of_table(table)).collect(),
        Item::Value(value) => of_value(value),
    }
}

fn of_table(table: &dyn TableLike) -> Json {
    Json::Object(table.iter().map(|(name, item)| (name.to_owned(), json(item))).collect())
}

fn of_value(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(is) => (*is.value()).into(),
        Value::Datetime(date) => date.value().to_string().into(),
        Value::Array(list) => list.iter().map(of_value).collect(),
        Value::InlineTable(table) => of_table(table),
    }
}

/// A value as TOML spells it: on one line, tables in braces.
pub(super) fn spelled(value: &Json) -> Result<String, Fault> {
    let value = of_json(value).ok_or_else(|| Fault {
        line: 1,
        problem: "TOML has no null and no number of this size, and one is to be written".to_owned(),
    });
    Ok(value?.to_string())
}

fn of_json(value: &Json) -> Option<Value> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(is) => (*is).into(),
        Json::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().filter(|_| number.is_f64())?.into(),
        },
        Json::String(text) => text.into(),
        Json::Array(list) => list.iter().map(of_json).collect::<Option<Array>>()?.into(),
        Json::Object(table) => {
            let entries = table.iter().map(|(name, value)| Some((name, of_json(value)?)));
            entries.collect::<Option<InlineTable>>()?.into()
        }
    })
}
