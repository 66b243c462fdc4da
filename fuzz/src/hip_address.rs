//! What a person gives a client: addresses of workers, and the file of a key.

use std::io::Write as _;

use hip_transport::{Address, ClientKey, WorkerKey};

use crate::assert_fit_for_a_log;

/// A list of addresses, or after a first line that begins with `rocworker-hip` a key.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.starts_with("rocworker-hip") {
        return check_key(text);
    }
    match Address::list(text) {
        // A sentence quotes what the person wrote, however long that is.
        Err(sentence) if text.len() > 100 => assert!(!sentence.chars().any(char::is_control), "{sentence:?}"),
        Err(sentence) => assert_fit_for_a_log(&sentence),
        Ok(addresses) => {
            for address in &addresses {
                let is_whole = match address {
                    Address::Tcp { host, port } => !host.is_empty() && *port != 0,
                    Address::Unix(path) => path.is_absolute(),
                };
                assert!(is_whole, "{address:?}");
            }
            let written: Vec<String> = addresses.iter().map(Address::to_string).collect();
            assert_eq!(Address::list(&written.join(",")), Ok(addresses));
        }
    }
}

fn check_key(text: &str) {
    let mut file = tempfile::NamedTempFile::new().expect("the temporary folder can be written");
    file.write_all(text.as_bytes()).expect("the temporary folder can be written");
    let folder = tempfile::tempdir().expect("the temporary folder can be written");
    let again = folder.path().join("key");
    match ClientKey::read(file.path()) {
        Err(sentence) => assert_fit_for_a_log(&sentence),
        Ok(key) => {
            key.write(&again).expect("a key is written where none is");
            assert!(ClientKey::read(&again) == Ok(key));
            assert!(WorkerKey::read(&again).is_err());
        }
    }
    match WorkerKey::read(file.path()) {
        Err(sentence) => assert_fit_for_a_log(&sentence),
        Ok(key) => {
            let _ = std::fs::remove_file(&again);
            key.write(&again).expect("a key is written where none is");
            assert!(WorkerKey::read(&again).as_ref() == Ok(&key));
            let worker = Address::Tcp { host: String::new(), port: 0 };
            assert!(!key.admits(&[0; 32]) || key.client().token(&worker) == [0; 32]);
        }
    }
}
