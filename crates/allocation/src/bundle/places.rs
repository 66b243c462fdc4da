//! Where things stand in a bundle, and what is in doubt about it.

use std::borrow::Cow;

use super::Error;
use crate::{
    json::{Container, Fault, Scanner, Span},
    splice::{Brackets, Place},
};

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::TooDeep { offset } => Self::TooDeep { offset },
            Fault::Syntax { offset, expected } | Fault::Unwanted { offset, expected } => {
                Self::Syntax { offset, expected }
            }
            // Entries of lists have keys of their own: there it is said of the list (entries::read).
            Fault::Twice { key, .. } | Fault::Missing { key, .. } | Fault::Spelling { known: key, .. } => {
                Self::WrongType { key: key.to_owned(), expected: "there once, as it is spelt here" }
            }
            Fault::Unknown { offset, .. } => Self::Syntax { offset, expected: "another key" },
        }
    }
}

/// The first reason why a text cannot be edited. Scanning goes on behind it, since whether the container
/// asks for anything must be known all the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubt(pub(crate) Option<Error>);

impl Doubt {
    fn note(&mut self, error: impl FnOnce() -> Error) {
        self.0.get_or_insert_with(error);
    }

    /// Reads the object or array that stands behind a key, and notes where, or what is wrong about it.
    pub(crate) fn member<'a>(
        &mut self,
        scanner: &mut Scanner<'a>,
        key: Key,
        brackets: Brackets,
        place: &mut Place,
        read: impl FnOnce(&mut Scanner<'a>, &mut Self) -> Result<Container, Fault>,
    ) -> Result<(), Fault> {
        if *place != Place::Absent {
            self.note(|| Error::Twice { key: key.to_string() });
        }
        match (brackets, scanner.peek()?) {
            (Brackets::Object, b'{') | (Brackets::Array, b'[') => {
                *place = Place::Here(read(scanner, self)?);
            }
            (_, b'n') => *place = Place::Null(scanner.skip()?),
            (Brackets::Object, _) => self.wrong_type(scanner, key, "an object")?,
            (Brackets::Array, _) => self.wrong_type(scanner, key, "an array")?,
        }
        Ok(())
    }

    /// As [`Doubt::member`], for a value of which only the place matters now.
    pub(crate) fn whole(
        &mut self,
        scanner: &mut Scanner<'_>,
        key: Key,
        brackets: Brackets,
        place: &mut Place,
    ) -> Result<(), Fault> {
        self.member(scanner, key, brackets, place, |scanner, _| scanner.pass_whole())
    }

    fn wrong_type(
        &mut self,
        scanner: &mut Scanner<'_>,
        key: Key,
        expected: &'static str,
    ) -> Result<(), Fault> {
        self.note(|| Error::WrongType { key: key.to_string(), expected });
        scanner.pass().map(drop)
    }
}

/// A key by its way from the root of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(pub(crate) &'static str, pub(crate) &'static str);

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.0, self.1)
    }
}

/// An entry of `process.env`: what it says, and where it stands, with its quotation marks.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) span: Span,
}

/// The places in a process object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process<'a> {
    pub(crate) env: Place,
    pub(crate) entries: Vec<Entry<'a>>,
    pub(crate) user: Place,
    pub(crate) gids: Place,
}

impl<'a> Process<'a> {
    /// Reads a process object. `prefix` is what its keys are called in messages.
    pub(crate) fn read(
        &mut self,
        scanner: &mut Scanner<'a>,
        doubt: &mut Doubt,
        prefix: &'static str,
    ) -> Result<Container, Fault> {
        let Self { env, entries, user, gids } = self;
        scanner.object(|scanner, key| {
            if key.names("env") {
                let key = Key(prefix, "env");
                doubt.member(scanner, key, Brackets::Array, env, |scanner, doubt| {
                    scanner.array(|scanner| {
                        if scanner.peek()? != b'"' {
                            return doubt.wrong_type(scanner, key, "an array of strings");
                        }
                        let entry = scanner.string()?;
                        entries.push(Entry { text: entry.decode(), span: entry.span });
                        Ok(())
                    })
                })
            } else if key.names("user") {
                doubt.member(scanner, Key(prefix, "user"), Brackets::Object, user, |scanner, doubt| {
                    scanner.object(|scanner, key| {
                        if key.names("additionalGids") {
                            doubt.whole(scanner, Key(prefix, "user.additionalGids"), Brackets::Array, gids)
                        } else {
                            scanner.pass().map(drop)
                        }
                    })
                })
            } else {
                scanner.pass().map(drop)
            }
        })
    }
}

/// The places in `linux`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Linux {
    pub(crate) devices: Place,
    pub(crate) resources: Place,
    /// `linux.resources.devices`.
    pub(crate) rules: Place,
    pub(crate) namespaces: Place,
    pub(crate) uid_mappings: Place,
    pub(crate) gid_mappings: Place,
    /// Of the string, as it stands.
    pub(crate) cgroups_path: Option<Span>,
}

impl Linux {
    pub(crate) fn read(&mut self, scanner: &mut Scanner<'_>, doubt: &mut Doubt) -> Result<Container, Fault> {
        use Brackets::{Array, Object};
        scanner.object(|scanner, key| {
            if key.names("cgroupsPath") {
                // Only a lease looks at it, so that what is odd about it is for the lease to say. Where null stands
                // Go's decoder leaves what it has read already.
                match scanner.peek()? {
                    b'n' => drop(scanner.skip()?),
                    _ => self.cgroups_path = Some(scanner.pass()?),
                }
                Ok(())
            } else if key.names("devices") {
                doubt.whole(scanner, Key("linux.", "devices"), Array, &mut self.devices)
            } else if key.names("namespaces") {
                doubt.whole(scanner, Key("linux.", "namespaces"), Array, &mut self.namespaces)
            } else if key.names("uidMappings") {
                doubt.whole(scanner, Key("linux.", "uidMappings"), Array, &mut self.uid_mappings)
            } else if key.names("gidMappings") {
                doubt.whole(scanner, Key("linux.", "gidMappings"), Array, &mut self.gid_mappings)
            } else if key.names("resources") {
                let rules = &mut self.rules;
                doubt.member(
                    scanner,
                    Key("linux.", "resources"),
                    Object,
                    &mut self.resources,
                    |scanner, doubt| {
                        scanner.object(|scanner, key| {
                            if key.names("devices") {
                                doubt.whole(scanner, Key("linux.resources.", "devices"), Array, rules)
                            } else {
                                scanner.pass().map(drop)
                            }
                        })
                    },
                )
            } else {
                scanner.pass().map(drop)
            }
        })
    }
}
