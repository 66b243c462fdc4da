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
    fn around(self, members: &str) -> String {
        match self {
            Self::Object => format!("{{{members}}}"),
            Self::Array => format!("[{members}]"),
        }
    }
}

/// Edits that are yet to be made, at places that do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Splices {
    edits: Vec<(Span, String)>,
}

impl Splices {
    pub(crate) fn replace(&mut self, span: Span, with: String) {
        self.edits.push((span, with));
    }

    /// Adds members at the end of the container at `place`, once for each place. `members` are JSON with
    /// commas between them. Returned is the value that is yet to be given to the parent if there is no
    /// container, None if there is one, or nothing to add.
    pub(crate) fn extend(&mut self, place: Place, brackets: Brackets, members: &str) -> Option<String> {
        if members.is_empty() {
            return None;
        }
        match place {
            Place::Absent => return Some(brackets.around(members)),
            Place::Null(span) => self.replace(span, brackets.around(members)),
            Place::Here(container) => {
                let comma = if container.empty { "" } else { "," };
                let tail = Span { start: container.tail, end: container.tail };
                self.replace(tail, format!("{comma}{members}"));
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
        self.edits.sort_by_key(|(span, _)| (span.start, span.end));
        let added: usize = self.edits.iter().map(|(_, with)| with.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut from = 0;
        for (span, with) in &self.edits {
            out.push_str(text.get(from..span.start).unwrap_or_default());
            out.push_str(with);
            from = span.end;
        }
        out.push_str(text.get(from..).unwrap_or_default());
        Some(out)
    }
}

/// Members of an object that is to be extended or made.
#[derive(Debug, Default)]
pub(crate) struct Members(String);

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

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
