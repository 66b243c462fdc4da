//! Version 1: the seven operations of TensorFusion's plan (6.5), whose payloads are msgpack maps.
//!
//! The plan shows the keys of malloc; hip-remote/PROTOCOL.md has those of the others.

use rmp::decode::{Bytes, read_bin_len, read_int, read_map_len, read_str_from_slice};
use rmp::encode::{write_bin, write_map_len, write_str, write_uint};

use crate::Malformed;
use crate::header::{self, Header, MAX_PAYLOAD, VERSION_1};

/// The most bytes of a copy: the map around them is part of the payload.
pub const MAX_DATA: usize = MAX_PAYLOAD as usize - 64;

pub const DEVICE_COUNT: u16 = 0x0001;
pub const MALLOC: u16 = 0x0010;
pub const FREE: u16 = 0x0011;
pub const HOST_TO_DEVICE: u16 = 0x0020;
pub const DEVICE_TO_HOST: u16 = 0x0021;
pub const LAUNCH: u16 = 0x0030;
pub const STREAM_SYNC: u16 = 0x0040;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    DeviceCount,
    Malloc {
        size: u64,
    },
    Free {
        pointer: u64,
    },
    HostToDevice {
        pointer: u64,
        data: &'a [u8],
    },
    DeviceToHost {
        pointer: u64,
        size: u64,
    },
    /// The version has no way to name a module, so that no kernel can be meant: its payload is not read.
    Launch,
    StreamSync {
        stream: u64,
    },
}

impl<'a> Request<'a> {
    /// Reads the payload of a request.
    ///
    /// # Errors
    /// The operation is none of the seven, or the payload is not exactly its map.
    pub fn parse(op: u16, payload: &'a [u8]) -> Result<Self, Malformed> {
        let read = |keys| Map::read(payload, keys);
        Ok(match op {
            DEVICE_COUNT => read(&[]).map(|_| Self::DeviceCount)?,
            MALLOC => Self::Malloc { size: read(&["size"])?.number("size")? },
            FREE => Self::Free { pointer: read(&["devPtr"])?.number("devPtr")? },
            HOST_TO_DEVICE => {
                let map = read(&["devPtr", "data"])?;
                Self::HostToDevice { pointer: map.number("devPtr")?, data: map.data()? }
            }
            DEVICE_TO_HOST => {
                let map = read(&["devPtr", "size"])?;
                Self::DeviceToHost { pointer: map.number("devPtr")?, size: map.number("size")? }
            }
            LAUNCH => Self::Launch,
            STREAM_SYNC => Self::StreamSync { stream: read(&["stream"])?.number("stream")? },
            _ => return Err(Malformed(format!("version 1 has no operation {op:#06x}"))),
        })
    }

    pub fn op(&self) -> u16 {
        match self {
            Self::DeviceCount => DEVICE_COUNT,
            Self::Malloc { .. } => MALLOC,
            Self::Free { .. } => FREE,
            Self::HostToDevice { .. } => HOST_TO_DEVICE,
            Self::DeviceToHost { .. } => DEVICE_TO_HOST,
            Self::Launch => LAUNCH,
            Self::StreamSync { .. } => STREAM_SYNC,
        }
    }

    /// Appends the message.
    pub fn put(&self, id: u32, out: &mut Vec<u8>) {
        let fields: &[(&str, Value)] = match *self {
            Self::DeviceCount | Self::Launch => &[],
            Self::Malloc { size } => &[("size", Value::Number(size))],
            Self::Free { pointer } => &[("devPtr", Value::Number(pointer))],
            Self::HostToDevice { pointer, data } => {
                &[("devPtr", Value::Number(pointer)), ("data", Value::Data(data))]
            }
            Self::DeviceToHost { pointer, size } => {
                &[("devPtr", Value::Number(pointer)), ("size", Value::Number(size))]
            }
            Self::StreamSync { stream } => &[("stream", Value::Number(stream))],
        };
        put(self.op(), id, fields, out);
    }
}

/// What a call that went well gives beside its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    Nothing,
    Count(u64),
    Pointer(u64),
    Data(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// A `hipError_t`; the answer is [`Answer::Nothing`] where it is not 0.
    pub status: u32,
    pub answer: Answer<'a>,
}

impl<'a> Reply<'a> {
    /// Reads the payload of a reply to an operation.
    ///
    /// # Errors
    /// The payload is not exactly the operation's map.
    pub fn parse(op: u16, payload: &'a [u8]) -> Result<Self, Malformed> {
        let map = Map::read(payload, &["status", "count", "devPtr", "data"])?;
        let status = u32::try_from(map.number("status")?)
            .map_err(|_| Malformed("a status has more than 32 bits".to_owned()))?;
        let answer = match op {
            _ if status != 0 => Answer::Nothing,
            DEVICE_COUNT => Answer::Count(map.number("count")?),
            MALLOC => Answer::Pointer(map.number("devPtr")?),
            DEVICE_TO_HOST => Answer::Data(map.data()?),
            _ => Answer::Nothing,
        };
        let count = if answer == Answer::Nothing { 1 } else { 2 };
        if map.0.len() != count {
            return Err(Malformed(format!("a reply has {} keys in place of {count}", map.0.len())));
        }
        Ok(Self { status, answer })
    }

