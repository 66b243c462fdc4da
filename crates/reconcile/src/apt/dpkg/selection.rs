//! What dpkg has been told to do with a package.

/// What is to become of a package (dpkg(1), "Package selection states"). It says nothing of what is there: a removal
/// that was killed leaves an installed package behind that is to go, and `apt-get dselect-upgrade` would end that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    Unknown,
    Install,
    /// It is to stay as it is: `apt-mark hold`.
    Hold,
    Deinstall,
    Purge,
}

const SELECTIONS: [(&str, Selection); 5] = [
    ("unknown", Selection::Unknown),
    ("install", Selection::Install),
    ("hold", Selection::Hold),
    ("deinstall", Selection::Deinstall),
    ("purge", Selection::Purge),
];

impl Selection {
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        let known = SELECTIONS.iter().find(|(name, _)| *name == word).map(|(_, selection)| *selection);
        known.ok_or_else(|| format!("dpkg has no selection {word:?}"))
    }

    /// As dpkg names it.
    #[must_use]
    pub fn word(self) -> &'static str {
        SELECTIONS.iter().find(|(_, selection)| *selection == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn is_to_go(self) -> bool {
        matches!(self, Self::Deinstall | Self::Purge)
    }
}
