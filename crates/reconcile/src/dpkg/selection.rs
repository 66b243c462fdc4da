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

impl Selection {
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        Ok(match word {
            "unknown" => Self::Unknown,
            "install" => Self::Install,
            "hold" => Self::Hold,
            "deinstall" => Self::Deinstall,
            "purge" => Self::Purge,
            other => return Err(format!("dpkg has no selection {other:?}")),
        })
    }

    /// As dpkg names it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Install => "install",
            Self::Hold => "hold",
            Self::Deinstall => "deinstall",
            Self::Purge => "purge",
        }
    }

    pub(crate) fn is_to_go(self) -> bool {
        matches!(self, Self::Deinstall | Self::Purge)
    }
}
