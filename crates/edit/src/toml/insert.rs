//! An edit writes a new key beside its neighbours, in their style.

use serde_json::{Value as Json, json};
use toml_edit::{InlineTable, Item, Table, Value};

use super::array;
use super::tree::{self, Step, Tree};
use crate::document::Document as _;
use crate::entry::leaves;
use crate::{Fault, dotted, lines};

/// The text with a value at a path that is not there.
pub(super) fn insert(tree: &Tree, path: &[String], value: &Json) -> Result<String, Fault> {
    let steps = tree.walk(path);
    let Some(deepest) = steps.last() else { return into_root(tree, path, value) };
    match deepest.item {
        Item::Value(Value::InlineTable(_)) => into_inline(tree, &steps, path, value),
        Item::Table(table) if table.is_dotted() => beside_dotted(tree, &steps, table, path, value),
        Item::Table(table) => {
            let is_line = path.len() == steps.len() + 1 && !value.is_object() && tree::is_headed(table);
            if !is_line {
                return section(tree, Some(table), path, value);
            }
            let last = tree::end_of_body(table);
            let header = tree::known(table.span())?;
            let text = tree.text();
            let blanks = match last {
                Some(last) => lines::indentation(text, first_line_of(table).unwrap_or(last)).to_owned(),
                None => deeper(lines::indentation(text, header.start)),
            };
            let line = line(&blanks, path.get(steps.len()..).unwrap_or_default(), value, text)?;
            Ok(lines::put(text, behind_key(text, last.unwrap_or(header.end)), &line))
        }
        _ => Err(tree.blocked(path.get(..steps.len()).unwrap_or(path), Tree::TABLE)),
    }
}

/// Where a new key goes behind the key that ends at `last`. Comments right above a header belong to that
/// header, so the key goes in front of them.
fn behind_key(text: &str, last: usize) -> usize {
    let at = lines::next(text, last);
    let behind = lines::behind_comments(text, at);
    if behind == text.len() || lines::is_blank(text, behind) { behind } else { at }
}

fn line(blanks: &str, keys: &[String], value: &Json, text: &str) -> Result<String, Fault> {
    let (keys, value) = (dotted(keys), tree::spelled(value)?);
    Ok(format!("{blanks}{keys} = {value}{}", lines::end_of_line(text)))
}

/// The place of a table's first key.
fn first_line_of(table: &Table) -> Option<usize> {
    let keys =
        table.iter().filter(|(_, item)| item.is_value()).filter_map(|(name, _)| table.get_key_value(name));
    keys.filter_map(|(key, _)| key.span()).map(|span| span.start).min()
}

fn into_root(tree: &Tree, path: &[String], value: &Json) -> Result<String, Fault> {
    if path.len() > 1 || value.is_object() {
        return section(tree, None, path, value);
    }
    let text = tree.text();
    let mut line = line("", path, value, text)?;
    if let Some(last) = tree::end_of_body(tree.root()) {
        return Ok(lines::put(text, behind_key(text, last), &line));
    }
    // The key goes in front of the first header, behind the comment at the top of the file.
    let mut at = lines::behind_comments(text, 0);
    if at < text.len() && !lines::is_blank(text, at) {
        at = 0;
    }
    if at < text.len() && !lines::is_blank(text, at) {
        line.push_str(lines::end_of_line(text));
    }
    Ok(lines::put(text, at, &line))
}

/// `[a.b]` and its lines, behind the whole of the table `host`, or at the end. A comment that follows `host` may be a
/// setting of it that is switched off, and stays in it.
fn section(tree: &Tree, host: Option<&Table>, path: &[String], value: &Json) -> Result<String, Fault> {
    let text = tree.text();
    let at = host.and_then(tree::end_of_block);
    let at = at.map_or(text.len(), |end| lines::behind_comments(text, lines::next(text, end)));
    let model = host.and_then(|host| model(text, host)).unwrap_or_default();
    let eol = lines::end_of_line(text);
    let before = at.saturating_sub(1);
    let mut block = String::new();
    if at > 0 && !lines::is_blank(text, lines::start(text, before)) {
        block.push_str(eol);
    }
    match path.split_last().filter(|_| !value.is_object()) {
        Some((name, table)) => tables(&mut block, &model, table, &json!({ name: value }), text)?,
        None => tables(&mut block, &model, path, value, text)?,
    }
    Ok(lines::put(text, at, &block))
}

