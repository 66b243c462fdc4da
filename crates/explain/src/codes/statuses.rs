//! The status codes of HIP, HSA and AMD SMI, as hip.toml, hsa.toml and amdsmi.toml have them.

use kernel_log::knowledge::Blame;
use serde::Deserialize;

/// A library whose status codes `explain` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    Hip,
    Hsa,
    AmdSmi,
}

/// The status codes of one library, as a file beside this one lists them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The library's header with the codes, and its release.
    pub source: String,
    #[serde(rename = "code")]
    pub codes: Vec<Status>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    pub number: u32,
    pub name: String,
    /// Other names of this number.
    #[serde(default)]
    pub also: Vec<String>,
    pub meaning: String,
    /// `None` where nothing failed.
    pub blame: Option<Blame>,
    #[serde(default)]
    pub actions: Vec<String>,
    /// Words of what the library prints when it meets this, without the code.
    #[serde(default)]
    pub says: Vec<String>,
}

impl Library {
    pub const ALL: [Self; 3] = [Self::Hip, Self::Hsa, Self::AmdSmi];

    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Hip => "hip",
            Self::Hsa => "hsa",
            Self::AmdSmi => "amdsmi",
        }
    }

    /// Whether a word looks like the name of a code of this library.
    pub(super) fn names(self, word: &str) -> bool {
        let beginnings: &[&str] = match self {
            Self::Hip => &["hipError", "hipSuccess"],
            Self::Hsa => &["HSA_STATUS_", "HSA_EXT_STATUS_"],
            Self::AmdSmi => &["AMDSMI_STATUS_"],
        };
        beginnings.iter().any(|beginning| word.starts_with(beginning))
    }

    /// # Errors
    /// The built-in table is damaged, which a test of this table excludes.
    pub fn table(self) -> Result<Table, toml::de::Error> {
        toml::from_str(match self {
            Self::Hip => include_str!("hip.toml"),
            Self::Hsa => include_str!("hsa.toml"),
            Self::AmdSmi => include_str!("amdsmi.toml"),
        })
    }
}

impl Table {
    /// The code whose number or name `word` is.
    #[must_use]
    pub fn find(&self, word: &str) -> Option<&Status> {
        let number = super::number(word);
        let is_it = |status: &&Status| {
            number == Some(status.number) || status.names().any(|name| name.eq_ignore_ascii_case(word))
        };
        self.codes.iter().find(is_it)
    }
}

impl Status {
    /// The code as `explain` takes it, and with the number as the library's header has it: HIP's are decimal, and so are
    /// small ones of the other libraries.
    #[must_use]
    pub fn code(&self, library: Library) -> String {
        let prefix = library.prefix();
        match self.number {
            number if number >= 0x1000 && library != Library::Hip => format!("{prefix}:{number:#x}"),
            number => format!("{prefix}:{number}"),
        }
    }

    /// Whether this is the code of an error, and a text has one of its names as a word.
    pub(super) fn is_error_named_in(&self, text: &str) -> bool {
        let is_word = |word: &str| self.names().any(|name| name == word);
        self.number > 0 && text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(is_word)
    }

    /// Whether a text has the library's words for the code.
    pub(super) fn is_said_in(&self, text: &str) -> bool {
        self.says.iter().any(|words| text.contains(words))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.also).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_stands_once_in_order_and_says_what_it_means() {
        for library in Library::ALL {
            let table = library.table().unwrap();
            assert!(table.codes.windows(2).all(|pair| pair[0].number < pair[1].number), "{library:?}");
            for status in &table.codes {
                assert!(status.names().all(|name| library.names(name)), "{status:?}");
                for sentence in status.actions.iter().chain([&status.meaning]) {
                    assert!(sentence.ends_with('.') && sentence.len() > 8, "{status:?}");
                }
                assert!(status.blame.is_none() || !status.actions.is_empty(), "{status:?}");
            }
        }
    }

    #[test]
    fn a_code_is_found_by_either_name_and_by_its_number_in_either_base() {
        for (library, word, expected) in [
            (Library::Hip, "719", "hipErrorLaunchFailure"),
            (Library::Hip, "0x2cf", "hipErrorLaunchFailure"),
            (Library::Hip, "HIPERRORMEMORYALLOCATION", "hipErrorOutOfMemory"),
            (Library::Hsa, "4118", "HSA_STATUS_ERROR_EXCEPTION"),
            (Library::Hsa, "0x1016", "HSA_STATUS_ERROR_EXCEPTION"),
            (Library::AmdSmi, "0xffffffff", "AMDSMI_STATUS_UNKNOWN_ERROR"),
        ] {
            assert_eq!(library.table().unwrap().find(word).unwrap().name, expected, "{word}");
        }
        for word in ["99999", "", "hip", "hipError", "-1"] {
            assert!(Library::Hip.table().unwrap().find(word).is_none(), "{word}");
        }
    }
}
