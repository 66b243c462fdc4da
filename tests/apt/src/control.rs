//! Paragraphs of fields, as control, Packages and Release are made of them (deb-control(5)).

/// A paragraph of a control file; its fields keep their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control(Vec<(String, String)>);

impl Control {
    /// Parses a paragraph as dpkg-deb prints it; a line that begins with a space continues the field before.
    pub(crate) fn parse(text: &str) -> Self {
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            match (line.split_once(": "), fields.last_mut()) {
                (_, Some((_, value))) if line.starts_with(' ') => {
                    value.push('\n');
                    value.push_str(line);
                }
                (Some((name, value)), _) => fields.push((name.to_owned(), value.to_owned())),
                // A field without a value, or with all of it on the lines that follow.
                (None, _) => fields.push((line.trim_end_matches(':').to_owned(), String::new())),
            }
        }
        Self(fields)
    }

    /// The field with this value, where it stands already or at the end.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// `NAME: VALUE` a line. A value that begins with a line's end is a list, its lines indented already.
    pub fn text(&self) -> String {
        let line = |(name, value): &(String, String)| {
            let space = if value.starts_with('\n') { "" } else { " " };
            format!("{name}:{space}{value}\n")
        };
        self.0.iter().map(line).collect()
    }
}
