//! Lists the fingerprints of the keys in a file of OpenPGP certificates. With `Signed-By` apt trusts every
//! certificate of the file, so an additional one must be seen.
//!
//! Packets follow RFC 9580, sections 4.2 and 5.5.4. Only the fingerprints are computed, which name a key's
//! own bytes: apt checks whether the key has signed a repository.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::digest::hexadecimal;

/// A packet that begins a certificate, and one that belongs to it.
const PUBLIC_KEY: u8 = 6;
const SECRET_KEY: u8 = 5;

const ARMOR: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";

const NO_KEY: &str = "it holds no OpenPGP key";
const DAMAGED: &str = "its armor is damaged";
const CUT: &str = "it is cut, or no OpenPGP file";
const SECRET: &str = "it holds a secret key";

/// The bytes of a keyring as `Signed-By` takes them in a file whose name ends in `.gpg`: armor is taken off.
///
/// # Errors
/// When the armor is damaged.
pub fn binary(file: &[u8]) -> Result<Vec<u8>, &'static str> {
    let Some(text) = std::str::from_utf8(file).ok().filter(|text| text.contains(ARMOR)) else {
        return Ok(file.to_vec());
    };
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((_, block)) = rest.split_once(ARMOR) {
        let (block, behind) = block.split_once(END).ok_or(DAMAGED)?;
        let body = block.lines().skip_while(|line| !line.trim().is_empty()).map(str::trim);
        // The line that begins with = is a checksum, which RFC 9580 says is to be ignored.
        let body: String = body.filter(|line| !line.starts_with('=')).collect();
        bytes.extend(STANDARD.decode(body).map_err(|_| DAMAGED)?);
        rest = behind;
    }
    Ok(bytes)
}

/// The fingerprints of the primary keys of a keyring, armored or not, in upper case, in their order.
///
/// # Errors
/// When the file is no keyring, is cut, or holds what no repository's keyring should.
pub fn fingerprints(file: &[u8]) -> Result<Vec<String>, String> {
    let bytes = binary(file)?;
    let mut rest = bytes.as_slice();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (tag, body, behind) = packet(rest).ok_or(CUT)?;
        match tag {
            PUBLIC_KEY => found.push(fingerprint(body)?),
            SECRET_KEY => return Err(SECRET.to_owned()),
            _ => {}
        }
        rest = behind;
    }
    if found.is_empty() { Err(NO_KEY.to_owned()) } else { Ok(found) }
}

/// RFC 9580, section 5.5.4: what is hashed begins with a byte that no packet has, and the body's length.
fn fingerprint(body: &[u8]) -> Result<String, String> {
    let version = *body.first().ok_or(CUT)?;
    let hashed = |lead: &[u8]| [lead, body].concat();
    match version {
        4 => {
            let length = u16::try_from(body.len()).map_err(|_| CUT)?.to_be_bytes();
            Ok(hexadecimal(&Sha1::digest(hashed(&[0x99, length[0], length[1]]))).to_ascii_uppercase())
        }
        6 => {
            let length = u32::try_from(body.len()).map_err(|_| CUT)?.to_be_bytes();
            Ok(hexadecimal(&Sha256::digest(hashed(&[&[0x9b][..], &length].concat()))).to_ascii_uppercase())
        }
        other => Err(format!("it holds a key of version {other}, which no apt of today trusts")),
    }
}

/// The first packet: its tag, its body, and what follows. Lengths in parts are for data, which no keyring holds.
fn packet(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first & 0x80 == 0 {
        return None;
    }
    let number = |count: usize| -> Option<(usize, &[u8])> {
        let (number, rest) = rest.split_at_checked(count)?;
        Some((number.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest))
    };
    let (tag, length, rest) = if first & 0x40 == 0 {
        let (length, rest) = match first & 3 {
            0 => number(1)?,
            1 => number(2)?,
            2 => number(4)?,
            _ => (rest.len(), rest),
        };
        ((first >> 2) & 0xf, length, rest)
    } else {
        let lead = usize::from(*rest.first()?);
        let (length, rest) = match lead {
            0..192 => (lead, rest.get(1..)?),
            192..224 => {
                let (pair, rest) = number(2)?;
                // Section 4.2.1.2: two bytes count from 192.
                (pair - (192 << 8) + 192, rest)
            }
            255 => {
                let (length, rest) = number(5)?;
                (length & 0xffff_ffff, rest)
            }
            _ => return None,
        };
        (first & 0x3f, length, rest)
    };
    let (body, behind) = rest.split_at_checked(length)?;
    Some((tag, body, behind))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made by gpg 2.2.40: `gpg --quick-gen-key 'a test' ed25519`, exported; with a user id, its signature and no
    /// subkey.
    const ED25519: &str = include_str!("testdata/ed25519.asc");
    /// The fingerprint that `gpg --show-keys --with-colons` prints.
    const FINGERPRINT: &str = include_str!("testdata/ed25519.fingerprint");

    #[test]
    fn a_key_of_gpgs_has_the_fingerprint_that_gpg_tells() {
        let expected = [FINGERPRINT.trim()];
        assert_eq!(fingerprints(ED25519.as_bytes()).unwrap(), expected);
        let binary = binary(ED25519.as_bytes()).unwrap();
        assert_eq!(fingerprints(&binary).unwrap(), expected);
        // Two in one file, as two blocks and as one.
        assert_eq!(fingerprints(format!("{ED25519}\n{ED25519}").as_bytes()).unwrap().len(), 2);
        assert_eq!(fingerprints(&[binary.clone(), binary].concat()).unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_keyring_is_refused() {
        let binary = binary(ED25519.as_bytes()).unwrap();
        for (file, fault) in [
            (&b""[..], NO_KEY),
            (b"<html>404</html>", CUT),
            (&binary[..binary.len() - 1], CUT),
            (&ED25519.as_bytes()[..200], DAMAGED),
            // A user id alone.
            (b"\xcd\x02me", NO_KEY),
            (b"\xc6\x02\x03\x00", "it holds a key of version 3, which no apt of today trusts"),
            (b"\xc5\x02\x04\x00", SECRET),
        ] {
            assert_eq!(fingerprints(file), Err(fault.to_owned()), "{file:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            fingerprints(&bytes).ok();
            fingerprints(format!("{ARMOR}\n\n{}\n{END}", STANDARD.encode(&bytes)).as_bytes()).ok();
        }
    }
}
