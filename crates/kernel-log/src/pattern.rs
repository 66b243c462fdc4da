//! A format string of the kernel's, with `{name}` where it has a conversion.

use serde::Deserialize;

/// Fixed words with holes between them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    text: String,
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Ok(Self { text })
    }
}

impl Pattern {
    /// The fixed words, in their order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split(['{', '}']).step_by(2).filter(|words| !words.is_empty())
    }

    /// What stands in the holes of a line that has the fixed words in this order.
    #[must_use]
    pub fn find<'p>(&'p self, line: &[u8]) -> Option<Vec<(&'p str, String)>> {
        let mut rest = line;
        for words in self.words() {
            let at = memchr::memmem::find(rest, words.as_bytes())?;
            rest = rest.get(at + words.len()..)?;
        }
        Some(Vec::new())
    }
}
