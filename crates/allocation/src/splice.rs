//! Edits of a text at byte offsets, and the places in a JSON text where they go.

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
    pub(crate) fn extend(&mut self, place: Place, brackets: Brackets, members: String) -> Option<String> {
        if members.is_empty() {
            return None;
        }
        let (before, after) = brackets.pair();
        match place {
            Place::Absent => return Some([before, &members, after].concat()),
            Place::Null(span) => self.edits.push(Splice { span, before, text: members, after }),
            Place::Here(container) => {
                let span = Span { start: container.tail, end: container.tail };
                let before = if container.empty { "" } else { "," };
                self.edits.push(Splice { span, before, text: members, after: "" });
            }
        }
        None
    }

    /// The text with the edits made; None if there are none.
    pub(crate) fn apply(mut self, text: &str) -> Option<String> {
        if self.edits.is_empty() {
            return None;
        }
        // An addition behind a container's last member begins where the replacement of that member ends.
        self.edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let added: usize = self.edits.iter().map(|edit| edit.text.len() + 2).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut from = 0;
        for Splice { span, before, text: with, after } in &self.edits {
            out.push_str(text.get(from..span.start).unwrap_or_default());
            for part in [before, with.as_str(), after] {
                out.push_str(part);
            }
            from = span.end;
        }
        out.push_str(text.get(from..).unwrap_or_default());
        Some(out)
    }
}

/// Members of an object that is to be extended or made, as JSON with commas between them.
#[derive(Debug, Default)]
pub(crate) struct Members(pub(crate) String);

impl Members {
    pub(crate) fn add(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            if !self.0.is_empty() {
                self.0.push(',');
            }
            write_string(&mut self.0, key);
            self.0.push(':');
            self.0.push_str(&value);
        }
    }
}
