//! Edits of a text at byte offsets, and the places in a JSON text where they go.

use std::collections::BinaryHeap;

use crate::json::{Container, Span, write_string};

/// Where a member of an object is, if it is anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    #[default]
    Absent,
    /// `null` stands there, which for Go is as good as absent.
    Null(Span),
    Here(Container),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Brackets {
    Object,
    Array,
}

impl Brackets {
    fn pair(self) -> (&'static str, &'static str) {
        match self {
            Self::Object => ("{", "}"),
            Self::Array => ("[", "]"),
        }
    }
}

/// What is to stand at a place. In three parts, so that long lists are not copied for their brackets.
#[derive(Debug)]
struct Splice {
    span: Span,
    before: &'static str,
    text: String,
    after: &'static str,
}

/// Edits that are yet to be made, at places that do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Splices {
    edits: Vec<Splice>,
}

impl Splices {
    pub(crate) fn replace(&mut self, span: Span, text: String) {
        self.edits.push(Splice { span, before: "", text, after: "" });
    }

    /// Adds members at the end of the container at `place`, once for each place. `members` are JSON with
    /// commas between them. Returned is the value that is yet to be given to the parent if there is no
    /// container, None if there is one, or nothing to add.
    pub(crate) fn extend(&mut self, place: Place, brackets: Brackets, mut members: String) -> Option<String> {
        if members.is_empty() {
            return None;
        }
        let (before, after) = brackets.pair();
        match place {
            Place::Absent => {
                // Moved, not copied: a list of 64 GPUs would take pages of memory more.
                members.insert_str(0, before);
                members.push_str(after);
                return Some(members);
            }
            Place::Null(span) => self.edits.push(Splice { span, before, text: members, after }),
            Place::Here(container) => {
                let span = Span { start: container.tail, end: container.tail };
                let before = if container.empty { "" } else { "," };
                self.edits.push(Splice { span, before, text: members, after: "" });
            }
        }
        None
    }

    /// The text as it will be with the edits made; None if there are none.
    pub(crate) fn edited(self, text: &str) -> Option<Edited<'_>> {
        if self.edits.is_empty() {
            return None;
        }
        // An addition behind a container's last member begins where the replacement of that member ends. A heap, since
        // the library's other sorts are several times as much code.
        let places = self.edits.iter().enumerate();
        let order: BinaryHeap<_> = places.map(|(at, edit)| (edit.span.start, edit.span.end, at)).collect();
        Some(Edited { text, edits: self.edits, order: order.into_sorted_vec() })
    }
}

/// A text with edits: in pieces, most of which are the old text's own.
#[derive(Debug)]
pub struct Edited<'a> {
    text: &'a str,
    edits: Vec<Splice>,
    /// Where each begins and ends in the text, and its place among the edits.
    order: Vec<(usize, usize, usize)>,
}

impl Edited<'_> {
    /// What the text is made of, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        let kept = |from: usize, to: usize| self.text.get(from..to).unwrap_or_default();
        let edits = || self.order.iter().filter_map(|(_, _, at)| self.edits.get(*at));
        let ends = std::iter::once(0).chain(edits().map(|edit| edit.span.end));
        let last = self.order.last().map_or(0, |(_, end, _)| *end);
        let edits = edits().zip(ends).flat_map(move |(edit, from)| {
            [kept(from, edit.span.start), edit.before, edit.text.as_str(), edit.after]
        });
        edits.chain([kept(last, self.text.len())]).filter(|piece| !piece.is_empty())
    }
}

impl std::fmt::Display for Edited<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

/// Members of an object that is to be extended or made, as JSON with commas between them.
#[derive(Debug, Default)]
pub(crate) struct Members(pub(crate) String);

impl Members {
    pub(crate) fn add(&mut self, key: &str, value: Option<String>) {
        let Some(mut value) = value else { return };
        let mut before = String::with_capacity(key.len() + 4);
        if !self.0.is_empty() {
            before.push(',');
        }
        write_string(&mut before, key);
        before.push(':');
        if self.0.is_empty() {
            value.insert_str(0, &before);
            self.0 = value;
        } else {
            self.0.push_str(&before);
            self.0.push_str(&value);
        }
    }
}
