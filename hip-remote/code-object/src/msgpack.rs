//! The part of MessagePack in which compilers write metadata: maps, arrays, text, whole numbers and truth values.

/// A value whose text lies in the note.
#[derive(Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Map(Vec<(Value<'a>, Value<'a>)>),
    Array(Vec<Value<'a>>),
    Text(&'a str),
    Number(u64),
    /// Truth values, negative and broken numbers, nothing: no field that is read here has one.
    Other,
}

impl<'a> Value<'a> {
    /// A map's value under a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Value<'a>> {
        let Self::Map(entries) = self else {
            return None;
        };
        entries.iter().find(|(key, _)| *key == Value::Text(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn number(&self) -> Option<u64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn array(&self) -> Option<&[Value<'a>]> {
        if let Self::Array(values) = self { Some(values) } else { None }
    }
}

/// Metadata nests six deep.
const MAX_DEPTH: usize = 16;

pub(crate) fn parse(bytes: &[u8]) -> Option<Value<'_>> {
    value(&mut { bytes }, MAX_DEPTH)
}

fn value<'a>(bytes: &mut &'a [u8], depth: usize) -> Option<Value<'a>> {
    let depth = depth.checked_sub(1)?;
    Some(match number::<1>(bytes)? {
        small @ 0x00..=0x7f => Value::Number(small),
        map @ 0x80..=0x8f => entries(bytes, map & 0x0f, depth)?,
        array @ 0x90..=0x9f => elements(bytes, array & 0x0f, depth)?,
        text @ 0xa0..=0xbf => characters(bytes, text & 0x1f)?,
        0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => Value::Other,
        0xcc => Value::Number(number::<1>(bytes)?),
        0xcd => Value::Number(number::<2>(bytes)?),
        0xce => Value::Number(number::<4>(bytes)?),
        0xcf => Value::Number(number::<8>(bytes)?),
        0xd0 => signed(number::<1>(bytes)?, 8),
        0xd1 => signed(number::<2>(bytes)?, 16),
        0xca => number::<4>(bytes).map(|_| Value::Other)?,
        0xcb => number::<8>(bytes).map(|_| Value::Other)?,
        0xd2 => signed(number::<4>(bytes)?, 32),
        0xd3 => signed(number::<8>(bytes)?, 64),
        0xd9 => number::<1>(bytes).and_then(|length| characters(bytes, length))?,
        0xda => number::<2>(bytes).and_then(|length| characters(bytes, length))?,
        0xdb => number::<4>(bytes).and_then(|length| characters(bytes, length))?,
        0xdc => number::<2>(bytes).and_then(|length| elements(bytes, length, depth))?,
        0xdd => number::<4>(bytes).and_then(|length| elements(bytes, length, depth))?,
        0xde => number::<2>(bytes).and_then(|length| entries(bytes, length, depth))?,
        0xdf => number::<4>(bytes).and_then(|length| entries(bytes, length, depth))?,
        _ => return None,
    })
}

/// A number of N bytes, big endian.
fn number<const N: usize>(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(first.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn signed<'a>(number: u64, bits: u32) -> Value<'a> {
    if number >> (bits - 1) == 0 { Value::Number(number) } else { Value::Other }
}

fn characters<'a>(bytes: &mut &'a [u8], length: u64) -> Option<Value<'a>> {
    let (text, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    std::str::from_utf8(text).ok().map(Value::Text)
}

// Both grow with what is read, not with what is announced: each value takes a byte at least.
fn elements<'a>(bytes: &mut &'a [u8], count: u64, depth: usize) -> Option<Value<'a>> {
    (0..count).map(|_| value(bytes, depth)).collect::<Option<_>>().map(Value::Array)
}

fn entries<'a>(bytes: &mut &'a [u8], count: u64, depth: usize) -> Option<Value<'a>> {
    (0..count)
        .map(|_| Some((value(bytes, depth)?, value(bytes, depth)?)))
        .collect::<Option<_>>()
        .map(Value::Map)
}
