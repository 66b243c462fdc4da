//! Compute and memory modes, as amdgpu spells them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How many devices a card is divided into (amdgpu_gfx.h, `enum amdgpu_gfx_partition`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compute {
    /// One device.
    Spx,
    /// Two devices.
    Dpx,
    /// Three devices.
    Tpx,
    /// Four devices.
    Qpx,
    /// A device for each XCD.
    Cpx,
}

/// How many domains a card's memory is divided into (amdgpu_gmc.h, `enum amdgpu_memory_partition`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Memory(u32);

/// A text that is no mode: its first 40 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoMode {
    Compute(String),
    Memory(String),
}

impl Compute {
    pub const ALL: [Self; 5] = [Self::Spx, Self::Dpx, Self::Tpx, Self::Qpx, Self::Cpx];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spx => "SPX",
            Self::Dpx => "DPX",
            Self::Tpx => "TPX",
            Self::Qpx => "QPX",
            Self::Cpx => "CPX",
        }
    }

    /// Reads a mode in any case.
    ///
    /// # Errors
    /// The text is none of the five modes.
    pub fn parse(text: &str) -> Result<Self, NoMode> {
        let is_it = |mode: &Self| mode.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(is_it).ok_or_else(|| NoMode::Compute(begin_of(text)))
    }

    /// How many devices a card with this many XCDs becomes.
    #[must_use]
    pub fn devices(self, xcds: u32) -> u32 {
        match self {
            Self::Spx => 1,
            Self::Dpx => 2,
            Self::Tpx => 3,
            Self::Qpx => 4,
            Self::Cpx => xcds,
        }
    }
}

impl Memory {
    pub const NPS1: Self = Self(1);
    pub const NPS2: Self = Self(2);
    pub const NPS4: Self = Self(4);

    const DOMAINS: [u32; 6] = [1, 2, 3, 4, 6, 8];

    /// Reads a mode in any case.
    ///
    /// # Errors
    /// The text is none that amdgpu knows.
    pub fn parse(text: &str) -> Result<Self, NoMode> {
        let digits = text.get(..3).filter(|nps| nps.eq_ignore_ascii_case("NPS")).and_then(|_| text.get(3..));
        let mode = Self::DOMAINS.into_iter().find(|domains| digits == Some(&domains.to_string()));
        mode.map(Self).ok_or_else(|| NoMode::Memory(begin_of(text)))
    }

    #[must_use]
    pub fn domains(self) -> u32 {
        self.0
    }
}

fn begin_of(text: &str) -> String {
    text.chars().take(40).collect()
}

impl fmt::Display for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NPS{}", self.0)
    }
}

impl fmt::Display for NoMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compute(text) => write!(f, "{text:?} is no compute mode: SPX, DPX, TPX, QPX or CPX"),
            Self::Memory(text) => {
                write!(f, "{text:?} is no memory mode: NPS1, NPS2, NPS3, NPS4, NPS6 or NPS8")
            }
        }
    }
}

impl std::error::Error for NoMode {}

impl Serialize for Compute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Memory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Compute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_in_any_case_and_written_as_the_driver_writes_it() {
        for (text, mode) in [("SPX", Some("SPX")), ("cpx", Some("CPX")), ("QPX ", None), ("", None)] {
            assert_eq!(Compute::parse(text).ok().map(Compute::name), mode, "{text:?}");
        }
        for (text, mode) in [
            ("NPS1", Some("NPS1")),
            ("nps8", Some("NPS8")),
            ("NPS5", None),
            ("NPS04", None),
            ("NPS", None),
            ("ÄPS1", None),
        ] {
            assert_eq!(Memory::parse(text).ok().map(|mode| mode.to_string()).as_deref(), mode, "{text:?}");
        }
    }
}
