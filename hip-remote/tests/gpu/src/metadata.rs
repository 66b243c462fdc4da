//! The kernels' arguments, as a code object's note says them in MessagePack (LLVM, "User Guide for AMDGPU Backend").

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Nothing,
    Number(i64),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

impl Value {
    fn get(&self, key: &str) -> Option<&Value> {
        let Value::Map(entries) = self else { return None };
        entries
            .iter()
            .find(|(name, _)| matches!(name, Value::Text(text) if text == key))
            .map(|(_, value)| value)
    }

    fn number(&self, key: &str) -> Option<usize> {
        match self.get(key)? {
            Value::Number(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn list(&self, key: &str) -> &[Value] {
        match self.get(key) {
            Some(Value::List(values)) => values,
            _ => &[],
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    pub offset: usize,
    pub size: usize,
    /// `by_value`, `global_buffer`, `hidden_...`.
    pub kind: String,
}

impl Argument {
    pub fn is_hidden(&self) -> bool {
        self.kind.starts_with("hidden_")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    pub name: String,
    /// The symbol of its descriptor.
    pub symbol: String,
    pub arguments: Vec<Argument>,
    pub kernarg_size: usize,
    pub max_group: usize,
    pub sgprs: usize,
    pub vgprs: usize,
}

/// The kernels of a note's MessagePack, where it is that.
pub fn kernels(mut bytes: &[u8]) -> Option<Vec<Kernel>> {
    let root = value(&mut bytes, 0)?;
    root.list("amdhsa.kernels")
        .iter()
        .map(|kernel| {
            let argument = |argument: &Value| {
                Some(Argument {
                    offset: argument.number(".offset")?,
                    size: argument.number(".size")?,
                    kind: argument.text(".value_kind")?.to_string(),
                })
            };
            Some(Kernel {
                name: kernel.text(".name")?.to_string(),
                symbol: kernel.text(".symbol")?.to_string(),
                arguments: kernel.list(".args").iter().map(argument).collect::<Option<_>>()?,
                kernarg_size: kernel.number(".kernarg_segment_size")?,
                max_group: kernel.number(".max_flat_workgroup_size").unwrap_or(1024),
                sgprs: kernel.number(".sgpr_count").unwrap_or(0),
                vgprs: kernel.number(".vgpr_count").unwrap_or(0),
            })
        })
        .collect()
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn big_endian(bytes: &mut &[u8], count: usize) -> Option<u64> {
    Some(take(bytes, count)?.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

fn value(bytes: &mut &[u8], depth: usize) -> Option<Value> {
    if depth > 16 {
        return None;
    }
    let first = take(bytes, 1)?[0];
    let small = usize::from(first);
    Some(match first {
        0x00..=0x7f => Value::Number(i64::from(first)),
        0xe0..=0xff => Value::Number(i64::from(first as i8)),
        0x80..=0x8f => map(bytes, small & 15, depth)?,
        0x90..=0x9f => list(bytes, small & 15, depth)?,
        0xa0..=0xbf => text(bytes, small & 31)?,
        0xc0 => Value::Nothing,
        0xc2 | 0xc3 => Value::Number(i64::from(first & 1)),
        0xcc..=0xcf => Value::Number(big_endian(bytes, 1 << (first - 0xcc))? as i64),
        0xd0..=0xd3 => {
            let size = 1 << (first - 0xd0);
            let shift = 64 - 8 * size as u32;
            Value::Number((big_endian(bytes, size)? << shift) as i64 >> shift)
        }
        0xd9..=0xdb => {
            let length = big_endian(bytes, 1 << (first - 0xd9))? as usize;
            text(bytes, length)?
        }
        0xdc | 0xdd => {
            let length = big_endian(bytes, 2 << (first - 0xdc))? as usize;
            list(bytes, length, depth)?
        }
        0xde | 0xdf => {
            let length = big_endian(bytes, 2 << (first - 0xde))? as usize;
            map(bytes, length, depth)?
        }
        _ => return None,
    })
}

fn text(bytes: &mut &[u8], length: usize) -> Option<Value> {
    Some(Value::Text(String::from_utf8(take(bytes, length)?.to_vec()).ok()?))
}

fn list(bytes: &mut &[u8], length: usize, depth: usize) -> Option<Value> {
    (0..length).map(|_| value(bytes, depth + 1)).collect::<Option<_>>().map(Value::List)
}

fn map(bytes: &mut &[u8], length: usize, depth: usize) -> Option<Value> {
    (0..length)
        .map(|_| Some((value(bytes, depth + 1)?, value(bytes, depth + 1)?)))
        .collect::<Option<_>>()
        .map(Value::Map)
}