fn tables(block: &mut String, model: &Model, path: &[String], table: &Json, text: &str) -> Result<(), Fault> {
    let eol = lines::end_of_line(text);
    let entries = table.as_object().into_iter().flatten();
    let (inner, own): (Vec<_>, Vec<_>) = entries.partition(|(_, value)| value.is_object());
    block.push_str(&format!("{}[{}]{eol}", model.header, dotted(path)));
    for (name, value) in own {
        block.push_str(&line(&model.lines, std::slice::from_ref(name), value, text)?);
    }
    for (name, value) in inner {
        block.push_str(eol);
        tables(block, &model.deeper(), &[path, std::slice::from_ref(name)].concat(), value, text)?;
    }
    Ok(())
}

/// The indentation of tables: `containerd config default` of 1.x indents them.
#[derive(Default)]
struct Model {
    header: String,
    lines: String,
}

impl Model {
    fn deeper(&self) -> Self {
        Self { header: deeper(&self.header), lines: deeper(&self.lines) }
    }
}

/// The indentation of the first table in `host`, or one step more than that of `host`.
fn model(text: &str, host: &Table) -> Option<Model> {
    let inner = host.iter().filter_map(|(_, item)| item.as_table()).find(|table| tree::is_headed(table));
    let table = inner.or_else(|| tree::is_headed(host).then_some(host))?;
    let header = lines::indentation(text, table.span()?.start).to_owned();
    let lines = match first_line_of(table) {
        Some(at) => lines::indentation(text, at).to_owned(),
        None if inner.is_some() => deeper(&header),
        None => header.clone(),
    };
    let is_known = inner.is_some() || header.is_empty();
    let model = Model { header, lines };
    Some(if is_known { model } else { model.deeper() })
}

/// The indentation one level deeper, if there is one at all.
fn deeper(blanks: &str) -> String {
    if blanks.is_empty() { String::new() } else { format!("{blanks}  ") }
}

/// A table of dotted keys can have no header, so it gets more dotted keys beside the others.
fn beside_dotted(
    tree: &Tree,
    steps: &[Step<'_>],
    table: &Table,
    path: &[String],
    value: &Json,
) -> Result<String, Fault> {
    let text = tree.text();
    let is_host = |step: &Step<'_>| matches!(step.item, Item::Table(table) if !table.is_dotted());
    let host = steps.iter().rposition(is_host).map_or(0, |at| at + 1);
    let Some(last) = tree::end_of_body(table) else {
        // The dotted keys have only tables with headers left, and a new table can follow those.
        return section(tree, Some(table), path, value);
    };
    let keys = path.get(host..).unwrap_or_default();
    // A value may take several lines; its key is on the first.
    let first = first_line_of(table).unwrap_or(last);
    let blanks = lines::indentation(text, first).to_owned();
    let written: Result<String, Fault> = leaves(value)
        .into_iter()
        .map(|(below, leaf)| line(&blanks, &[keys, below.as_slice()].concat(), leaf, text))
        .collect();
    Ok(lines::put(text, behind_key(text, last), &written?))
}

fn into_inline(tree: &Tree, steps: &[Step<'_>], path: &[String], value: &Json) -> Result<String, Fault> {
    let text = tree.text();
    let Some((host, table)) = braces(steps) else { return section(tree, None, path, value) };
    // The new key is dotted as far as the others are, and has braces from there on.
    let missing = steps.len() + 1;
    let (_, inner) = path.split_at(missing.min(path.len()));
    let wrapped = inner.iter().rev().fold(value.clone(), |value, name| json!({ name: value }));
    let entry =
        format!("{} = {}", dotted(path.get(host..missing).unwrap_or_default()), tree::spelled(&wrapped)?);
    let (at, put) = match tree::ends(table).into_iter().max() {
        None => (tree::known(table.span())?.start + 1, format!(" {entry} ")),
        Some(last) => match array::comma_after(text, last) {
            Some(comma) => (comma + 1, format!(" {entry},")),
            None => (last, format!(", {entry}")),
        },
    };
    Ok(lines::spliced(text, [(at..at, put)]))
}

/// The innermost table with braces on the way, and how many steps lead to it.
pub(super) fn braces<'a>(steps: &[Step<'a>]) -> Option<(usize, &'a InlineTable)> {
    let tables = (1..).zip(steps).filter_map(|(depth, step)| Some((depth, step.item.as_inline_table()?)));
    tables.filter(|(_, table)| !table.is_dotted()).last()
}
