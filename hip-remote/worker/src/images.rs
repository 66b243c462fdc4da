//! Bounds the memory of code objects that arrive or are loaded: the library has its own copy afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hip::{OUT_OF_MEMORY, Status};

/// The most bytes of one client's code objects at the same time.
const MOST: u64 = 2 * 1024 * 1024 * 1024;

/// The bytes of all of them.
#[derive(Debug, Default)]
pub struct Images {
    held: Arc<AtomicU64>,
}

/// The room of one code object, which is free when it is dropped.
#[derive(Debug)]
pub struct Held {
    all: Arc<AtomicU64>,
    bytes: u64,
}

impl Images {
    /// # Errors
    /// There are too many at present.
    pub fn hold(&self, bytes: u64) -> Result<Held, Status> {
        let more = |held: u64| held.checked_add(bytes).filter(|held| *held <= MOST);
        let held = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        held.map(|_| Held { all: Arc::clone(&self.held), bytes }).map_err(|_| OUT_OF_MEMORY)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_object_keeps_its_room_until_it_is_loaded() {
        let images = Images::default();
        let one = images.hold(MOST).unwrap();
        assert_eq!(images.hold(1).err(), Some(OUT_OF_MEMORY));
        drop(one);
        assert_eq!(images.hold(u64::MAX).err(), Some(OUT_OF_MEMORY));
        assert!(images.hold(1).is_ok() && images.hold(MOST).is_ok());
    }
}
