//! Edits of a JSON text, whose parts are slices of it.

use std::ops::Range;

use raw_json::{elements, members, span, spliced};
use serde::Serialize;

use crate::object::OBJECT;

/// Edits that are yet to be made, at places that do not overlap.
#[derive(Debug)]
pub(crate) struct Splices<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Splices<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, edits: Vec::new() }
    }

    pub(crate) fn replace(&mut self, part: &str, with: String) {
        self.edits.push((span(self.text, part), with));
    }

    /// Adds members at the end of the object or array at a place, once for each place. `new` is JSON with commas between the
    /// members. Returns the value that the caller has yet to give to the parent where nothing is at the place.
    pub(crate) fn extend(&mut self, place: Option<&str>, brackets: &str, new: String) -> Option<String> {
        if new.is_empty() {
            return None;
        }
        let (open, close) = brackets.split_at(1);
        match place {
            None => return Some([open, &new, close].concat()),
            Some(null @ "null") => self.replace(null, [open, &new, close].concat()),
            Some(container) => {
                let last = if brackets == OBJECT {
                    members(container).unwrap_or_default().last().map(|member| member.value)
                } else {
                    elements(container).unwrap_or_default().last().copied()
                };
                let at = last.map_or(span(self.text, container).start + 1, |last| span(self.text, last).end);
                self.edits.push((at..at, if last.is_some() { [",", &new].concat() } else { new }));
            }
        }
        None
    }

    /// The text with the edits made; `None` if there are none.
    pub(crate) fn edited(self) -> Option<String> {
        (!self.edits.is_empty()).then(|| spliced(self.text, self.edits))
    }
}

/// Members of an object that is to be extended or made, as JSON with commas between them.
#[derive(Debug, Default)]
pub(crate) struct Members(pub(crate) String);

impl Members {
    pub(crate) fn add(&mut self, key: &str, value: Option<String>) {
        let Some(value) = value else { return };
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0 += &[&json(key), ":", &value].concat();
    }
}

/// A value as JSON. None of those that are made here is refused.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The elements of a list as JSON, with commas between them.
pub(crate) fn joined<T: Serialize>(list: &[T]) -> String {
    let list = json(list);
    list.get(1..list.len() - 1).unwrap_or_default().to_owned()
}
