use super::long::Value;
use super::{MARK, is_secret};

/// A line without what was removed; `goes_on` when the removed value has further lines.
pub(super) struct Found {
    pub(super) text: String,
    pub(super) places: usize,
    pub(super) goes_on: Option<Value>,
}

pub(super) fn redact(line: &str, names: &[(String, &'static str)]) -> Found {
    let cut = [secret_value(line), secret_flag(line), credentials_of_http(line), pem(line)];
    let first = cut.into_iter().flatten().min_by_key(|cut| cut.at);
    let (kept, goes_on) = match &first {
        Some(cut) => (line.get(..cut.at).unwrap_or(""), cut.goes_on.clone()),
        None => (line, None),
    };
    let mut places = usize::from(first.is_some());
    let mut text = identities(kept, names, &mut places);
    if let Some(cut) = first {
        text.push_str(cut.before_mark);
        text.push_str(&cut.mark);
    }
    Found { text, places, goes_on }
}

/// A text without the names in it: who logs in where, hardware addresses, `names`.
pub(super) fn identities(text: &str, names: &[(String, &'static str)], places: &mut usize) -> String {
    let text = hardware_addresses(&userinfo(text, places), places);
    names.iter().fold(text, |text, (name, instead)| words(&text, name, instead, places))
}

/// From where on a line is removed.
struct Cut {
    at: usize,
    before_mark: &'static str,
    mark: String,
    goes_on: Option<Value>,
}

impl Cut {
    fn at(at: usize, goes_on: Option<Value>) -> Self {
        Self { at, before_mark: "", mark: MARK.to_owned(), goes_on }
    }
}

/// `KEY=…`, `key: …`, `"key": …`, `Environment="KEY=…"`: to the end of the line.
fn secret_value(line: &str) -> Option<Cut> {
    let separators = line.char_indices().filter(|(_, c)| matches!(c, '=' | ':'));
    for (at, separator) in separators {
        let before = line.get(..at)?.trim_end_matches([' ', '\t', '"', '\'', ']']);
        let start =
            before.char_indices().rfind(|(_, c)| !is_of_key(*c)).map_or(0, |(at, c)| at + c.len_utf8());
        if !is_secret(before.get(start..)?) {
            continue;
        }
        let value = line.get(at + 1..)?;
        if value.trim().is_empty() && separator == '=' {
            // Nothing is set.
            continue;
        }
        let mut cut = Cut::at(at + 1, Value::beginning(line, value));
        if value.trim().is_empty() {
            // The value stands on the lines below.
            cut.mark = String::new();
        } else {
            cut.before_mark = if value.starts_with(' ') { " " } else { "" };
            cut.mark = format!("\"{MARK}\"");
        }
        return Some(cut);
    }
    None
}

fn is_of_key(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// `--client-secret …` on a command line.
fn secret_flag(line: &str) -> Option<Cut> {
    let mut from = 0;
    while let Some(found) = line.get(from..)?.find("--") {
        let flag = from + found;
        let name: String = line.get(flag + 2..)?.chars().take_while(|c| is_of_key(*c)).collect();
        let end = flag + 2 + name.len();
        let rest = line.get(end..)?;
        if is_secret(&name) && rest.starts_with([' ', '\t']) && !rest.trim().is_empty() {
            let mut cut = Cut::at(end, None);
            cut.before_mark = " ";
            return Some(cut);
        }
        from = end;
    }
    None
}

/// `Bearer …` and `Basic …` wherever they stand: a header's value may be far from its name.
fn credentials_of_http(line: &str) -> Option<Cut> {
    let lower = line.to_ascii_lowercase();
    let schemes = ["bearer ", "basic "].into_iter();
    let found = schemes.filter_map(|scheme| lower.find(scheme).map(|at| at + scheme.len()));
    found.min().map(|at| Cut::at(at, None))
}

/// A PEM block, on one line or on many.
fn pem(line: &str) -> Option<Cut> {
    let at = line.find("-----BEGIN ")?;
    let goes_on = (!line.get(at..)?.contains("-----END ")).then_some(Value::Pem);
    Some(Cut::at(at, goes_on))
}

/// `https://user:password@host` and `user:password@host`: everything in front of the last @.
fn userinfo(line: &str, places: &mut usize) -> String {
    let mut text = String::with_capacity(line.len());
    for piece in line.split_inclusive([' ', '\t', '"', '\'', '=', ',', '<', '>', '(', ')']) {
        let start = piece.find("://").map_or(0, |at| at + 3);
        match piece.rfind('@') {
            Some(at) if at > start && (start > 0 || piece.get(..at).is_some_and(|s| s.contains(':'))) => {
                *places += 1;
                text.push_str(piece.get(..start).unwrap_or(""));
                text.push_str(MARK);
                text.push_str(piece.get(at..).unwrap_or(""));
            }
            _ => text.push_str(piece),
        }
    }
    text
}

/// `52:54:00:12:34:56`: six pairs of hexadecimal digits, which no PCI address has.
fn hardware_addresses(line: &str, places: &mut usize) -> String {
    const LENGTH: usize = 17;
    let bytes = line.as_bytes();
    let is_part =
        |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_hexdigit() || *b == b':' || *b == b'-');
    let mut text = String::with_capacity(line.len());
    let mut copied = 0;
    let mut at = 0;
    while at + LENGTH <= bytes.len() {
        let begins = at == 0 || !is_part(at - 1);
        if begins && bytes.get(at..at + LENGTH).is_some_and(is_hardware_address) && !is_part(at + LENGTH) {
            text.push_str(line.get(copied..at).unwrap_or(""));
            text.push_str(MARK);
            *places += 1;
            at += LENGTH;
            copied = at;
        } else {
            at += 1;
        }
    }
    text.push_str(line.get(copied..).unwrap_or(""));
    text
}

fn is_hardware_address(bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(at, byte)| match at % 3 {
        2 => matches!(byte, b':' | b'-'),
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Puts something else in the place of a word, in whatever case it is written.
fn words(line: &str, word: &str, instead: &str, places: &mut usize) -> String {
    let lower = line.to_ascii_lowercase();
    let is_of_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-');
    let mut text = String::with_capacity(line.len());
    let mut copied = 0;
    for (at, _) in lower.match_indices(word) {
        let end = at + word.len();
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let after = line.get(end..).and_then(|after| after.chars().next());
        if !is_of_word(before) && !is_of_word(after) {
            text.push_str(line.get(copied..at).unwrap_or(""));
            text.push_str(instead);
            copied = end;
            *places += 1;
        }
    }
    text.push_str(line.get(copied..).unwrap_or(""));
    text
}
