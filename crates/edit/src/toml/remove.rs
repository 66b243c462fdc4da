//! A key goes, and with it the tables that it leaves empty and that were not there before.

use std::ops::Range;

use toml_edit::{ArrayOfTables, InlineTable, Item, Key, Table};

use super::before::Before;
use super::tree::{self, Node, Step, Tree};
use super::{array, lines};
use crate::{Fault, leaves};

/// The text without what stands at a path.
pub(super) fn removed(text: &str, path: &[String], before: &Before<'_>) -> Result<String, Fault> {
    let tree = Tree::parse(text)?;
    let Some(found) = tree.find(path) else { return Ok(text.to_owned()) };
    let (_, folder) = path.split_last().unzip();
    let folder = folder.unwrap_or_default();
    let host = tree.walk(folder).last().map(|step| step.node);
    let text = match (found.node, host) {
        (Node::Inline(table), _) if table.is_dotted() => {
            return leaves(&tree::json(found.node)).iter().try_fold(text.to_owned(), |text, (below, _)| {
                removed(&text, &[path, below.as_slice()].concat(), before)
            });
        }
        (Node::Table(table), _) => without_blocks(text, of_table(text, table)?, before),
        (Node::Tables(tables), _) => without_blocks(text, of_tables(text, tables)?, before),
        (_, Some(Node::Inline(host))) => from_inline(text, host, &found)?,
        _ => {
            let key = tree::known(found.key.span())?;
            let end = end_of(found.node)?;
            without_lines(text, lines::start(text, key.start)..lines::next(text, end), before)
        }
    };
    (1..=folder.len()).rev().try_fold(text, |text, depth| {
        let table = folder.get(..depth).unwrap_or_default();
        without_empty(text, table, before)
    })
}

/// Every line of a table and of the tables in it: headers, keys with their values.
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

/// Lines go, those that follow one another as one.
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

fn end_of(node: Node<'_>) -> Result<usize, Fault> {
    let span = match node {
        Node::Value(value) => value.span(),
        Node::Inline(table) => table.span(),
        Node::Table(_) | Node::Tables(_) => None,
    };
    tree::known(span).map(|span| span.end)
}

/// Lines go, and one of two empty lines that they stood between, or that stood before them at the end.
/// In front of a header of ours the empty line is ours too, unless the text ended with one.
fn without_lines(text: &str, range: Range<usize>, before_us: &Before<'_>) -> String {
    let Range { mut start, mut end } = range;
    let before = lines::start(text, start.saturating_sub(1));
    let blank_before = start > 0 && lines::is_blank(text, before);
    let at_end = end >= text.len();
    let is_ours = || begins_table(text, start) && !ended_blank_behind(before_us, line_before(text, before));
    if blank_before && (at_end || lines::is_blank(text, end) || begins_table(text, end) || is_ours()) {
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

/// Whether a text ended with this line and empty ones, behind which a table of ours gets no more.
fn ended_blank_behind(before: &Before<'_>, line: &str) -> bool {
    let text = before.tree().text();
    let last = text.trim_end();
    text.get(last.len()..).is_some_and(|end| end.matches('\n').count() > 1)
        && last.lines().last() == Some(line.trim_end())
}

fn begins_table(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with('['))
}

/// A header that is ours and has nothing of its own any more, or empty braces.
fn without_empty(text: String, path: &[String], before: &Before<'_>) -> Result<String, Fault> {
    let tree = Tree::parse(&text)?;
    let was = before.find(path).map(|step| step.node);
    match tree.find(path) {
        Some(Step { node: Node::Table(table), .. }) if is_bare(table) => {
            if matches!(was, Some(Node::Table(was)) if tree::is_headed(was)) {
                return Ok(text);
            }
            let header = tree::known(table.span())?;
            Ok(without_lines(
                &text,
                lines::start(&text, header.start)..lines::next(&text, header.end),
                before,
            ))
        }
        Some(Step { node: Node::Inline(table), .. }) if table.is_empty() && was.is_none() => {
            removed(&text, path, before)
        }
        _ => Ok(text),
    }
}

fn is_bare(table: &Table) -> bool {
    tree::is_headed(table) && tree::end_of_body(table).is_none()
}

fn from_inline(text: &str, host: &InlineTable, found: &Step<'_>) -> Result<String, Fault> {
    let key = tree::known(found.key.span())?.start;
    let mut start = if host.is_dotted() { start_of_entry(text, key) } else { key };
    let mut end = end_of(found.node)?;
    let blanks = |at: usize| text.get(..at).map_or(0, |before| before.len() - before.trim_end().len());
    let before = start - blanks(start);
    let comma_before = text.get(..before).is_some_and(|before| before.ends_with(','));
    match array::comma_after(text, end) {
        Some(comma) if !comma_before => {
            end = comma + 1;
            end += text.get(end..).map_or(0, |rest| rest.len() - rest.trim_start_matches(' ').len());
        }
        _ if comma_before => start = before - 1,
        _ => {
            // The only one: nothing is left between the braces.
            start = before;
            end += text.get(end..).map_or(0, |rest| rest.len() - rest.trim_start_matches([' ', '\t']).len());
        }
    }
    Ok(lines::spliced(text, [(start..end, String::new())]))
}

/// Where the dotted keys begin that end with the one at `at`: behind a comma or a brace that is in no quotes.
fn start_of_entry(text: &str, at: usize) -> usize {
    let keys = text.get(..at).unwrap_or_default();
    let mut quote: Option<char> = None;
    let separator = keys.char_indices().rev().find(|(_, c)| match (quote, *c) {
        (None, ',' | '{') => true,
        (None, '"' | '\'') => {
            quote = Some(*c);
            false
        }
        (Some(open), c) => {
            if open == c {
                quote = None;
            }
            false
        }
        _ => false,
    });
    let start = separator.map_or(0, |(separator, _)| separator + 1);
    start + text.get(start..at).map_or(0, |keys| keys.len() - keys.trim_start().len())
}
