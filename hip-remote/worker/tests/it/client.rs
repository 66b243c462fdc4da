//! A client that says what it is told to say.

use std::collections::HashMap;
use std::io::IoSlice;
use std::time::Duration;

use hip_protocol::calls::{
    Call, Close, Credit, DeviceToHost, Hello, HostToDevice, Launch, Malloc, Output, StreamSync, Welcome,
};
use hip_protocol::envelope::{CHUNK, DEFERRED, ERROR, Envelope, NO_REPLY};
use hip_protocol::field::Field;
use hip_protocol::message::{self, MAX_CHUNK};
use hip_transport::{Address, ClientKey, Error, Message, Reader, Writer};

pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client {
    reader: Reader,
    writer: Writer,
    pub lane: u16,
    next: u32,
    /// What came of each request's chunks.
    pub chunks: HashMap<u32, Vec<u8>>,
    pub credit: u64,
    /// One-way copies that failed.
    pub failed: Vec<u32>,
    pub printed: Vec<u8>,
    pub welcome: Option<Welcome>,
}

/// A reply's status, and whether an earlier call's failure is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    Now(i32),
    Earlier(i32),
}

impl Client {
    /// Connects and says nothing.
    pub fn connect(address: &Address, key: Option<&ClientKey>) -> Self {
        let (reader, writer) = hip_transport::connect(address, key, PATIENCE).unwrap();
        reader.set_silence(Some(PATIENCE)).unwrap();
        Self {
            reader,
            writer,
            lane: 0,
            next: 0,
            chunks: HashMap::new(),
            credit: 0,
            failed: Vec::new(),
            printed: Vec::new(),
            welcome: None,
        }
    }

    pub fn greet(address: &Address, key: Option<&ClientKey>) -> Self {
        let mut client = Self::connect(address, key);
        let token = key.map(|key| key.token(address)).unwrap_or_default();
        client.welcome = Some(client.call_with(Hello { token, pid: 1, memory: 0 }, b"test").unwrap());
        client
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.writer.write(&mut [IoSlice::new(bytes)])
    }

    /// Sends a request: its id.
    pub fn send<C: Call>(&mut self, call: C, flags: u16, variable: &[u8]) -> u32 {
        self.next += 1;
        let mut out = Vec::new();
        message::request(&call, self.next, flags, self.lane, variable, &mut out);
        self.write(&out).unwrap();
        self.next
    }

    pub fn one_way<C: Call>(&mut self, call: C) -> u32 {
        self.send(call, NO_REPLY, &[])
    }

    pub fn chunk(&mut self, op: u16, id: u32, bytes: &[u8]) -> Result<(), Error> {
        let envelope = Envelope { flags: CHUNK, lane: self.lane, status: 0 };
        let prefix = message::prefix(op, id, envelope, bytes.len());
        self.writer.write(&mut [IoSlice::new(&prefix), IoSlice::new(bytes)])
    }

    pub fn call<C: Call>(&mut self, call: C) -> Result<C::Reply, Failed> {
        self.call_with(call, &[])
    }

    pub fn call_with<C: Call>(&mut self, call: C, variable: &[u8]) -> Result<C::Reply, Failed> {
        let id = self.send(call, 0, variable);
        self.reply::<C>(id)
    }

    /// Waits for the reply to a request, and takes what comes before it.
    pub fn reply<C: Call>(&mut self, id: u32) -> Result<C::Reply, Failed> {
        let (message, payload) =
            self.message(id).unwrap_or_else(|sentence| panic!("the worker closed: {sentence}"));
        let Envelope { status, lane, .. } = message.envelope;
        assert_eq!((message.op, lane), (C::OP, self.lane));
        if message.envelope.has(DEFERRED) {
            C::Reply::take(&mut payload.as_slice())
                .expect("a reply that tells an earlier failure has its fields");
            return Err(Failed::Earlier(status));
        }
        if message.envelope.has(ERROR) {
            assert!(payload.is_empty());
            return Err(Failed::Now(status));
        }
        let (fields, _) = message::fields::<C::Reply>(C::OP, &payload).unwrap();
        Ok(fields)
    }

    /// Waits until the worker says that it lives.
    pub fn beat(&mut self) {
        let credit = self.reader.next().unwrap();
        let payload = self.reader.bytes(credit.length).unwrap();
        assert_eq!(message::fields::<Credit>(credit.op, payload).unwrap().0.bytes, 0);
    }

    fn message(&mut self, id: u32) -> Result<(Message, Vec<u8>), String> {
        loop {
            let message = self.reader.next().map_err(|error| error.to_string())?;
            let payload = self.reader.bytes(message.length).map_err(|error| error.to_string())?.to_vec();
            match message.op {
                Close::OP => return Err(String::from_utf8(payload).unwrap()),
                Credit::OP => self.credit += message::fields::<Credit>(Credit::OP, &payload).unwrap().0.bytes,
                Output::OP => self.printed.extend(payload),
                _ if message.envelope.has(CHUNK) => {
                    self.chunks.entry(message.id).or_default().extend(payload)
                }
                DeviceToHost::OP if message.id != id && message.envelope.has(ERROR) => {
                    self.failed.push(message.id)
                }
                _ if message.id == id => return Ok((message, payload)),
                _ if id == u32::MAX => {}
                op => panic!("a reply to {op} with the id {} in place of {id}", message.id),
            }
        }
    }

    /// The worker's last sentence.
    pub fn closed(&mut self) -> String {
        match self.message(u32::MAX) {
            Err(sentence) => sentence,
            Ok((message, _)) => panic!("{message:?}"),
        }
    }

    pub fn malloc(&mut self, bytes: u64) -> u64 {
        self.call(Malloc { bytes }).unwrap().pointer
    }

    /// Sends a copy to a device with all its chunks; the window must be large enough.
    pub fn upload(&mut self, call: HostToDevice, flags: u16, bytes: &[u8], chunk: usize) -> u32 {
        let id = self.send(call, flags, &[]);
        for chunk in bytes.chunks(chunk) {
            self.chunk(HostToDevice::OP, id, chunk).unwrap();
        }
        id
    }

    pub fn put(&mut self, pointer: u64, bytes: &[u8]) {
        let length = bytes.len() as u64;
        let id = self.upload(to(pointer, length, 0), 0, bytes, MAX_CHUNK);
        self.reply::<HostToDevice>(id).unwrap();
    }

    pub fn get(&mut self, pointer: u64, bytes: u64) -> Vec<u8> {
        let id = self.send(from(pointer, bytes, 0), 0, &[]);
        self.reply::<DeviceToHost>(id).unwrap();
        self.chunks.remove(&id).unwrap_or_default()
    }

    pub fn sync(&mut self, stream: u64) -> Result<(), Failed> {
        self.call(StreamSync { stream })
    }

    pub fn launch(&mut self, function: u64, blocks: u32, block: u32, arguments: &[u8]) {
        let call = Launch { function, grid: [blocks, 1, 1], block: [block, 1, 1], shared: 0, stream: 0 };
        self.send(call, NO_REPLY, arguments);
    }
}

pub fn to(pointer: u64, bytes: u64, stream: u64) -> HostToDevice {
    HostToDevice { pointer, pitch: bytes, width: bytes, height: 1, stream }
}

pub fn from(pointer: u64, bytes: u64, stream: u64) -> DeviceToHost {
    DeviceToHost { pointer, pitch: bytes, width: bytes, height: 1, stream }
}

/// Bytes that differ from one another.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}
