//! Objects with known keys.

use super::{Fault, Scanner, Text};

/// An object of which these keys are known.
pub(crate) trait Keyed<'a>: Default {
    /// At most 32.
    const KEYS: &'static [&'static str];
    /// Those of them without which it is none.
    const REQUIRED: &'static [&'static str] = &[];

    /// Reads the value of one of [`Keyed::KEYS`].
    fn set(&mut self, key: &'static str, scanner: &mut Scanner<'a>) -> Result<(), Fault>;

    /// Takes note of another key. Its value is gone past afterwards.
    fn other(&mut self, key: Text<'a>) -> Result<(), Fault>;
}

/// Reads an object. A key that is known stands in it once.
pub(crate) fn object<'a, T: Keyed<'a>>(scanner: &mut Scanner<'a>) -> Result<T, Fault> {
    scanner.peek()?;
    let offset = scanner.offset();
    let mut value = T::default();
    let mut seen = 0_u32;
    scanner.object_of(|scanner, key| {
        let Some((at, known)) = T::KEYS.iter().enumerate().find(|(_, known)| key.is(known)) else {
            value.other(key)?;
            return scanner.skip().map(drop);
        };
        if seen & (1 << at) != 0 {
            return Err(Fault::Twice { offset: key.span.start, key: known });
        }
        seen |= 1 << at;
        value.set(known, scanner)
    })?;
    let has =
        |key: &str| T::KEYS.iter().position(|known| *known == key).is_some_and(|at| seen & (1 << at) != 0);
    match T::REQUIRED.iter().find(|key| !has(key)) {
        Some(key) => Err(Fault::Missing { offset, key }),
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

/// `keyed!(TYPE, required [KEYS], |value, scanner| { KEY => how it is read, … }, |value, key| other keys)`.
macro_rules! keyed {
    ($type:ty, required [$($required:literal),*], |$value:ident, $scanner:ident| { $($key:literal => $set:expr,)* },
     |$other:ident, $text:ident| $unknown:expr) => {
        impl<'a> $crate::json::Keyed<'a> for $type {
            const KEYS: &'static [&'static str] = &[$($key),*];
            const REQUIRED: &'static [&'static str] = &[$($required),*];

            fn set(
                &mut self,
                key: &'static str,
                $scanner: &mut $crate::json::Scanner<'a>,
            ) -> Result<(), $crate::json::Fault> {
                let $value = self;
                match key {
                    $($key => $set,)*
                    _ => {}
                }
                Ok(())
            }

            fn other(&mut self, $text: $crate::json::Text<'a>) -> Result<(), $crate::json::Fault> {
                let $other = self;
                $unknown
            }
        }
    };
}
pub(crate) use keyed;
