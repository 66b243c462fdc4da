//! Keys that live as long as a test, made by real gpg in a folder of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The clock by which an expired key is made; a day later it is expired.
const LONG_AGO: &str = "20200101T000000!";
/// gpg makes no second signature in the second of the first, and none by a key that has expired.
const AN_HOUR_LATER: &str = "20200101T010000!";

/// An ed25519 key that can sign, and its public half as it is handed out.
#[derive(Debug)]
pub struct Key {
    home: TempDir,
    /// The primary key's fingerprint, which a person compares.
    fingerprint: String,
    /// The fingerprint of the key that signs: a subkey, or the primary key itself.
    signer: String,
    public: Vec<u8>,
    armored: String,
}

impl Key {
    /// A key without an end.
    ///
    /// # Panics
    /// Where gpg makes none.
    pub fn generate(owner: &str) -> Self {
        let mut key = Self::made(owner, &[], "never");
        key.hand_out();
        key
    }

    /// A key whose public half has the expiry date of 2020. The key still signs today: its owner has
    /// prolonged it since, and this copy of the public half lacks that, as happens with real repositories.
    ///
    /// # Panics
    /// Where gpg makes none.
    pub fn expired(owner: &str) -> Self {
        let mut key = Self::made(owner, &["--faked-system-time", LONG_AGO], "1d");
        key.hand_out();
        key.gpg(&["--faked-system-time", AN_HOUR_LATER, "--quick-set-expire", &key.fingerprint, "0"]);
        key
    }

    /// A key whose subkey signs, as that of many a repository does.
    ///
    /// # Panics
    /// Where gpg makes none.
    pub fn with_subkey(owner: &str) -> Self {
        let mut key = Self::made(owner, &[], "never");
        key.gpg(&["--quick-add-key", &key.fingerprint, "ed25519", "sign", "never"]);
        // The primary key's comes first. With the mark, gpg takes this very one.
        key.signer = format!("{}!", key.fingerprints().pop().unwrap());
        key.hand_out();
        key
    }

    fn made(owner: &str, clock: &[&str], expires: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let nothing = String::new;
        let mut key =
            Self { home, fingerprint: nothing(), signer: nothing(), public: Vec::new(), armored: nothing() };
        let owner = format!("{owner} <{}@example.invalid>", owner.to_lowercase().replace(' ', "."));
        key.gpg(&[clock, &["--quick-generate-key", &owner, "ed25519", "sign", expires]].concat());
        key.fingerprint = key.fingerprints().remove(0);
        key.signer.clone_from(&key.fingerprint);
        key
    }

    fn hand_out(&mut self) {
        self.public = self.gpg(&["--export", &self.fingerprint]);
        self.armored = String::from_utf8(self.gpg(&["--armor", "--export", &self.fingerprint])).unwrap();
    }

    /// 40 hexadecimal digits, as gpg prints them without spaces.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The public half as a binary keyring, which apt takes from a file named `.gpg`.
    pub fn binary(&self) -> &[u8] {
        &self.public
    }

    /// The public half as text, which apt takes from a file named `.asc`.
    pub fn armored(&self) -> &str {
        &self.armored
    }

    /// Several public halves in one binary keyring.
    pub fn ring(keys: &[&Self]) -> Vec<u8> {
        keys.iter().flat_map(|key| key.binary()).copied().collect()
    }

    /// The text signed in itself, as InRelease is.
    ///
    /// # Panics
    /// Where gpg does not sign.
    pub fn clear_signed(&self, file: &Path) -> Vec<u8> {
        self.signed("--clearsign", file)
    }

    /// The signature alone, as Release.gpg is.
    ///
    /// # Panics
    /// Where gpg does not sign.
    pub fn detached(&self, file: &Path) -> Vec<u8> {
        self.signed("--detach-sign", file)
    }

    fn signed(&self, way: &str, file: &Path) -> Vec<u8> {
        let file = file.to_str().unwrap();
        self.gpg(&["--armor", "--local-user", &self.signer, "--output", "-", way, file])
    }

    /// The fingerprints of the key and of its subkeys, in this order.
    fn fingerprints(&self) -> Vec<String> {
        let listing = String::from_utf8(self.gpg(&["--list-keys", "--with-colons"])).unwrap();
        // gnupg's doc/DETAILS: the tenth field of an fpr record.
        let records = listing.lines().filter(|line| line.starts_with("fpr:"));
        records.map(|line| line.split(':').nth(9).unwrap().to_owned()).collect()
    }

    fn gpg(&self, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new("gpg");
        command.arg("--homedir").arg(self.home.path()).args(["--batch", "--quiet", "--passphrase", ""]);
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        output.stdout
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // gpg left an agent behind, which would look after the folder for a while once it is gone.
        let _ =
            Command::new("gpgconf").arg("--homedir").arg(self.home.path()).args(["--kill", "all"]).output();
    }
}
