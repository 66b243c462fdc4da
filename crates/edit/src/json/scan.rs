//! Where things stand in a JSON text. serde_json judges whether it is one, and what a value is; it does not tell
//! where the parts of an object begin and end.

use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::Fault;

/// What may stand before a JSON text, and is kept: Go's readers of configuration files (dockerd's) skip it.
pub(super) const BOM: char = '\u{feff}';

/// A text that is JSON, without anything that only some readers take: no comment, no comma too many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) text: &'a str,
    /// Where the outermost value begins.
    pub(super) root: usize,
}

/// The places of an object, its brackets among them, or of a list.
#[derive(Debug)]
pub(super) struct Collection<T> {
    pub(super) span: Range<usize>,
    pub(super) items: Vec<T>,
}

pub(super) type Object = Collection<Member>;
pub(super) type List = Collection<Range<usize>>;

/// One key of an object with its value.
#[derive(Debug)]
pub(super) struct Member {
    /// With its quotes.
    pub(super) key: Range<usize>,
    /// `None`: escapes that stand for no text, which is the name of nothing.
    pub(super) name: Option<String>,
    pub(super) value: Range<usize>,
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Place {
    Value(Range<usize>),
    /// The last object or null on the way, where it begins, and how many parts of the path led there.
    Missing {
        at: usize,
        depth: usize,
    },
    /// Something on the way that is no object: a list, a text, a number.
    Blocked {
        at: usize,
        depth: usize,
    },
}

impl<'a> Document<'a> {
    /// # Errors
    /// The text is not JSON.
    pub(super) fn new(text: &'a str) -> Result<Self, Fault> {
        let json = text.strip_prefix(BOM).unwrap_or(text);
        serde_json::from_str::<IgnoredAny>(json).map_err(|error| {
            let said = error.to_string();
            let problem = said.split(" at line ").next().unwrap_or(&said).to_owned();
            Fault { line: error.line().max(1), problem: format!("this is not JSON: {problem}") }
        })?;
        let mut document = Self { text, root: text.len() - json.len() };
        document.root = document.blank(document.root);
        Ok(document)
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or_default()
    }

    pub(super) fn raw(&self, span: Range<usize>) -> &'a str {
        self.text.get(span).unwrap_or_default()
    }

    /// The value of a part of the text; `None` where it holds a number that fits no type.
    pub(super) fn value(&self, span: Range<usize>) -> Option<Value> {
        serde_json::from_str(self.raw(span)).ok()
    }

    pub(super) fn line(&self, at: usize) -> usize {
        self.raw(0..at).matches('\n').count() + 1
    }

    /// What kind of value begins here, as a sentence names it.
    pub(super) fn kind(&self, at: usize) -> &'static str {
        match self.byte(at) {
            b'{' => "an object",
            b'[' => "a list",
            b'"' => "a text",
            b't' | b'f' => "true or false",
            b'n' => "null",
            _ => "a number",
        }
    }

    /// Follows a path from the top.
    ///
    /// # Errors
    /// A key of the path stands twice in one object: which one counts is each reader's own choice.
    pub(super) fn find(&self, path: &[String]) -> Result<Place, Fault> {
        let mut at = self.root;
        for (depth, part) in path.iter().enumerate() {
            match self.byte(at) {
                b'{' => {}
                b'n' => return Ok(Place::Missing { at, depth }),
                _ => return Ok(Place::Blocked { at, depth }),
            }
            let object = self.object(at);
            let mut named = object.items.iter().filter(|member| member.name.as_ref() == Some(part));
            let Some(member) = named.next() else { return Ok(Place::Missing { at, depth }) };
            if let Some(second) = named.next() {
                let (first, line) = (self.line(member.key.start), self.line(second.key.start));
                let problem = format!(
                    "the key {part:?} stands on line {first} already: keep one of the two, since it is each \
                     reader's choice which one counts"
                );
                return Err(Fault { line, problem });
            }
            at = member.value.start;
        }
        Ok(Place::Value(at..self.end(at)))
    }

    pub(super) fn object(&self, start: usize) -> Object {
        let mut items = Vec::new();
        let end = self.items(start, |document, at| {
            let key = at..document.end(at);
            let colon = document.blank(key.end);
            let value = document.blank(colon + 1);
            let value = value..document.end(value);
            let end = value.end;
            let name = serde_json::from_str(document.raw(key.clone())).ok();
            items.push(Member { key, name, value });
            end
        });
        Collection { span: start..end, items }
    }

    pub(super) fn list(&self, start: usize) -> List {
        let mut items = Vec::new();
        let end = self.items(start, |document, at| {
            let end = document.end(at);
            items.push(at..end);
            end
        });
        Collection { span: start..end, items }
    }

    /// Goes from item to item of what a bracket at `start` opens; `item` is told where one begins, and tells where
    /// it ends. Returns where the closing bracket has been passed.
    fn items(&self, start: usize, mut item: impl FnMut(&Self, usize) -> usize) -> usize {
        let mut at = self.blank(start + 1);
        // The text is JSON, so that a bracket follows; its end is for texts that are not.
        while !matches!(self.byte(at), b'}' | b']') && at < self.text.len() {
            at = self.blank(item(self, at));
            if self.byte(at) == b',' {
                at = self.blank(at + 1);
            }
        }
        at + 1
    }

    /// Where the value that begins at `start` has ended.
    fn end(&self, start: usize) -> usize {
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
        let is_scalar = !matches!(rest.first(), Some(b'{' | b'[' | b'"'));
        for (at, byte) in (start..).zip(rest) {
            if is_scalar {
                if matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') {
                    return at;
                }
                continue;
            }
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_text => escaped = true,
                b'"' => in_text = !in_text,
                _ if in_text => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && !in_text {
                return at + 1;
            }
        }
        self.text.len()
    }

    /// The next place that is not blank.
    fn blank(&self, at: usize) -> usize {
        let rest = self.raw(at..self.text.len());
        at + (rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len())
    }
}
