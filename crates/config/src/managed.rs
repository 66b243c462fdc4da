//! Whether rocworker manages a part of the machine.

use std::fmt::{self, Display, Formatter};

/// A part of the machine. The configuration is asked once, when it is read: everything else matches on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Managed<T = ()> {
    On(T),
    Off(Off),
}

/// Why a part is not managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// `compute-runtime: cuda`: another vendor's runtime is offered.
    Cuda,
    /// `compute-runtime: none`, or one of its older names: no GPU is offered.
    NoGpu,
    /// The configuration has `configure: never` for this engine.
    Never(&'static str),
    /// A key, or its default, turns the part off: `boot.unit: false`.
    Key(&'static str),
}

impl<T> Managed<T> {
    /// `why`: the reason where it is off.
    pub(super) fn of(how: Option<T>, why: Off) -> Self {
        how.map_or(Self::Off(why), Self::On)
    }

    /// Off where another part is off that it needs; the reason of its own counts first.
    pub(super) fn needing<U>(self, other: &Managed<U>) -> Self {
        match (self, other) {
            (Self::On(_), Managed::Off(why)) => Self::Off(*why),
            (own, _) => own,
        }
    }

    #[must_use]
    pub fn on(&self) -> Option<&T> {
        match self {
            Self::On(how) => Some(how),
            Self::Off(_) => None,
        }
    }

    #[must_use]
    pub fn off(&self) -> Option<Off> {
        match self {
            Self::On(_) => None,
            Self::Off(why) => Some(*why),
        }
    }

    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on().is_some()
    }
}

impl Display for Off {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda => f.write_str("the configuration leaves AMD's GPUs alone (compute-runtime: cuda)"),
            Self::NoGpu => f.write_str("the configuration leaves AMD's GPUs alone (compute-runtime: none)"),
            Self::Never(engine) => {
                write!(f, "the configuration leaves it alone ({engine}.configure: never)")
            }
            Self::Key(key) => write!(f, "the configuration leaves it alone ({key})"),
        }
    }
}
