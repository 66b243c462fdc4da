//! The requests whose chunks arrive at present.

use std::collections::HashMap;

use crate::batches::{Batches, UnderWay};
use crate::hip::Status;
use crate::images::Held;
use crate::request::Request;
use crate::rows::Rows;
use crate::session::Session;

#[derive(Debug)]
pub enum To {
    Device { rows: Rows, stream: u64 },
    Image { sha256: [u8; 32], image: Vec<u8>, held: Option<Held> },
}

/// A request whose chunks are on their way.
#[derive(Debug)]
pub struct Upload {
    pub request: Request,
    pub to: To,
    pub bytes: u64,
    pub done: u64,
    /// Why the rest is read and thrown away.
    pub failed: Option<Status>,
}

#[derive(Debug)]
pub struct Uploads {
    /// By the requests' ids.
    pub all: HashMap<u32, Upload>,
    pub batches: Batches,
    pub under_way: UnderWay,
}

impl Uploads {
    pub fn new(window: usize) -> Self {
        let under_way = UnderWay::default();
        Self { all: HashMap::new(), batches: Batches::new(window, &under_way), under_way }
    }

    /// Ends the batches of copies that are open, as before a stream is destroyed.
    pub fn close(&mut self, session: &Session) {
        self.batches.forget(session);
    }
}
