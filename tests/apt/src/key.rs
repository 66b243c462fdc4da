//! Keys that live as long as a test, made by real gpg in a folder of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The clock at which an expired key was made and signs: a day later it is expired.
const LONG_AGO: &str = "20200101T000000!";

/// An ed25519 key that can sign, and a keyring that holds it alone.
#[derive(Debug)]
pub struct Key {
    home: TempDir,
    /// Of the primary key: what a person compares.
    fingerprint: String,
    /// Of what signs: a subkey, or the primary key itself.
    signer: String,
    /// gpg's clock, where it is not this machine's.
    clock: Option<&'static str>,
}

impl Key {
    /// A key without an end.
    ///
    /// # Panics
    /// Where gpg makes none.
    pub fn generate(owner: &str) -> Self {
        Self::made(owner, "never", None)
    }

    /// A key that expired in 2020. It signs all the same: with the clock of its day.
    ///
    /// # Panics
    /// Where gpg makes none.
    pub fn expired(owner: &str) -> Self {
        Self::made(owner, "1d", Some(LONG_AGO))
    }

    /// A key whose subkey signs, as that of many a repository does.
    ///
    /// # Panics
    /// Where gpg makes none.
    pub fn with_subkey(owner: &str) -> Self {
        let mut key = Self::made(owner, "never", None);
        key.gpg(&["--quick-add-key", &key.fingerprint, "ed25519", "sign", "never"]);
        // The primary key's comes first.
        let subkey = key.fingerprints().pop().unwrap();
        // With the mark, gpg takes this very one.
        key.signer = format!("{subkey}!");
        key
    }

    fn made(owner: &str, expires: &str, clock: Option<&'static str>) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let mut key = Self { home, fingerprint: String::new(), signer: String::new(), clock };
        let owner = format!("{owner} <{}@example.invalid>", owner.to_lowercase().replace(' ', "."));
        key.gpg(&["--quick-generate-key", &owner, "ed25519", "sign", expires]);
        key.fingerprint = key.fingerprints().remove(0);
        key.signer.clone_from(&key.fingerprint);
        key
    }

    /// 40 hexadecimal digits, as gpg prints them without spaces.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The public key as a binary keyring, which apt takes from a file named `.gpg`.
    ///
    /// # Panics
    /// Where gpg gives none.
    pub fn binary(&self) -> Vec<u8> {
        self.gpg(&["--export", &self.fingerprint])
    }

    /// The public key as text, which apt takes from a file named `.asc`.
    ///
    /// # Panics
    /// Where gpg gives none.
    pub fn armored(&self) -> String {
        String::from_utf8(self.gpg(&["--armor", "--export", &self.fingerprint])).unwrap()
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

    /// Those of the key and of its subkeys, in this order.
    fn fingerprints(&self) -> Vec<String> {
        let listing = String::from_utf8(self.gpg(&["--list-keys", "--with-colons"])).unwrap();
        // gnupg's doc/DETAILS: the tenth field of an fpr record.
        let records = listing.lines().filter(|line| line.starts_with("fpr:"));
        records.map(|line| line.split(':').nth(9).unwrap().to_owned()).collect()
    }

    fn gpg(&self, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new("gpg");
        command.arg("--homedir").arg(self.home.path()).args(["--batch", "--quiet", "--passphrase", ""]);
        if let Some(clock) = self.clock {
            command.args(["--faked-system-time", clock]);
        }
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        output.stdout
    }

    /// Several public keys in one binary keyring.
    pub fn ring(keys: &[&Self]) -> Vec<u8> {
        keys.iter().flat_map(|key| key.binary()).collect()
    }

    /// Where gpg keeps the secret half.
    pub fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // gpg left an agent behind, which would look after the folder for a while once it is gone.
        let _ =
            Command::new("gpgconf").arg("--homedir").arg(self.home.path()).args(["--kill", "all"]).output();
    }
}
