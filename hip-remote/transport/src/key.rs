//! Keys: what a worker proves itself by, and what a client knows of it.
//!
//! A key file is text: a first line that says whose it is, then a name and a hexadecimal value a line.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::Address;
use crate::sha256::sha256;

const WORKER: &str = "rocworker-hip worker key 1";
const CLIENT: &str = "rocworker-hip client key 1";

/// The most bytes of a key file: a certificate of rcgen has 400.
const MOST: u64 = 64 * 1024;

/// The worker's certificate with its private key, and the token that a client has to know.
#[derive(Clone, PartialEq, Eq)]
pub struct WorkerKey {
    /// DER.
    pub(crate) certificate: Vec<u8>,
    /// PKCS #8, DER.
    pub(crate) private: Vec<u8>,
    pub(crate) token: [u8; 32],
}

/// How a client knows its worker, and the token that it shows.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientKey {
    /// SHA-256 of the certificate's DER.
    pub(crate) certificate: [u8; 32],
    pub(crate) token: [u8; 32],
}

impl WorkerKey {
    /// The key that clients of this worker need.
    pub fn client(&self) -> ClientKey {
        ClientKey { certificate: sha256(&self.certificate), token: self.token }
    }

    /// Whether a client that shows this token may come in. The time it takes tells nothing of the token.
    pub fn admits(&self, token: &[u8; 32]) -> bool {
        self.token.iter().zip(token).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b))) == 0
    }

    /// # Errors
    /// The file cannot be read, others may read it, or it is no worker's key.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = read(path)?;
        let [certificate, private, token] = values(&text, WORKER, ["certificate", "private-key", "token"])
            .map_err(|why| format!("{} {why}", path.display()))?;
        let token = thirty_two(&token).map_err(|why| format!("{} {why}", path.display()))?;
        Ok(Self { certificate, private, token })
    }

    /// # Errors
    /// The file exists already, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        write(
            path,
            &format!(
                "{WORKER}\ncertificate {}\nprivate-key {}\ntoken {}\n",
                hex(&self.certificate),
                hex(&self.private),
                hex(&self.token)
            ),
        )
    }
}

impl ClientKey {
    /// What [`hip_protocol::calls::Hello`] carries: zeroes to a unix socket, which has no TLS and asks for no token.
    pub fn token(&self, to: &Address) -> [u8; 32] {
        if matches!(to, Address::Tcp { .. }) { self.token } else { [0; 32] }
    }

    /// # Errors
    /// The file cannot be read, others may read it, or it is no client's key.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = read(path)?;
        let named = |why: String| format!("{} {why}", path.display());
        let [certificate, token] = values(&text, CLIENT, ["certificate-sha256", "token"]).map_err(named)?;
        Ok(Self {
            certificate: thirty_two(&certificate).map_err(named)?,
            token: thirty_two(&token).map_err(named)?,
        })
    }

    /// # Errors
    /// The file exists already, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        write(
            path,
            &format!("{CLIENT}\ncertificate-sha256 {}\ntoken {}\n", hex(&self.certificate), hex(&self.token)),
        )
    }
}

impl std::fmt::Debug for WorkerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WorkerKey({})", hex(&sha256(&self.certificate)))
    }
}

impl std::fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClientKey({})", hex(&self.certificate))
    }
}

fn read(path: &Path) -> Result<String, String> {
    let failed = |why: std::io::Error| format!("The key {} cannot be read: {why}", path.display());
    // Opening a pipe may wait for ever.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(format!("The key {} is no regular file: name a key's file", path.display()));
    }
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text).map_err(failed)?;
    // No other file's mode matters: its caller says that it is no key. A group may read: Kubernetes gives a secret's files to the group of the pod (fsGroup).
    if mode & 0o027 != 0 && [WORKER, CLIENT].iter().any(|kind| text.starts_with(kind)) {
        return Err(format!(
            "The key {} has the mode {:04o}, so that others may read or change it: run chmod 600 on it",
            path.display(),
            mode & 0o7777
        ));
    }
    Ok(text)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |why: std::io::Error| match why.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{} exists: move it away first, because clients may use it", path.display())
        }
        _ => format!("The key {} cannot be written: {why}", path.display()),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|why| {
        // A part of a key would stand in the way of the next attempt.
        let _ = std::fs::remove_file(path);
        failed(why)
    })
}

