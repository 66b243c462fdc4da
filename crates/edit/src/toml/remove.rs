//! Removes a key, and the tables that this leaves empty and that were not there before.

use std::ops::Range;

use toml_edit::{ArrayOfTables, InlineTable, Item, Key, Table, Value};

use super::tree::{self, Step, Tree};
use super::{array, insert};
use crate::document::{self, Document as _};
use crate::entry::leaves;
use crate::{Fault, lines};

type Before<'a> = document::Before<'a, Tree>;

/// The text without what a path holds.
pub(super) fn removed(tree: &Tree, path: &[String], before: &Before<'_>) -> Result<String, Fault> {
    let text = tree.text();
    let Some(found) = tree.find(path) else { return Ok(text.to_owned()) };
    let (_, folder) = path.split_last().unzip();
    let folder = folder.unwrap_or_default();
    let steps = tree.walk(folder);
    let is_inline = steps.last().is_some_and(|step| step.item.is_inline_table());
    let text = match (found.item, insert::braces(&steps)) {
        (Item::Value(Value::InlineTable(table)), _) if table.is_dotted() => {
            return leaves(&tree::json(found.item)).iter().try_fold(text.to_owned(), |text, (below, _)| {
                removed(&Tree::parse(text)?, &[path, below.as_slice()].concat(), before)
            });
        }
        (Item::Table(table), _) => without_blocks(text, of_table(text, table)?, before),
        (Item::ArrayOfTables(tables), _) => without_blocks(text, of_tables(text, tables)?, before),
        (_, Some((_, braces))) if is_inline => from_inline(text, braces, &found)?,
        _ => {
            let key = tree::known(found.key.span())?;
            let end = tree::known(found.item.span())?.end;
            without_lines(text, lines::start(text, key.start)..lines::next(text, end), before)
        }
    };
    (1..=folder.len()).rev().try_fold(text, |text, depth| {
        let table = folder.get(..depth).unwrap_or_default();
        without_empty(text, table, before)
    })
}

/// The lines of a table and of the tables in it: headers, and keys with their values.
fn of_table(text: &str, table: &Table) -> Result<Vec<Range<usize>>, Fault> {
    let whole = |span: Range<usize>| lines::start(text, span.start)..lines::next(text, span.end);
    let mut own = Vec::new();
    if tree::is_headed(table) {
        own.push(whole(tree::known(table.span())?));
    }
    for (name, item) in table {
        match item {
            Item::Value(value) => {
                let key = tree::known(table.key(name).and_then(Key::span))?;
                own.push(whole(key.start..tree::known(value.span())?.end));
            }
            Item::Table(table) => own.extend(of_table(text, table)?),
            Item::ArrayOfTables(tables) => own.extend(of_tables(text, tables)?),
            Item::None => {}
        }
    }
    Ok(own)
}

fn of_tables(text: &str, tables: &ArrayOfTables) -> Result<Vec<Range<usize>>, Fault> {
    tables.iter().map(|table| of_table(text, table)).collect::<Result<Vec<_>, _>>().map(|all| all.concat())
}

/// The text without these lines. Those that follow one another go as one.
fn without_blocks(text: &str, mut own: Vec<Range<usize>>, before: &Before<'_>) -> String {
    own.sort_by_key(|range| range.start);
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for range in own {
        match blocks.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => blocks.push(range),
        }
    }
    blocks.into_iter().rev().fold(text.to_owned(), |text, block| without_lines(&text, block, before))
}

/// The text without these lines, and without one of the two empty lines around them, or the one in front of them at
/// the end. An insertion wrote the empty line in front of a managed header, unless the text ended with one.
fn without_lines(text: &str, range: Range<usize>, before_us: &Before<'_>) -> String {
    let Range { mut start, mut end } = range;
    let before = lines::start(text, start.saturating_sub(1));
    let blank_before = start > 0 && lines::is_blank(text, before);
    let at_end = end >= text.len();
    let is_inserted =
        || begins_table(text, start) && !ended_blank_behind(before_us, line_before(text, before));
    if blank_before && (at_end || lines::is_blank(text, end) || begins_table(text, end) || is_inserted()) {
        start = before;
    } else if start == 0 && lines::is_blank(text, end) {
        end = lines::next(text, end);
    }
    // A text whose last line had no end keeps having none.
    if at_end && !text.ends_with('\n') && start > 0 {
        start -= if text.get(..start).is_some_and(|before| before.ends_with("\r\n")) { 2 } else { 1 };
    }
    lines::spliced(text, [(start..end, String::new())])
}

fn line_before(text: &str, at: usize) -> &str {
    let end = text.get(..at).unwrap_or_default().trim_end_matches(['\r', '\n']).len();
    text.get(lines::start(text, end)..end).unwrap_or_default()
}

/// Whether the text before the edit ended with this line and empty ones: an insertion then adds no empty
/// line.
fn ended_blank_behind(before: &Before<'_>, line: &str) -> bool {
    let text = before.document.text();
    let last = text.trim_end();
    text.get(last.len()..).is_some_and(|end| end.matches('\n').count() > 1)
        && last.lines().last() == Some(line.trim_end())
}

fn begins_table(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with('['))
}

/// The text without a table that has nothing left but a managed header or braces.
fn without_empty(text: String, path: &[String], before: &Before<'_>) -> Result<String, Fault> {
    let tree = Tree::parse(text)?;
    let older = before.path(path)?;
    let was = before.document.find(&older).map(|step| step.item);
    let text = tree.text();
    match tree.find(path).map(|step| step.item) {
        Some(Item::Table(table)) if tree::is_headed(table) && tree::end_of_body(table).is_none() => {
            if was.and_then(Item::as_table).is_some_and(tree::is_headed) {
                return Ok(text.to_owned());
            }
            let header = tree::known(table.span())?;
            let lines = lines::start(text, header.start)..lines::next(text, header.end);
            Ok(without_lines(text, lines, before))
        }
        Some(Item::Value(Value::InlineTable(table))) if table.is_empty() && was.is_none() => {
            removed(&tree, path, before)
        }
        _ => Ok(text.to_owned()),
    }
}

fn from_inline(text: &str, braces: &InlineTable, found: &Step<'_>) -> Result<String, Fault> {
    let (open, key) = (tree::known(braces.span())?.start, tree::known(found.key.span())?.start);
    let ends = tree::ends(braces);
    let previous = ends.iter().copied().filter(|end| *end <= key).max();
    let separator = previous.map_or(Some(open), |end| array::comma_after(text, end)).unwrap_or(key);
    // The key's own span begins behind the dotted keys that lead to it.
    let start = array::skipped(text, separator + 1);
    let end = tree::known(found.item.span())?.end;
    if ends.len() > 1 {
        return Ok(array::cut(text, start..end, previous));
    }
    // The only one: no blank is left between the braces.
    let before = text.get(..start).unwrap_or_default().trim_end().len();
    let comma = array::comma_after(text, end).map_or(end, |comma| comma + 1);
    let rest = text.get(comma..).unwrap_or_default();
    Ok(lines::spliced(text, [(before..comma + rest.len() - rest.trim_start().len(), String::new())]))
}
