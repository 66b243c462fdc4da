//! Why the driver cannot be installed, or is not the one that runs.

use std::fmt;

/// A reason, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub reason: Reason,
    /// A sentence without its end.
    pub why: String,
    pub remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// This is a container: it has no kernel of its own.
    Container,
    /// AMD has no packages for this distribution.
    Distribution,
    /// Something that decides it cannot be read.
    Unreadable,
    /// There is a driver of which nobody knows what it is.
    UnknownDriver,
    /// There is another release of AMD's driver, and the one that is wanted is not to be had.
    OtherRelease,
    /// The driver could be built and not be loaded.
    KeptOut,
    /// The kernel would refuse the module that dkms signs.
    Signature,
    /// The module cannot be built for the running kernel.
    NoHeaders,
    /// apt has no such package.
    NotOffered,
    /// It was installed, and it is not what modprobe loads or what is loaded.
    NotLoaded,
}

impl Stop {
    pub(super) fn new(reason: Reason, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason, why: why.into(), remedy: remedy.into() }
    }

    /// apt does not tell what it has.
    #[must_use]
    pub fn apt(why: &str) -> Self {
        Self::new(
            Reason::Unreadable,
            format!("nobody knows whether its packages are to be had: {why}"),
            "mend that, and apply again",
        )
    }

    pub(super) fn unreadable(why: impl Into<String>) -> Self {
        Self::new(Reason::Unreadable, why, "mend that, and apply again as root")
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.why, self.remedy)
    }
}
