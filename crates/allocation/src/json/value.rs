//! Values of one type, and the fault when another value is there.

use std::{borrow::Cow, str::FromStr};

use super::{Container, Fault, Problem, Scanner, Text};

impl<'a> Scanner<'a> {
    /// The caller expects another value than the one at the scanner's place.
    pub(crate) fn unwanted<T>(&mut self, expected: &'static str) -> Result<T, Fault> {
        self.peek()?;
        Err(Fault { offset: self.offset(), problem: Problem::Unwanted(expected) })
    }

    #[inline]
    pub(crate) fn text(&mut self) -> Result<Cow<'a, str>, Fault> {
        match self.peek()? {
            b'"' => self.string().map(Text::decode),
            _ => self.unwanted("a string"),
        }
    }

    #[inline]
    pub(crate) fn string_of_its_own(&mut self) -> Result<String, Fault> {
        self.text().map(Cow::into_owned)
    }

    /// A string that means something.
    pub(crate) fn named<T>(
        &mut self,
        expected: &'static str,
        meaning: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Fault> {
        if self.peek()? != b'"' {
            return self.unwanted(expected);
        }
        let offset = self.offset();
        meaning(&self.text()?).ok_or(Fault { offset, problem: Problem::Unwanted(expected) })
    }

    /// A string that is one of these.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        expected: &'static str,
        names: &[(&str, T)],
    ) -> Result<T, Fault> {
        self.named(expected, |text| names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value))
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, Fault> {
        match self.peek()? {
            b't' => self.skip().map(|_| true),
            b'f' => self.skip().map(|_| false),
            _ => self.unwanted("true or false"),
        }
    }

    /// A whole number of the type's range, in plain digits.
    pub(crate) fn integer<T: FromStr>(&mut self) -> Result<T, Fault> {
        let expected = "a whole number in its range";
        let (b'-' | b'0'..=b'9') = self.peek()? else { return self.unwanted(expected) };
        let span = self.skip()?;
        let unwanted = Fault { offset: span.start, problem: Problem::Unwanted(expected) };
        span.of(self.whole()).parse().map_err(|_| unwanted)
    }

    /// `null` is as good as absent.
    #[inline]
    pub(crate) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        match self.peek()? {
            b'n' => self.skip().map(|_| None),
            _ => read(self).map(Some),
        }
    }

    /// Goes past a list, or `null`, which is the same as empty; `element` is called at each element and must go past it.
    pub(crate) fn each(&mut self, element: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        match self.peek()? {
            b'n' => self.skip().map(drop),
            b'[' => self.array(element).map(drop),
            _ => self.unwanted("a list"),
        }
    }

    /// A list, or `null`, which is the same as empty.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        // Most lists are short, and their elements large.
        let mut list = Vec::with_capacity(2);
        self.each(|scanner| {
            list.push(read(scanner)?);
            Ok(())
        })?;
        Ok(list)
    }

    pub(crate) fn texts(&mut self) -> Result<Vec<Cow<'a, str>>, Fault> {
        self.list(Self::text)
    }

    /// As [`Scanner::object`], where something else may be.
    pub(crate) fn object_of(
        &mut self,
        member: impl FnMut(&mut Self, Text<'a>) -> Result<(), Fault>,
    ) -> Result<Container, Fault> {
        match self.peek()? {
            b'{' => self.object(member),
            _ => self.unwanted("an object"),
        }
    }
}
