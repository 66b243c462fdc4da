//! One side of TLS without its socket: what a socket gave goes in, and what it shall send comes out.
//!
//! rustls could keep those bytes itself, in a buffer at whose start it decrypts each record. glibc's allocator tends to lay
//! the decrypted copy 16 bytes further, modulo a page, and AMD's Zen copies that thirty times slower by `rep movsb`. Here
//! the records of a read lie one behind the other, and at most one of them meets that distance.

use std::collections::VecDeque;
use std::io::Read;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{CommonState, Error};

type Result<T> = std::result::Result<T, Error>;

/// The most bytes of a record (RFC 8446, 5.2), and what rustls' own add to the bytes that they carry.
const RECORD: usize = 16 * 1024 + 5 + 256;
const CARRIED: usize = 16 * 1024;
const ADDED: usize = 5 + 1 + 16;

/// The most bytes that wait for the rest of a record or of a message of the handshake, as in rustls' own buffer. A stranger
/// could pad each byte of a message to a whole record otherwise, and have us keep a GiB.
const UNFINISHED: usize = 0xffff;

pub(crate) enum Side {
    Client(UnbufferedClientConnection),
    Worker(UnbufferedServerConnection),
}

pub(crate) struct Crypt {
    side: Side,
    /// What the socket gave. rustls has taken the bytes before `start`.
    incoming: Vec<u8>,
    start: usize,
    /// Decrypted bytes for which no caller had room.
    rest: VecDeque<u8>,
    /// What the socket shall send.
    pub(crate) outgoing: Vec<u8>,
    /// The peer said that nothing more comes.
    pub(crate) ended: bool,
    broken: Option<Error>,
}

/// What came of one question to rustls.
enum Turn {
    Again,
    Read(usize),
    Wrote,
    Idle,
    Ended,
}

impl Crypt {
    pub(crate) fn new(side: Side) -> Self {
        Self {
            side,
            incoming: Vec::new(),
            start: 0,
            rest: VecDeque::new(),
            outgoing: Vec::new(),
            ended: false,
            broken: None,
        }
    }

    fn common(&self) -> &CommonState {
        match &self.side {
            Side::Client(client) => client,
            Side::Worker(worker) => worker,
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.common().is_handshaking()
    }

    /// Takes bytes of the socket, after all that came before them has been decrypted.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.incoming.drain(..self.start);
        self.start = 0;
        if !bytes.is_empty() && self.incoming.len() > UNFINISHED {
            let why = Error::General("it sent a part of the handshake that is too long".to_owned());
            self.broken.get_or_insert(why);
        }
        self.incoming.extend_from_slice(bytes);
    }

    /// Goes on until rustls waits for the peer. What it says is in `outgoing`, and what it decrypted is kept.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        while let Turn::Again | Turn::Read(_) = self.turn(&mut [], &[])? {}
        Ok(())
    }

    /// Fills `to` as far as the bytes of the socket go, and returns how many bytes it filled. What came before a bad record
    /// is given first.
    pub(crate) fn decrypt(&mut self, to: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(room) = to.get_mut(filled..).filter(|room| !room.is_empty()) {
            let had = self.rest.read(room).unwrap_or_default();
            filled += had;
            if had == 0 {
                match self.turn(room, &[]) {
                    Ok(Turn::Read(read)) => filled += read,
                    Ok(Turn::Again) => {}
                    Err(why) if filled == 0 => return Err(why),
                    Ok(Turn::Wrote | Turn::Idle | Turn::Ended) | Err(_) => break,
                }
            }
        }
        Ok(filled)
    }

    /// Whether [`Self::decrypt`] has something to give, or a reason to fail.
    pub(crate) fn has_more(&mut self) -> bool {
        let _ = self.go_on();
        self.ended || self.broken.is_some() || !self.rest.is_empty()
    }

    /// Appends bytes to `outgoing`.
    pub(crate) fn encrypt(&mut self, bytes: &[u8]) -> Result<()> {
        loop {
            match self.turn(&mut [], bytes)? {
                Turn::Wrote => return Ok(()),
                Turn::Again | Turn::Read(_) => {}
                Turn::Idle | Turn::Ended => return Err(Error::General("the peer has ended it".to_owned())),
            }
        }
    }

    /// Asks rustls, which would panic where it is asked for more after it has failed. Its alert is in `outgoing` then.
    fn turn(&mut self, to: &mut [u8], from: &[u8]) -> Result<Turn> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        let turn = self.ask(to, from);
        if let Err(why) = &turn {
            self.broken = Some(why.clone());
            while self.common().wants_write() && self.ask(&mut [], &[]).is_ok() {}
        }
        turn
    }

    fn ask(&mut self, to: &mut [u8], from: &[u8]) -> Result<Turn> {
        let bytes = self.incoming.get_mut(self.start..).unwrap_or_default();
        let mut caller = Caller { to, from, rest: &mut self.rest, outgoing: &mut self.outgoing };
        let (taken, turn) = match &mut self.side {
            Side::Client(client) => caller.follow(client.process_tls_records(bytes)),
            Side::Worker(worker) => caller.follow(worker.process_tls_records(bytes)),
        };
        self.start += taken;
        self.ended |= matches!(turn, Ok(Turn::Ended));
        turn
    }
}

impl std::fmt::Debug for Crypt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crypt").field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// What a caller has for rustls.
struct Caller<'a> {
    to: &'a mut [u8],
    from: &'a [u8],
    rest: &'a mut VecDeque<u8>,
    outgoing: &'a mut Vec<u8>,
}

impl Caller<'_> {
    /// Does what rustls asks for. Returns how many bytes rustls took, too.
    fn follow<D>(&mut self, status: UnbufferedStatus<'_, '_, D>) -> (usize, Result<Turn>) {
        let turn = status.state.and_then(|state| {
            Ok(match state {
                ConnectionState::ReadTraffic(mut traffic) => {
                    let mut filled = 0;
                    while let Some(record) = traffic.next_record() {
                        let mut bytes = record?.payload;
                        let room = self.to.get_mut(filled..).unwrap_or_default();
                        filled += bytes.read(room).unwrap_or_default();
                        self.rest.extend(bytes);
                    }
                    Turn::Read(filled)
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    self.append(RECORD, |room| data.encode(room).map_err(other))?;
                    Turn::Again
                }
                // What shall be sent stays in `outgoing` until then.
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    Turn::Again
                }
                ConnectionState::WriteTraffic(mut traffic) if !self.from.is_empty() => {
                    let from = self.from;
                    let most = from.len() + from.len().div_ceil(CARRIED) * ADDED + RECORD;
                    self.append(most, |room| traffic.encrypt(from, room).map_err(other))?;
                    Turn::Wrote
                }
                ConnectionState::WriteTraffic(_) | ConnectionState::BlockedHandshake => Turn::Idle,
                ConnectionState::PeerClosed | ConnectionState::Closed => Turn::Ended,
                state => return Err(other(format_args!("{state:?}"))),
            })
        });
        (status.discard, turn)
    }

    /// Appends at most so many bytes to what shall be sent.
    fn append(&mut self, most: usize, put: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<()> {
        let before = self.outgoing.len();
        self.outgoing.resize(before + most, 0);
        let put = put(self.outgoing.get_mut(before..).unwrap_or_default());
        self.outgoing.truncate(before + *put.as_ref().unwrap_or(&0));
        put.map(|_| ())
    }
}

fn other(why: impl std::fmt::Display) -> Error {
    Error::General(why.to_string())
}
