//! Edits of a text at byte offsets, and the places in a JSON text where they go.

use serde::Serialize;

use crate::json::{Container, Span, plain_bytes};

/// Where a member of an object is, if it is anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    #[default]
    Absent,
    /// The value is `null`, which for Go is as good as absent.
    Null(Span),
    Here(Container),
}

/// The brackets of an object and of an array.
pub(crate) const OBJECT: &str = "{}";
pub(crate) const ARRAY: &str = "[]";

/// Edits that are yet to be made, at places that do not overlap, in the order of these: what each is to hold.
#[derive(Debug, Default)]
pub(crate) struct Splices(Vec<(Span, String)>);

impl Splices {
    pub(crate) fn replace(&mut self, span: Span, text: String) {
        // An addition behind a container's last member begins where the replacement of that member ends.
        let at = self.0.partition_point(|(other, _)| (other.start, other.end) <= (span.start, span.end));
        self.0.insert(at, (span, text));
    }

    /// Adds members at the end of the container at `place`, once for each place. `members` are JSON with
    /// commas between them. Returns the value that the caller has yet to give to the parent if there is no
    /// container. None: there is one, or nothing to add.
    pub(crate) fn extend(&mut self, place: Place, brackets: &str, members: String) -> Option<String> {
        if members.is_empty() {
            return None;
        }
        let (open, close) = brackets.split_at(1);
        match place {
            Place::Absent => return Some([open, &members, close].concat()),
            Place::Null(span) => self.replace(span, [open, &members, close].concat()),
            Place::Here(container) => {
                let span = Span { start: container.tail, end: container.tail };
                self.replace(span, if container.empty { members } else { [",", &members].concat() });
            }
        }
        None
    }

    /// The text with the edits made; None if there are none.
    pub(crate) fn edited(self, text: &str) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let mut edited =
            String::with_capacity(text.len() + self.0.iter().map(|(_, new)| new.len()).sum::<usize>());
        let mut kept = 0;
        for (span, new) in &self.0 {
            edited.push_str(text.get(kept..span.start).unwrap_or_default());
            edited.push_str(new);
            kept = span.end;
        }
        edited.push_str(text.get(kept..).unwrap_or_default());
        Some(edited)
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

/// Puts a text's JSON behind another one: as it is, where nothing in it needs an escape.
pub(crate) fn push_json(out: &mut String, text: &str) {
    if plain_bytes(text.as_bytes()) == text.len() {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        *out += &json(text);
    }
}

/// The elements of a list as JSON, with commas between them.
pub(crate) fn elements<T: Serialize>(list: &[T]) -> String {
    let list = json(list);
    list.get(1..list.len() - 1).unwrap_or_default().to_owned()
}
