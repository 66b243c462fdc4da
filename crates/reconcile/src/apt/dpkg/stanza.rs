//! A package's lines in dpkg's database: fields, with a blank line behind the last (deb822(5)).

/// The lines of one package.
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

    /// The package's name as apt prints it: with its architecture where that is not `native`, the machine's own.
    pub(crate) fn name(&self, native: Option<&str>) -> Option<String> {
        let name = self.field("Package")?;
        Some(match self.field("Architecture") {
            Some(it) if it != "all" && native.is_some_and(|native| native != it) => format!("{name}:{it}"),
            _ => name.to_owned(),
        })
    }
}

/// The stanzas of a package, of each of its architectures one. Searched for by the line that each begins with, so that
/// of a megabyte nothing else is taken apart.
pub(crate) fn of<'a>(text: &'a str, package: &str) -> Vec<Stanza<'a>> {
    let line = format!("Package: {package}\n");
    let begins = |at: usize| at == 0 || text[..at].ends_with('\n');
    let found = text.match_indices(&line).filter(|(at, _)| begins(*at));
    found.map(|(at, _)| Stanza(up_to_blank(&text[at..]))).collect()
}

/// Every stanza of a text, in order.
pub(crate) fn all(text: &str) -> impl Iterator<Item = Stanza<'_>> {
    text.split("\n\n").map(str::trim_start).filter(|stanza| !stanza.is_empty()).map(Stanza)
}

fn up_to_blank(text: &str) -> &str {
    text.find("\n\n").map_or(text, |end| &text[..=end])
}
