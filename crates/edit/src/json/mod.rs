//! Edits of strict JSON. crates/raw-json locates the parts of a text. Everything unmanaged stays byte for byte, with its blanks, escapes and spellings of numbers.

mod style;

#[cfg(test)]
mod tests;

use std::ops::Range;

use raw_json::{BLANKS, Member};
use serde_json::{Value, json};

use crate::document::{Before, Document};
use crate::{Fault, dotted, lines};
use style::Style;

/// A text that is strict JSON, no comment and no comma too many, and holds an object.
#[derive(Debug)]
pub(crate) struct Json {
    text: String,
}

impl Json {
    fn root(&self) -> &str {
        self.text.trim_matches(BLANKS)
    }

    fn span(&self, part: &str) -> Range<usize> {
        raw_json::span(&self.text, part)
    }

    /// The indentation of a line that begins with an item or a key; `None` of one that shares its line.
    fn indent(&self, item: &str) -> Option<&str> {
        let before = self.text.get(..self.span(item).start).unwrap_or_default();
        let lead = before.get(before.trim_end_matches(BLANKS).len()..).unwrap_or_default();
        lead.rsplit_once('\n').map(|(_, indent)| indent)
    }

    fn fault(&self, part: &str, problem: String) -> Fault {
        Fault { line: lines::line_number(&self.text, self.span(part).start), problem }
    }

    /// The text with something else in the place of a part of it.
    fn replaced(&self, span: Range<usize>, with: &str) -> String {
        lines::spliced(&self.text, [(span, with.to_owned())])
    }

    /// The members on the way to a path, as far as they are there.
    ///
    /// # Errors
    /// A key of the path is twice in one object: which one counts is each reader's own choice.
    fn walk(&self, path: &[String]) -> Result<Vec<Member<'_>>, Fault> {
        let (mut steps, mut value) = (Vec::new(), self.root());
        for part in path {
            let mut named = members(value).into_iter().filter(|member| name(member).as_ref() == Some(part));
            let Some(member) = named.next() else { break };
            if let Some(second) = named.next() {
                let line = self.fault(member.key, String::new()).line;
                let problem = format!(
                    "line {line} has the key {part:?} already: keep one of the two, since each reader chooses which \
                     one counts"
                );
                return Err(self.fault(second.key, problem));
            }
            value = member.value;
            steps.push(member);
        }
        Ok(steps)
    }

    /// A value as the text spells it.
    fn spelled(&self, path: &[String]) -> Result<Option<&str>, Fault> {
        let steps = self.walk(path)?;
        let value = steps.last().map_or(self.root(), |member| member.value);
        Ok((steps.len() == path.len()).then_some(value))
    }

    /// The text without the key at a path, with nothing done about the objects on the way to it.
    fn without(&self, path: &[String]) -> Result<String, Fault> {
        let steps = self.walk(path)?;
        let Some((last, way)) = steps.split_last().filter(|_| steps.len() == path.len()) else {
            return Ok(self.text.clone());
        };
        let holder = way.last().map_or(self.root(), |member| member.value);
        let span = |member: &Member<'_>| self.span(member.key).start..self.span(member.value).end;
        let spans: Vec<_> = members(holder).iter().map(span).collect();
        let nth = spans.iter().position(|it| *it == span(last)).unwrap_or_default();
        Ok(self.without_item(holder, &spans, nth))
    }

    /// The text without one of several items and the comma that goes with it: the one in front of the last item, else
    /// the one behind. The only one leaves no blank between the brackets of `holder`.
    fn without_item(&self, holder: &str, items: &[Range<usize>], nth: usize) -> String {
        let item = items.get(nth).cloned().unwrap_or_default();
        let span = match (items.get(nth + 1), nth.checked_sub(1).and_then(|before| items.get(before))) {
            (Some(next), _) => item.start..next.start,
            (None, Some(before)) => before.end..item.end,
            (None, None) => self.span(holder).start + 1..self.span(holder).end - 1,
        };
        self.replaced(span, "")
    }
}

impl Document for Json {
    const TABLE: &str = "an object";