    /// Appends the message.
    pub fn put(&self, op: u16, id: u32, out: &mut Vec<u8>) {
        let status = ("status", Value::Number(self.status.into()));
        match self.answer {
            Answer::Nothing => put(op, id, &[status], out),
            Answer::Count(count) => put(op, id, &[status, ("count", Value::Number(count))], out),
            Answer::Pointer(pointer) => put(op, id, &[status, ("devPtr", Value::Number(pointer))], out),
            Answer::Data(data) => put(op, id, &[status, ("data", Value::Data(data))], out),
        }
    }
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Data(&'a [u8]),
}

/// The keys of a payload, each once and each one that its operation has.
struct Map<'a>(Vec<(&'static str, Value<'a>)>);

impl<'a> Map<'a> {
    fn read(payload: &'a [u8], keys: &[&'static str]) -> Result<Self, Malformed> {
        let mut bytes = Bytes::new(payload);
        let count =
            read_map_len(&mut bytes).map_err(|_| Malformed("a payload is no msgpack map".to_owned()))?;
        if usize::try_from(count).map_or(true, |count| count > keys.len()) {
            return Err(Malformed(format!("a map has {count} keys, and {} are known", keys.len())));
        }
        let mut fields: Vec<(&str, Value)> = Vec::new();
        for _ in 0..count {
            let (read, rest) = read_str_from_slice(bytes.remaining_slice())
                .map_err(|_| Malformed("a map's key is no string".to_owned()))?;
            let Some(&key) = keys.iter().find(|key| **key == read) else {
                return Err(Malformed(format!("a map has a key that is none of {}", keys.join(", "))));
            };
            if fields.iter().any(|(field, _)| *field == key) {
                return Err(Malformed(format!("a map has {key} twice")));
            }
            let (value, rest) = if key == "data" { data(rest)? } else { number(key, rest)? };
            fields.push((key, value));
            bytes = Bytes::new(rest);
        }
        match bytes.remaining_slice().len() {
            0 => Ok(Self(fields)),
            more => Err(Malformed(format!("{more} bytes follow a payload's map"))),
        }
    }

    fn number(&self, key: &str) -> Result<u64, Malformed> {
        match self.0.iter().find(|(field, _)| *field == key) {
            Some((_, Value::Number(number))) => Ok(*number),
            _ => Err(Malformed(format!("a map lacks {key}"))),
        }
    }

    fn data(&self) -> Result<&'a [u8], Malformed> {
        match self.0.iter().find(|(field, _)| *field == "data") {
            Some((_, Value::Data(data))) => Ok(data),
            _ => Err(Malformed("a map lacks data".to_owned())),
        }
    }
}

fn number<'a>(key: &str, bytes: &'a [u8]) -> Result<(Value<'a>, &'a [u8]), Malformed> {
    let mut bytes = Bytes::new(bytes);
    match read_int(&mut bytes) {
        Ok(number) => Ok((Value::Number(number), bytes.remaining_slice())),
        Err(_) => Err(Malformed(format!("{key} is no whole number from 0 to 2^64 - 1"))),
    }
}

fn data(bytes: &[u8]) -> Result<(Value<'_>, &[u8]), Malformed> {
    let mut bytes = Bytes::new(bytes);
    let length = read_bin_len(&mut bytes).map_err(|_| Malformed("data is no msgpack bin".to_owned()))?;
    match usize::try_from(length).ok().and_then(|length| bytes.remaining_slice().split_at_checked(length)) {
        Some((data, rest)) => Ok((Value::Data(data), rest)),
        None => Err(Malformed(format!("data announces {length} bytes, and fewer follow"))),
    }
}

fn put(op: u16, id: u32, fields: &[(&str, Value)], out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    // A Vec takes every byte: none of these fails.
    let _ = write_map_len(&mut payload, u32::try_from(fields.len()).unwrap_or(u32::MAX));
    for (key, value) in fields {
        let _ = write_str(&mut payload, key);
        let _ = match *value {
            Value::Number(number) => write_uint(&mut payload, number).map(drop),
            Value::Data(data) => write_bin(&mut payload, data),
        };
    }
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.reserve(header::SIZE + payload.len());
    out.extend_from_slice(&Header { version: VERSION_1, op, id, length }.bytes());
    out.append(&mut payload);
}
