//! Basic auth by bcrypt hashes.
//!
//! A comparison takes 100 ms of a CPU, so that wrong logins could keep right ones waiting. What was compared once is remembered,
//! right or wrong. The addresses of clients take turns, and of one address the newest request is next: whoever tries one
//! password after the other has only its own requests behind it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;

/// How many right credentials are remembered, as in exporter-toolkit, and as many wrong ones.
const REMEMBERED: usize = 100;

/// How many passwords are compared at once: the machine's other CPUs stay free for its work.
const AT_ONCE: usize = 2;

/// How many requests of one address may wait.
const WAITING: usize = 64;

/// The result of checking a request's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    Right,
    Wrong,
    /// The credentials were not compared: too many other requests of this address came later.
    Busy,
}

/// The credentials that were compared, as digests. The hash is a part of the digest, so that a changed password counts at once.
pub(super) struct Verified {
    salt: u64,
    right: RefCell<VecDeque<[u8; 32]>>,
    wrong: RefCell<VecDeque<[u8; 32]>>,
    addresses: RefCell<BTreeMap<IpAddr, Weak<Address>>>,
    turns: Arc<Semaphore>,
}

/// The requests of one address.
#[derive(Default)]
struct Address {
    /// Whether one request has the address' turn.
    has_turn: Cell<bool>,
    /// The requests that wait for the turn, the newest last.
    waiting: RefCell<VecDeque<oneshot::Sender<Turn>>>,
}

/// The turn of an address, until it is dropped.
struct Turn(Rc<Address>);

impl Drop for Turn {
    fn drop(&mut self) {
        let newest = self.0.waiting.borrow_mut().pop_back();
        match newest {
            // A turn for a request that has left is dropped here, and passes to the next one.
            Some(newest) => drop(newest.send(Turn(self.0.clone()))),
            None => self.0.has_turn.set(false),
        }
    }
}

impl Address {
    /// Waits for the address' turn. `None` where too many other requests came later.
    async fn turn(self: &Rc<Self>) -> Option<Turn> {
        if !self.has_turn.replace(true) {
            return Some(Turn(self.clone()));
        }
        let (give, given) = oneshot::channel();
        {
            let mut waiting = self.waiting.borrow_mut();
            waiting.push_back(give);
            if waiting.len() > WAITING {
                waiting.pop_front();
            }
        }
        given.await.ok()
    }
}

impl Default for Verified {
    fn default() -> Self {
        Self {
            salt: RandomState::new().hash_one(()),
            right: RefCell::default(),
            wrong: RefCell::default(),
            addresses: RefCell::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Verified {
    /// Whether the header's credentials belong to one of these users; the map has each user's hash.
    pub(super) async fn admits(
        &self,
        users: &BTreeMap<String, String>,
        header: Option<&str>,
        client: IpAddr,
    ) -> Login {
        let Some((user, password)) = header.and_then(credentials) else { return Login::Wrong };
        let (own, hashes) = to_compare(users, &user);
        let digest = self.digest(&[&user, own.unwrap_or_default(), &password]);
        if let Some(known) = self.known(&digest) {
            return known;
        }
        let Some(_own_turn) = self.address(client).turn().await else { return Login::Busy };
        let Ok(turn) = self.turns.clone().acquire_owned().await else { return Login::Busy };
        // Another client's comparison has come before.
        if let Some(known) = self.known(&digest) {
            return known;
        }
        let (own, hashes) =
            (own.map(str::to_owned), hashes.into_iter().map(str::to_owned).collect::<Vec<_>>());
        // If the client leaves now, the comparison goes on and keeps its turn.
        let compared = spawn_blocking(move || {
            let _turn = turn;
            let fits: Vec<bool> =
                hashes.iter().map(|hash| bcrypt::verify(&password, hash).unwrap_or(false)).collect();
            let own = own.and_then(|own| hashes.iter().position(|hash| *hash == own));
            own.and_then(|own| fits.get(own).copied()).unwrap_or(false)
        });
        // An aborted comparison does not make the credentials wrong.
        let Ok(is_right) = compared.await else { return Login::Busy };
        let mut digests = if is_right { self.right.borrow_mut() } else { self.wrong.borrow_mut() };
        digests.push_back(digest);
        if digests.len() > REMEMBERED {
            digests.pop_front();
        }
        if is_right { Login::Right } else { Login::Wrong }
    }

    fn known(&self, digest: &[u8; 32]) -> Option<Login> {
        let remembered = [(&self.right, Login::Right), (&self.wrong, Login::Wrong)];
        remembered.into_iter().find_map(|(digests, login)| digests.borrow().contains(digest).then_some(login))
    }

    fn address(&self, client: IpAddr) -> Rc<Address> {
        let mut addresses = self.addresses.borrow_mut();
        let client = one_client(client);
        if let Some(address) = addresses.get(&client).and_then(Weak::upgrade) {
            return address;
        }
        addresses.retain(|_, address| address.strong_count() > 0);
        let address = Rc::new(Address::default());
        addresses.insert(client, Rc::downgrade(&address));
        address
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

/// The user's own hash, and one hash of each cost that occurs: its own of its cost. So the time of a comparison is equal for
/// every user, known or not.
fn to_compare<'u>(users: &'u BTreeMap<String, String>, user: &str) -> (Option<&'u str>, Vec<&'u str>) {
    let own = users.get(user).map(String::as_str);
    let mut by_cost = BTreeMap::new();
    for hash in users.values().map(String::as_str).chain(own) {
        by_cost.insert(cost(hash), hash);
    }
    (own, by_cost.into_values().collect())
}

/// The second field: `$2y$10$…`.
fn cost(hash: &str) -> &str {
    hash.split('$').nth(2).unwrap_or_default()
}

/// Whom an address stands for: whoever has an IPv6 address has its network of 64 bits (RFC 4291, 2.5.1).
pub(crate) fn one_client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

/// Decodes the header's name and password (RFC 7617).
fn credentials(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_is_compared_once_at_each_cost() {
        let users = [("a", "$2y$04$a"), ("b", "$2y$10$b"), ("c", "$2y$10$c"), ("d", "$2y$12$d")];
        let users = users.map(|(user, hash)| (user.to_owned(), hash.to_owned())).into();
        for (user, own) in [("a", Some(0)), ("b", Some(1)), ("c", Some(1)), ("d", Some(2)), ("x", None)] {
            let (hash, hashes) = to_compare(&users, user);
            assert_eq!(
                hashes.iter().map(|hash| cost(hash)).collect::<Vec<_>>(),
                ["04", "10", "12"],
                "{user}"
            );
            assert_eq!(hash, own.map(|own| hashes[own]), "{user}");
            assert!(hash.is_none_or(|hash| hash.ends_with(user)), "{user}");
        }
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        for (one, other, expected) in [
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:0:0:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let client = |text: &str| one_client(text.parse().unwrap());
            assert_eq!(client(one) == client(other), expected, "{one} {other}");
        }
    }
}