    /// A text without a value counts as an empty object, as dockerd has it, and gets the line end that a file has.
    fn parse(text: String) -> Result<Self, Fault> {
        let text = if text.trim_matches(BLANKS).is_empty() {
            format!("{{}}{}", lines::end_of_line(&text))
        } else {
            text
        };
        raw_json::value(&text).map_err(|error| {
            let message = error.to_string();
            let problem = message.split(" at line ").next().unwrap_or(&message);
            Fault { line: error.line().max(1), problem: format!("this is not JSON: {problem}") }
        })?;
        let document = Self { text };
        let root = document.root();
        if root.starts_with('{') {
            return Ok(document);
        }
        Err(document.fault(root, format!("the file holds {} and not an object", kind(root))))
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn is_empty(&self) -> bool {
        members(self.root()).is_empty()
    }

    fn value(&self, path: &[String]) -> Result<Option<Value>, Fault> {
        let parsed = |part: &str| serde_json::from_str(part).unwrap_or_else(|_| Value::from(part));
        let spelled = self.spelled(path)?;
        Ok(spelled.map(|value| match value.as_bytes() {
            [b'{', ..] => {
                members(value).iter().filter_map(|it| Some((name(it)?, parsed(it.value)))).collect()
            }
            [b'[', ..] => items(value).into_iter().map(parsed).collect(),
            _ => parsed(value),
        }))
    }

    fn blocked(&self, path: &[String], needed: &str) -> Fault {
        let held = self.spelled(path).ok().flatten().unwrap_or(self.root());
        self.fault(held, format!("{} is {} where {needed} is needed", dotted(path), kind(held)))
    }

    /// An object on the way that is null counts as missing.
    fn insert(&self, path: &[String], value: &Value) -> Result<String, Fault> {
        let steps = self.walk(path)?;
        let (way, missing) = path.split_at(steps.len());
        let Some((first, missing)) = missing.split_first() else { return Ok(self.text.clone()) };
        let value = missing.iter().rev().fold(value.clone(), |value, name| json!({ name: value }));
        let holder = steps.last().map_or(self.root(), |member| member.value);
        if !holder.starts_with('{') && holder != "null" {
            return Err(self.blocked(way, Self::TABLE));
        }
        let Some(last) = members(holder).pop() else { return self.replace(way, &json!({ first: value })) };
        let (style, indent) = (Style::of(self), self.indent(last.key));
        let end = self.span(last.value).end;
        let member = format!("{}{}", style.between(indent), style.member(first, &value, indent));
        Ok(self.replaced(end..end, &member))
    }

    fn replace(&self, path: &[String], value: &Value) -> Result<String, Fault> {
        let steps = self.walk(path)?;
        // The root begins a line.
        let indent = steps.last().map_or(Some(""), |member| self.indent(member.key));
        let held = steps.last().map_or(self.root(), |member| member.value);
        Ok(self.replaced(self.span(held), &Style::of(self).value(value, indent)))
    }

    fn add(&self, path: &[String], member: &Value, fresh: &Value) -> Result<String, Fault> {
        let list = self.spelled(path)?.unwrap_or_default();
        let Some(last) = items(list).pop() else { return self.replace(path, fresh) };
        let style = Style::of(self);
        let end = self.span(last).end;
        let between = style.between(self.indent(last));
        Ok(self.replaced(end..end, &format!("{between}{}", style.value(member, None))))
    }

    fn cut(&self, path: &[String], nth: usize) -> Result<String, Fault> {
        let list = self.spelled(path)?.unwrap_or_default();
        let spans: Vec<_> = items(list).into_iter().map(|item| self.span(item)).collect();
        Ok(self.without_item(list, &spans, nth))
    }

    fn restore(&self, path: &[String], before: &Before<'_, Self>) -> Result<String, Fault> {
        match (self.spelled(path)?, before.document.spelled(&before.path(path)?)?) {
            (Some(held), Some(old)) => Ok(self.replaced(self.span(held), old)),
            _ => self.remove(path, before),
        }
    }

    fn remove(&self, path: &[String], before: &Before<'_, Self>) -> Result<String, Fault> {
        let left = Self { text: self.without(path)? };
        let Some((_, way)) = path.split_last().filter(|(_, way)| !way.is_empty()) else {
            return Ok(left.text);
        };
        match (left.spelled(way)?, before.document.spelled(way)?) {
            (Some(held), _) if !held.starts_with('{') || !members(held).is_empty() => Ok(left.text),
            (Some(_), Some(old)) if !members(old).is_empty() || !items(old).is_empty() => Ok(left.text),
            (Some(held), Some(old)) => Ok(left.replaced(left.span(held), old)),
            _ => left.remove(way, before),
        }
    }
}

/// `None`: the escapes mean no text.
fn name(member: &Member<'_>) -> Option<String> {
    serde_json::from_str(member.key).ok()
}

fn kind(value: &str) -> &'static str {
    match value.as_bytes() {
        [b'{', ..] => "an object",
        [b'[', ..] => "a list",
        [b'"', ..] => "a text",
        [b't' | b'f', ..] => "true or false",
        [b'n', ..] => "null",
        _ => "a number",
    }
}

/// The elements of a list; none where it is no list.
fn items(value: &str) -> Vec<&str> {
    raw_json::elements(value).unwrap_or_default()
}

/// The members of an object; none where it is no object.
fn members(value: &str) -> Vec<Member<'_>> {
    raw_json::members(value).unwrap_or_default()
}
