//! The errors 1 to 8, as errors.toml has them.

use kernel_log::knowledge::{Class, Severity};
use serde::{Deserialize, Serialize};

const TABLE: &str = include_str!("errors.toml");

/// An error, as docs/json.md describes it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Error {
    pub code: u32,
    pub name: String,
    pub severity: Severity,
    pub description: String,
    pub causes: Vec<String>,
    pub actions: Vec<String>,
    pub documentation: Option<String>,
    /// What ROCr prints of it without a status code (core/runtime/runtime.cpp): in one line, all words of one of these.
    #[serde(default, skip_serializing)]
    pub says: Vec<Vec<String>>,
    /// The classes of the kernel's messages that are evidence of this error.
    pub classes: Vec<Class>,
    #[serde(default, rename(deserialize = "correction", serialize = "corrections"))]
    pub corrections: Vec<Correction>,
}

impl Error {
    /// Whether ROCr prints such a text when it meets this error.
    #[must_use]
    pub fn is_reported_in(&self, text: &str) -> bool {
        self.says.iter().any(|words| words.iter().all(|word| text.contains(word)))
    }
}

/// A text of the table's source that is wrong, and is replaced above.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    pub of: String,
    pub because: String,
}

/// All errors, by their numbers.
///
/// # Errors
/// The built-in table is damaged, which a test of this table excludes.
pub fn all() -> Result<Vec<Error>, toml::de::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        error: Vec<Error>,
    }
    Ok(toml::from_str::<Table>(TABLE)?.error)
}

#[cfg(test)]
mod tests {
    use kernel_log::knowledge::Knowledge;

    use super::*;

    #[test]
    fn the_kernel_has_messages_of_every_class_that_is_evidence() {
        let knowledge = Knowledge::built_in().unwrap();
        for error in all().unwrap() {
            for class in &error.classes {
                let mut messages = knowledge.messages().iter();
                assert!(messages.any(|message| message.class == *class), "{}: {class:?}", error.code);
            }
        }
    }

    #[test]
    fn the_eight_have_causes_actions_and_evidence_and_each_correction_a_reason() {
        let errors = all().unwrap();
        assert_eq!(errors.iter().map(|error| error.code).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
        for error in &errors {
            let Error { causes, actions, classes, .. } = error;
            assert!(causes.len() >= 2 && actions.len() >= 3 && !classes.is_empty(), "{error:?}");
            for correction in &error.corrections {
                let says = [causes, actions].into_iter().flatten().chain([&error.description]);
                assert!(says.clone().all(|text| *text != correction.of), "{correction:?}");
                assert!(
                    !correction.because.is_empty() && !correction.because.ends_with('.'),
                    "{correction:?}"
                );
            }
        }
    }

    /// What AAMI calls them; its texts are in the command's golden files.
    #[test]
    fn names_and_severities_are_the_sources() {
        use Severity::{Critical, Info, Warning};
        let errors = all().unwrap();
        let named: Vec<(&str, Severity)> =
            errors.iter().map(|error| (error.name.as_str(), error.severity)).collect();
        let expected = [
            ("GPU Memory Error", Critical),
            ("GPU Hang", Critical),
            ("PCIe Error", Warning),
            ("Thermal Throttling", Warning),
            ("Power Limit Exceeded", Warning),
            ("ECC Error - Correctable", Info),
            ("ECC Error - Uncorrectable", Critical),
            ("XGMI Link Error", Critical),
        ];
        assert_eq!(named, expected);
    }
}
