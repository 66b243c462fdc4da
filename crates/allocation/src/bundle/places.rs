//! Where things are in a bundle.

use std::borrow::Cow;

use super::entries::unreadable;
use crate::{
    Error,
    json::{Container, Fault, Problem, Scanner, Span, Text},
    splice::{ARRAY, OBJECT, Place},
};

impl Place {
    /// Reads the object or array behind a key, and notes where it is.
    ///
    /// # Errors
    /// The key was there before, or its value is something else: then it is not clear what the text means.
    pub(super) fn read<'a>(
        &mut self,
        scanner: &mut Scanner<'a>,
        (key, name): (Text<'a>, &'static str),
        brackets: &'static str,
        read: impl FnOnce(&mut Scanner<'a>) -> Result<Container, Fault>,
    ) -> Result<(), Fault> {
        if *self != Self::Absent {
            return Err(Fault { offset: key.span.start, problem: Problem::Twice(name) });
        }
        *self = match scanner.peek()? {
            b'n' => Self::Null(scanner.skip()?),
            first if brackets.as_bytes().first() == Some(&first) => Self::Here(read(scanner)?),
            _ if brackets == OBJECT => return scanner.unwanted("an object"),
            _ => return scanner.unwanted("a list"),
        };
        Ok(())
    }

    /// As [`Place::read`], for a value of which only the place matters now.
    pub(super) fn pass<'a>(
        &mut self,
        scanner: &mut Scanner<'a>,
        key: (Text<'a>, &'static str),
        brackets: &'static str,
    ) -> Result<(), Fault> {
        self.read(scanner, key, brackets, Scanner::pass_whole)
    }
}

/// The place of the list behind this key of an object, which is passed over otherwise. `path` names the object.
///
/// # Errors
/// The key appears twice, or its value is something else.
pub(super) fn find(text: &str, object: Container, path: &str, name: &'static str) -> Result<Place, Error> {
    let mut place = Place::Absent;
    let read = Scanner::at(text, object.span.start).object(|scanner, key| {
        if key.names(name) { place.pass(scanner, (key, name), ARRAY) } else { scanner.pass().map(drop) }
    });
    read.map_err(|fault| unreadable(text, &[path, name].concat(), fault))?;
    Ok(place)
}

/// An entry of `process.env`: what it says, and where it is, with its quotation marks.
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
    /// Reads a process object.
    pub(crate) fn read(&mut self, scanner: &mut Scanner<'a>) -> Result<Container, Fault> {
        let Self { env, entries, user, gids } = self;
        scanner.object_of(|scanner, key| {
            if key.names("env") {
                env.read(scanner, (key, "env"), ARRAY, |scanner| {
                    scanner.array(|scanner| {
                        if scanner.peek()? != b'"' {
                            return scanner.unwanted("a string");
                        }
                        let entry = scanner.string()?;
                        entries.push(Entry { text: entry.decode(), span: entry.span });
                        Ok(())
                    })
                })
            } else if key.names("user") {
                user.read(scanner, (key, "user"), OBJECT, |scanner| {
                    scanner.object(|scanner, key| {
                        if key.names("additionalGids") {
                            gids.pass(scanner, (key, "additionalGids"), ARRAY)
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
    /// Of the string, as the text spells it.
    pub(crate) cgroups_path: Option<Span>,
}

impl Linux {
    pub(crate) fn read(&mut self, scanner: &mut Scanner<'_>) -> Result<Container, Fault> {
        let Self { devices, resources, rules, namespaces, uid_mappings, gid_mappings, cgroups_path } = self;
        let mut lists = [
            ("devices", devices),
            ("namespaces", namespaces),
            ("uidMappings", uid_mappings),
            ("gidMappings", gid_mappings),
        ];
        scanner.object(|scanner, key| {
            if let Some((name, place)) = lists.iter_mut().find(|(name, _)| key.names(name)) {
                place.pass(scanner, (key, name), ARRAY)
            } else if key.names("cgroupsPath") {
                // Only a lease looks at it, so the lease reports what is odd about it. At null, Go's decoder leaves
                // what it has read already.
                match scanner.peek()? {
                    b'n' => drop(scanner.skip()?),
                    _ => *cgroups_path = Some(scanner.pass()?),
                }
                Ok(())
            } else if key.names("resources") {
                resources.read(scanner, (key, "resources"), OBJECT, |scanner| {
                    scanner.object(|scanner, key| {
                        if key.names("devices") {
                            rules.pass(scanner, (key, "devices"), ARRAY)
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
