//! Past an object or array of which only the end is wanted, whatever stands in it.
//!
//! Most of a bundle is that: mounts, capabilities, the list of system calls. Sixty-four bytes are looked at at once, and one
//! by one only the brackets that stand in no string. Of what is JSON the end is found that [`Scanner::skip`] finds, and what
//! is nested too deeply is refused in the same place. Whether all of it is JSON is not asked. So this is only for a text of
//! which somebody else reads the whole afterwards, and refuses it: what is put into a text in front of the first byte that
//! cannot stand in JSON, or behind it, leaves that byte there.

use super::{Container, DEEPEST, Fault, Scanner, Span, block};

/// What is known at the end of a row of what goes on behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Executed {
    /// All ones in a string.
    inside: u64,
    /// 1 where an escape has begun.
    escaped: u64,
}

impl Executed {
    /// The bytes of a row that stand in a string, given its quotation marks and backslashes.
    fn strings(&mut self, mut quotes: u64, backslashes: u64) -> u64 {
        // Of two backslashes in a row the second is what the first one escapes.
        quotes &= !self.escaped;
        let mut left = backslashes & !self.escaped;
        self.escaped = 0;
        while left != 0 {
            let backslash = left & left.wrapping_neg();
            quotes &= !(backslash << 1);
            left &= !(backslash | backslash << 1);
            self.escaped = backslash >> 63;
        }
        let mut strings = quotes;
        for distance in [1, 2, 4, 8, 16, 32] {
            strings ^= strings << distance;
        }
        strings ^= self.inside;
        self.inside = 0_u64.wrapping_sub(strings >> 63);
        strings
    }
}

impl Scanner<'_> {
    /// Goes past a value. An object or an array is not looked at but for its end.
    #[inline]
    pub(crate) fn pass(&mut self) -> Result<Span, Fault> {
        match self.peek()? {
            b'{' | b'[' => self.pass_container(),
            _ => self.skip(),
        }
    }

    /// The same of an object or array, with the place of its end.
    pub(crate) fn pass_whole(&mut self) -> Result<Container, Fault> {
        self.peek()?;
        let span = self.pass_container()?;
        let within = self.text.get(span.start + 1..span.end - 1).unwrap_or_default();
        let within = within.trim_end_matches([' ', '\n', '\r', '\t']).len();
        Ok(Container { span, tail: span.start + 1 + within, empty: within == 0 })
    }

    /// From a bracket on.
    #[inline(never)]
    fn pass_container(&mut self) -> Result<Span, Fault> {
        let start = self.at;
        let (rows, rest) = self.text.as_bytes().get(start..).unwrap_or_default().as_chunks::<64>();
        let mut last = [b' '; 64];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let mut carried = Executed::default();
        let mut depth = self.depth;
        for (number, row) in rows.iter().chain([&last]).enumerate() {
            let (quotes, has_more) = block::quotes(row);
            if !has_more && carried.escaped == 0 {
                carried.inside ^= 0_u64.wrapping_sub(u64::from(quotes.count_ones() & 1));
                continue;
            }
            let [opening, closing, backslashes] = block::brackets(row);
            let mut brackets = (opening | closing) & !carried.strings(quotes, backslashes);
            while brackets != 0 {
                let bracket = brackets & brackets.wrapping_neg();
                brackets ^= bracket;
                let place = || start + number * 64 + bracket.trailing_zeros() as usize;
                if opening & bracket == 0 {
                    depth -= 1;
                    if depth == self.depth {
                        self.at = place() + 1;
                        return Ok(Span { start, end: self.at });
                    }
                } else if depth == DEEPEST {
                    return Err(Fault::TooDeep { offset: place() });
                } else {
                    depth += 1;
                }
            }
        }
        self.at = self.text.len();
        self.fault(if carried.inside == 0 { "a closing bracket or brace" } else { "the end of the string" })
    }
}
