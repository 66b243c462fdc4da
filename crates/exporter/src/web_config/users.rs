//! Basic auth by bcrypt hashes.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// As many as exporter-toolkit remembers.
const REMEMBERED: usize = 100;

/// How many passwords are compared at once: the rest of the machine's CPUs is for its work.
const AT_ONCE: usize = 2;

/// How many more requests may wait for that.
const WAITING: usize = 14;

/// What a request's credentials are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    Right,
    Wrong,
    /// They were not compared: too many others wait for that.
    Busy,
}

/// The credentials that were right, as digests: bcrypt takes 100 ms of a CPU for each comparison. The hash is a part of the
/// digest, so that a changed password counts at once.
pub(super) struct Verified {
    salt: u64,
    digests: RefCell<VecDeque<[u8; 32]>>,
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Default for Verified {
    fn default() -> Self {
        Self {
            salt: RandomState::new().hash_one(()),
            digests: RefCell::default(),
            places: Arc::new(Semaphore::new(AT_ONCE + WAITING)),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Verified {
    /// Whether the header's credentials are those of one of these users, who have a hash each.
    pub(super) async fn admits(&self, users: &BTreeMap<String, String>, header: Option<&str>) -> Login {
        let Some((user, password)) = header.and_then(credentials) else { return Login::Wrong };
        // For a user who is unknown bcrypt works as long, so that the time says nothing.
        let known = users.get(&user);
        let Some(hash) = known.or_else(|| users.values().next()).cloned() else {
            return Login::Wrong;
        };
        let digest = self.digest(&[&user, &hash, &password]);
        if known.is_some() && self.digests.borrow().contains(&digest) {
            return Login::Right;
        }
        let Ok(place) = self.places.clone().try_acquire_owned() else { return Login::Busy };
        let Ok(turn) = self.turns.clone().acquire_owned().await else { return Login::Busy };
        // Of a client that leaves now, the comparison goes on, and keeps its place.
        let compared = spawn_blocking(move || {
            let _held = (place, turn);
            bcrypt::verify(password, &hash).unwrap_or(false)
        });
        let compared = compared.await;
        if known.is_none() || !compared.unwrap_or(false) {
            return Login::Wrong;
        }
        let mut digests = self.digests.borrow_mut();
        digests.push_back(digest);
        if digests.len() > REMEMBERED {
            digests.pop_front();
        }
        Login::Right
    }

    fn digest(&self, parts: &[&str]) -> [u8; 32] {
        let mut sha = Sha256::new();
        sha.update(self.salt.to_le_bytes());
        for part in parts {
            sha.update(part.len().to_le_bytes());
            sha.update(part);
        }
        sha.finalize().into()
    }
}

/// By RFC 7617.
fn credentials(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}
