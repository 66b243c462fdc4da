//! Says a thing once, until another is so.

use crate::say;

#[derive(Debug, Default)]
pub(crate) struct Said(Option<String>);

impl Said {
    pub(crate) fn say(&mut self, text: String) {
        if self.0.as_ref() != Some(&text) {
            say(&text);
            self.0 = Some(text);
        }
    }

    /// Says the next thing, whatever it is.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}
