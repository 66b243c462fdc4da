//! Where things stand in a bundle, and what is in doubt about it.

use std::borrow::Cow;

use crate::{
    Error,
    json::{Container, Fault, Scanner, Span},
    splice::{ARRAY, OBJECT, Place},
};

/// A key by its way from the root of the text: what is in front of it, and itself.
pub(crate) type Key = [&'static str; 2];

/// The first reason why a text cannot be edited. Scanning goes on behind it, since whether the container
/// asks for anything must be known all the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubt(Option<Error>);

impl Doubt {
    pub(crate) fn error(&self) -> Option<&Error> {
        self.0.as_ref()
    }

    /// # Errors
    /// There is a doubt.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.0.clone().map_or(Ok(()), Err)
    }

    /// Reads the object or array that stands behind a key, and notes where, or what is wrong about it.
    pub(crate) fn member<'a>(
        &mut self,
        scanner: &mut Scanner<'a>,
        key: Key,
        brackets: &'static str,
        place: &mut Place,
        read: impl FnOnce(&mut Scanner<'a>, &mut Self) -> Result<Container, Fault>,
    ) -> Result<(), Fault> {
        if *place != Place::Absent {
            let twice =
                || format!("the key {} stands twice, so it is not clear which one counts", key.concat());
            self.0.get_or_insert_with(|| Error::new(twice()));
        }
        match scanner.peek()? {
            b'n' => *place = Place::Null(scanner.skip()?),
            first if brackets.as_bytes().first() == Some(&first) => {
                *place = Place::Here(read(scanner, self)?)
            }
            _ if brackets == OBJECT => self.wrong_type(scanner, key, "an object")?,
            _ => self.wrong_type(scanner, key, "an array")?,
        }
        Ok(())
    }

    /// As [`Doubt::member`], for a value of which only the place matters now.
    pub(crate) fn whole(
        &mut self,
        scanner: &mut Scanner<'_>,
        key: Key,
        brackets: &'static str,
        place: &mut Place,
    ) -> Result<(), Fault> {
        self.member(scanner, key, brackets, place, |scanner, _| scanner.pass_whole())
    }

    fn wrong_type(&mut self, scanner: &mut Scanner<'_>, key: Key, expected: &str) -> Result<(), Fault> {
        self.0.get_or_insert_with(|| Error::new(format!("the key {} is not {expected}", key.concat())));
        scanner.pass().map(drop)
    }
}

/// Goes past the object at this place and passes over each of its members but the one of this name, a list or object of
/// which the place is wanted.
///
/// # Errors
/// It stands there twice, or is something else.
pub(super) fn find(text: &str, object: Container, key: Key, brackets: &'static str) -> Result<Place, Error> {
    let (mut place, mut doubt) = (Place::Absent, Doubt::default());
    let read = Scanner::at(text, object.span.start).object(|scanner, name| {
        if name.names(key[1]) {
            doubt.whole(scanner, key, brackets, &mut place)
        } else {
            scanner.pass().map(drop)
        }
    });
    read.map_err(|fault| fault.of(text))?;
    doubt.check()?;
    Ok(place)
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
        scanner.object_of(|scanner, key| {
            if key.names("env") {
                let key = [prefix, "env"];
                doubt.member(scanner, key, ARRAY, env, |scanner, doubt| {
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
                doubt.member(scanner, [prefix, "user"], OBJECT, user, |scanner, doubt| {
                    scanner.object(|scanner, key| {
                        if key.names("additionalGids") {
                            doubt.whole(scanner, [prefix, "user.additionalGids"], ARRAY, gids)
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
        let Self { devices, resources, rules, namespaces, uid_mappings, gid_mappings, cgroups_path } = self;
        let mut lists = [
            ("devices", devices),
            ("namespaces", namespaces),
            ("uidMappings", uid_mappings),
            ("gidMappings", gid_mappings),
        ];
        scanner.object(|scanner, key| {
            if let Some((name, place)) = lists.iter_mut().find(|(name, _)| key.names(name)) {
                doubt.whole(scanner, ["linux.", name], ARRAY, place)
            } else if key.names("cgroupsPath") {
                // Only a lease looks at it, so that what is odd about it is for the lease to say. Where null stands
                // Go's decoder leaves what it has read already.
                match scanner.peek()? {
                    b'n' => drop(scanner.skip()?),
                    _ => *cgroups_path = Some(scanner.pass()?),
                }
                Ok(())
            } else if key.names("resources") {
                doubt.member(scanner, ["linux.", "resources"], OBJECT, resources, |scanner, doubt| {
                    scanner.object(|scanner, key| {
                        if key.names("devices") {
                            doubt.whole(scanner, ["linux.resources.", "devices"], ARRAY, rules)
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
