//! Objects with known keys.

use super::{Fault, Problem, Scanner, Text};

/// An object of which some keys are known: at most 32.
pub(crate) trait Keyed<'a>: Default {
    const KEYS: &'static [&'static str];
    /// Those of them without which it is none.
    const REQUIRED: &'static [&'static str] = &[];

    /// Reads the value behind a key that is known; false where it is not.
    fn member(&mut self, key: Text<'a>, seen: &mut Seen, scanner: &mut Scanner<'a>) -> Result<bool, Fault>;

    /// Takes note of another key. Its value is gone past afterwards.
    fn other(&mut self, key: Text<'a>) -> Result<(), Fault>;
}

/// The places of [`Keyed::KEYS`] that were there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen(u32);

impl Seen {
    pub(crate) fn mark(&mut self, place: u32, key: Text<'_>, known: &'static str) -> Result<(), Fault> {
        if self.0 & (1 << place) != 0 {
            return Err(Fault { offset: key.span.start, problem: Problem::Twice(known) });
        }
        self.0 |= 1 << place;
        Ok(())
    }
}

/// Reads an object. A known key may appear in it once.
pub(crate) fn object<'a, T: Keyed<'a>>(scanner: &mut Scanner<'a>) -> Result<T, Fault> {
    const { assert!(T::KEYS.len() <= 32, "`Seen` has a bit for each") };
    scanner.peek()?;
    let offset = scanner.offset();
    let mut value = T::default();
    let mut seen = Seen::default();
    scanner.object_of(|scanner, key| {
        if value.member(key, &mut seen, scanner)? {
            return Ok(());
        }
        value.other(key)?;
        scanner.skip().map(drop)
    })?;
    let has = |key: &str| T::KEYS.iter().zip(0..).any(|(known, at)| *known == key && seen.0 & (1 << at) != 0);
    match T::REQUIRED.iter().find(|key| !has(key)) {
        Some(key) => Err(Fault { offset, problem: Problem::Missing(key) }),
        None => Ok(value),
    }
}

/// Reads a text that is one object and nothing else.
pub(crate) fn whole<'a, T: Keyed<'a>>(text: &'a str) -> Result<T, Fault> {
    let mut scanner = Scanner::new(text);
    let value = object(&mut scanner)?;
    scanner.finish()?;
    Ok(value)
}

/// One member of a text that may be of any version. None: it is not there, or null, or there twice, or this is no
/// JSON object.
#[inline]
pub(crate) fn member<'a, T>(
    text: &'a str,
    name: &'static str,
    read: impl Fn(&mut Scanner<'a>) -> Result<T, Fault>,
) -> Option<T> {
    let mut found = None;
    let mut scanner = Scanner::new(text);
    let whole = scanner.object(|scanner, key| {
        if !key.is(name) {
            return scanner.skip().map(drop);
        }
        match found.replace(scanner.optional(&read)?) {
            Some(_) => Err(Fault { offset: key.span.start, problem: Problem::Twice(name) }),
            None => Ok(()),
        }
    });
    whole.and_then(|_| scanner.finish()).ok()?;
    found.flatten()
}

/// Refuses a key that is not known.
pub(crate) fn unknown<'a, T: Keyed<'a>>(key: Text<'a>) -> Result<(), Fault> {
    Err(Fault { offset: key.span.start, problem: Problem::Unknown(T::KEYS) })
}

/// Refuses a key that Go takes for another, known one: it would change what the object means.
pub(crate) fn spelt<'a, T: Keyed<'a>>(key: Text<'a>) -> Result<(), Fault> {
    match T::KEYS.iter().find(|known| key.names(known)) {
        Some(known) => Err(Fault { offset: key.span.start, problem: Problem::Spelling(known) }),
        None => Ok(()),
    }
}

/// `keyed!(TYPE, required [KEYS], |value, scanner| { KEY => how it is read, … }, |value, key| other keys)`.
macro_rules! keyed {
    ($type:ty, required [$($required:literal),*], |$value:ident, $scanner:ident| { $($key:literal => $set:expr,)* },
     |$other:ident, $text:ident| $unknown:expr) => {
        impl<'a> $crate::json::Keyed<'a> for $type {
            const KEYS: &'static [&'static str] = &[$($key),*];
            const REQUIRED: &'static [&'static str] = &[$($required),*];

            // Each key is compared as the constant that it is.
            fn member(
                &mut self,
                key: $crate::json::Text<'a>,
                seen: &mut $crate::json::Seen,
                $scanner: &mut $crate::json::Scanner<'a>,
            ) -> Result<bool, $crate::json::Fault> {
                let mut place = 0;
                $(
                    if key.is($key) {
                        seen.mark(place, key, $key)?;
                        let $value = self;
                        $set;
                        return Ok(true);
                    }
                    place += 1;
                )*
                let _ = place;
                Ok(false)
            }

            fn other(&mut self, $text: $crate::json::Text<'a>) -> Result<(), $crate::json::Fault> {
                let $other = self;
                $unknown
            }
        }
    };
}
pub(crate) use keyed;
