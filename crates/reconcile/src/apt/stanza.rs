//! Fields of a text such as apt's lists of sources: a blank line ends a stanza (deb822(5)).

/// The lines of one stanza.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stanza<'a>(&'a str);

impl<'a> Stanza<'a> {
    /// A field's value: its first line without the blanks around it, and further lines as they are.
    pub(crate) fn field(&self, name: &str) -> Option<&'a str> {
        let mut at = 0;
        for line in self.0.split_inclusive('\n') {
            let is_it = line.get(..name.len()).is_some_and(|key| key.eq_ignore_ascii_case(name));
            if is_it && line.as_bytes().get(name.len()) == Some(&b':') {
                let value = &self.0[at + name.len() + 1..];
                let ends = |(at, _): &(usize, &str)| !value[at + 1..].starts_with([' ', '\t']);
                let end = value.match_indices('\n').find(ends).map_or(value.len(), |(at, _)| at);
                return Some(value[..end].trim());
            }
            at += line.len();
        }
        None
    }
}

/// Every stanza of a text, in order.
pub(crate) fn stanzas(text: &str) -> impl Iterator<Item = Stanza<'_>> {
    text.split("\n\n").map(str::trim_start).filter(|stanza| !stanza.is_empty()).map(Stanza)
}