/// The named values of a key's text.
fn values<const N: usize>(text: &str, kind: &str, names: [&str; N]) -> Result<[Vec<u8>; N], String> {
    let mut lines = text.lines();
    match lines.next() {
        Some(first) if first == kind => {}
        Some(WORKER) => return Err("is a worker's key: a client needs the file client.key beside it".into()),
        Some(CLIENT) => return Err("is a client's key: a worker needs the file worker.key beside it".into()),
        _ => return Err(format!("is no key: its first line is not {kind:?}")),
    }
    let mut values = [const { Vec::new() }; N];
    for (name, value) in names.iter().zip(&mut values) {
        let line = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        *value = line
            .and_then(bytes)
            .ok_or_else(|| format!("has no line {name:?} with hexadecimal digits where one belongs"))?;
    }
    match lines.next() {
        None => Ok(values),
        Some(_) => Err("has more lines than a key has".into()),
    }
}

fn thirty_two(bytes: &[u8]) -> Result<[u8; 32], String> {
    bytes.try_into().map_err(|_| format!("has a value of {} bytes in place of 32", bytes.len()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
    bytes.filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> WorkerKey {
        WorkerKey { certificate: vec![1, 0xab], private: vec![0xff; 3], token: [7; 32] }
    }

    #[test]
    fn a_key_is_read_as_it_was_written_and_no_other_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let (worker, client) = (folder.path().join("worker.key"), folder.path().join("client.key"));
        made().write(&worker).unwrap();
        made().client().write(&client).unwrap();
        assert_eq!(WorkerKey::read(&worker).unwrap(), made());
        assert_eq!(ClientKey::read(&client).unwrap(), made().client());
        assert_eq!(std::fs::metadata(&client).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(made().write(&worker).unwrap_err().contains("exists: move it away"));
        std::fs::set_permissions(&client, PermissionsExt::from_mode(0o604)).unwrap();
        assert!(ClientKey::read(&client).unwrap_err().contains("mode 0604"));
        std::fs::set_permissions(&client, PermissionsExt::from_mode(0o440)).unwrap();
        assert!(ClientKey::read(&client).is_ok());
    }

    #[test]
    fn a_file_that_is_no_such_key_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        for (text, says) in [
            (String::new(), "its first line is not"),
            (format!("{WORKER}\n"), "is a worker's key: a client needs"),
            (format!("{CLIENT}\ntoken 00\n"), "no line \"certificate-sha256\""),
            (format!("{CLIENT}\ncertificate-sha256 0\ntoken 00\n"), "no line \"certificate-sha256\""),
            (format!("{CLIENT}\ncertificate-sha256 00\ntoken 00\n"), "a value of 1 bytes in place of 32"),
            (format!("{CLIENT}\ncertificate-sha256 00\ntoken 00\nmore\n"), "more lines"),
        ] {
            let _ = std::fs::remove_file(&path);
            write(&path, &text).unwrap();
            let sentence = ClientKey::read(&path).unwrap_err();
            assert!(sentence.contains(says) && sentence.contains("a.key"), "{sentence}");
        }
        std::fs::write(folder.path().join("README"), "Read me.\n").unwrap();
        std::fs::set_permissions(folder.path().join("README"), PermissionsExt::from_mode(0o644)).unwrap();
        assert!(ClientKey::read(&folder.path().join("README")).unwrap_err().contains("README is no key"));
        assert!(ClientKey::read(folder.path()).unwrap_err().contains("is no regular file"));
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(ClientKey::read(&pipe).unwrap_err().contains("pipe is no regular file"));
        assert!(ClientKey::read(&folder.path().join("none")).unwrap_err().contains("none cannot be read"));
    }

    #[test]
    fn a_unix_socket_is_not_shown_the_token() {
        let key = made().client();
        assert_eq!(key.token(&Address::parse("gpu").unwrap()), [7; 32]);
        assert_eq!(key.token(&Address::parse("unix:/run/gpu").unwrap()), [0; 32]);
    }

    #[test]
    fn a_worker_admits_its_own_token_alone() {
        let mut token = [7; 32];
        assert!(made().admits(&token));
        token[31] ^= 1;
        assert!(!made().admits(&token));
    }
}
