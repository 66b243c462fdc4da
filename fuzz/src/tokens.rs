//! What an edit may do to a text, token by token, space included.

use allocation::bundle::Injection;

use crate::json::{as_go_decodes, value};

/// Fails unless every token of the text is still there, in its order. Only a null may have given way to a list or
/// an object, only a limit to another number, and only a size to another one: which, is for the reference to say.
pub(crate) fn assert_kept(before: &str, after: &str, injection: &Injection<'_>) {
    let mut after_tokens = tokens(after).into_iter();
    for token in tokens(before).into_iter().filter(|token| !may_go(token, injection)) {
        assert!(after_tokens.any(|other| other == token), "{token:?} of\n{before}\nis not kept in\n{after}");
    }
}

fn may_go(token: &str, injection: &Injection<'_>) -> bool {
    if token == "null" || injection.process.memlock_bytes.is_some() && token.parse::<u64>().is_ok() {
        return true;
    }
    injection.shm_bytes.is_some()
        && token.starts_with('"')
        && value::<String>(&as_go_decodes(token)).expect("a string").starts_with("size=")
}

/// The tokens of a text that is JSON: strings with their quotation marks, runs of space, of letters and digits,
/// and single marks.
fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(first) = bytes.get(at) {
        let start = at;
        at += 1;
        match first {
            b'"' => {
                while let Some(byte) = bytes.get(at) {
                    at += if *byte == b'\\' { 2 } else { 1 };
                    if *byte == b'"' {
                        break;
                    }
                }
            }
            b'{' | b'}' | b'[' | b']' | b':' | b',' => {}
            _ => {
                let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
                let is_same = |byte: &&u8| is_space(byte) == is_space(first) && !b"\"{}[]:,".contains(byte);
                while bytes.get(at).filter(is_same).is_some() {
                    at += 1;
                }
            }
        }
        tokens.push(&text[start..at.min(text.len())]);
    }
    tokens
}
