//! What a peer says, as a terminal may show it.

use foreign_text::is_unsafe_to_show;

/// The most characters of it.
pub(crate) const MOST: usize = 1024;

/// Text of the peer until its first zero, without what could steer a terminal.
pub fn printable(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).chars().filter(|&c| !is_unsafe_to_show(c)).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_text_is_short_and_steers_no_terminal() {
        assert_eq!(printable("AMD\x1b[31m MI\u{202e}\n\0rest".as_bytes()), "AMD[31m MI");
        assert_eq!(printable(&[b'a'; 4000]).len(), MOST);
    }
}
