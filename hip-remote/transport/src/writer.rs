//! The sending half of a connection.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::socket::{Shutdown, Socket};
use crate::tls::Tls;

#[derive(Debug)]
pub struct Writer {
    socket: Arc<Socket>,
    tls: Option<Arc<Tls>>,
    encrypted: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(socket: Arc<Socket>, tls: Option<Arc<Tls>>) -> Self {
        Self { socket, tls, encrypted: Vec::new() }
    }

    /// Writes all bytes of all slices: plain ones go to the kernel from where they are.
    ///
    /// # Errors
    /// The connection broke; what was written of the bytes is not known. Or some slice is no memory, and zeroes went in its place.
    pub fn write(&mut self, slices: &mut [IoSlice<'_>]) -> Result<()> {
        match &self.tls {
            None => self.socket.send(slices),
            Some(tls) => tls.send(&self.socket, slices, &mut self.encrypted),
        }
    }

    /// How long a write waits for a peer that takes nothing.
    ///
    /// # Errors
    /// The socket has ended.
    pub fn set_patience(&self, time: Duration) -> Result<()> {
        self.socket.set_patience(Some(time))
    }

    pub fn shutdown(&self) -> Shutdown {
        Shutdown(Arc::clone(&self.socket))
    }
}
