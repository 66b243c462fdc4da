//! Errors by number or name: the errors 1 to 8, the status codes of HIP, HSA and AMD SMI, and AFIDs.

pub mod afids;
pub mod errors;
pub mod reported;
pub mod statuses;

use statuses::Library;

/// What a word on the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// `7`: an error of the table. A lone number is no line of a log, in either base.
    Error(&'a str),
    /// `hip:719`, or a code's bare name.
    Status(Library, &'a str),
    /// `afid:24`
    Afid(&'a str),
    /// `nvml:3`
    UnknownPrefix(&'a str),
}

impl<'a> Asked<'a> {
    /// `None`: this is no code but a text, such as a line of the kernel's log.
    #[must_use]
    pub fn of(word: &'a str) -> Option<Self> {
        let word = word.trim();
        if is_numeral(word) {
            return Some(Self::Error(word));
        }
        if let Some(code) = Self::of_parts(word) {
            return Some(code);
        }
        if word.is_empty() || word.contains(char::is_whitespace) {
            return None;
        }
        let Some((prefix, code)) = word.split_once(':') else {
            return Library::ALL.into_iter().find(|it| it.names(word)).map(|it| Self::Status(it, word));
        };
        if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return None;
        }
        Some(Self::of_prefix(prefix, code).unwrap_or(Self::UnknownPrefix(prefix)))
    }

    /// `hip 719`, `AFID=24`, `HIP error code: 719` and `hipErrorLaunchFailure(719)`, as people and logs write them.
    fn of_parts(words: &'a str) -> Option<Self> {
        const BETWEEN: [&str; 3] = ["error", "code", "status"];
        let parts = words.split(|c: char| c.is_whitespace() || matches!(c, ':' | '=' | '(' | ')'));
        let parts =
            parts.filter(|part| !part.is_empty() && !BETWEEN.iter().any(|it| it.eq_ignore_ascii_case(part)));
        let &[library, code] = &*parts.collect::<Vec<_>>() else { return None };
        is_numeral(code).then(|| Self::of_prefix(library, code))?
    }

    fn of_prefix(prefix: &str, code: &'a str) -> Option<Self> {
        let is_of = |it: &Library| it.prefix().eq_ignore_ascii_case(prefix) || it.names(prefix);
        let library = Library::ALL.into_iter().find(is_of);
        match library {
            Some(library) => Some(Self::Status(library, code)),
            None => prefix.eq_ignore_ascii_case("afid").then_some(Self::Afid(code)),
        }
    }
}

/// Whether a word is a number in decimal or hexadecimal digits, however many: one that is too large is looked up too.
fn is_numeral(word: &str) -> bool {
    let hexadecimal = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// The libraries of which this version knows a code of that number.
///
/// # Errors
/// [`Library::table`] fails.
pub fn libraries_with(number: &str) -> Result<Vec<&'static str>, toml::de::Error> {
    let mut found = Vec::new();
    for library in Library::ALL {
        if library.table()?.find(number).is_some() {
            found.push(library.prefix());
        }
    }
    Ok(found)
}

/// A number as it is written in programs and their logs: 719, 0x1016.
fn number(word: &str) -> Option<u32> {
    match word.get(..2) {
        Some("0x" | "0X") => word.get(2..).and_then(|digits| u32::from_str_radix(digits, 16).ok()),
        _ => word.parse().ok(),
    }
}

/// The line on which a text is wrong, counted from 1.
fn line_at(text: &str, place: usize) -> usize {
    1 + text.bytes().take(place).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_letters_a_colon_and_no_blank_is_a_code_and_all_else_is_text() {
        for (word, expected) in [
            ("7", Some(Asked::Error("7"))),
            ("hip:719", Some(Asked::Status(Library::Hip, "719"))),
            ("HIP:719", Some(Asked::Status(Library::Hip, "719"))),
            ("Hsa:0x1016", Some(Asked::Status(Library::Hsa, "0x1016"))),
            ("amdsmi:", Some(Asked::Status(Library::AmdSmi, ""))),
            ("hip:a:b", Some(Asked::Status(Library::Hip, "a:b"))),
            ("hipErrorLaunchFailure", Some(Asked::Status(Library::Hip, "hipErrorLaunchFailure"))),
            ("HSA_STATUS_ERROR_EXCEPTION", Some(Asked::Status(Library::Hsa, "HSA_STATUS_ERROR_EXCEPTION"))),
            ("AFID:24", Some(Asked::Afid("24"))),
            ("nvml:3", Some(Asked::UnknownPrefix("nvml"))),
            ("", None),
            (" ", None),
            ("-", None),
            ("0x1016", Some(Asked::Error("0x1016"))),
            ("719 ", Some(Asked::Error("719"))),
            ("hip 719", Some(Asked::Status(Library::Hip, "719"))),
            ("hip: 719", Some(Asked::Status(Library::Hip, "719"))),
            ("hip:719 ", Some(Asked::Status(Library::Hip, "719"))),
            ("hsa = 0x1016", Some(Asked::Status(Library::Hsa, "0x1016"))),
            ("afid 24", Some(Asked::Afid("24"))),
            ("AFID=24", Some(Asked::Afid("24"))),
            ("HIP error 719", Some(Asked::Status(Library::Hip, "719"))),
            ("hip error code: 719", Some(Asked::Status(Library::Hip, "719"))),
            ("HSA status=0x1016", Some(Asked::Status(Library::Hsa, "0x1016"))),
            ("hipErrorLaunchFailure(719)", Some(Asked::Status(Library::Hip, "719"))),
            ("hipErrorUnheardOf (719)", Some(Asked::Status(Library::Hip, "719"))),
            ("HIP error: out of memory", None),
            ("7 7", None),
            ("0xyz", None),
            ("hsa failed", None),
            ("ring 7", None),
            ("amdgpu 0000:03:00.0: ring gfx timeout", None),
            ("0000:03:00.0:", None),
            (":719", None),
            ("[drm:amdgpu_job_timedout", None),
            ("timeout", None),
        ] {
            assert_eq!(Asked::of(word), expected, "{word}");
        }
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        for (word, expected) in [
            ("719", Some(719)),
            ("0x1016", Some(0x1016)),
            ("0X100a", Some(0x100A)),
            ("4294967295", Some(u32::MAX)),
            ("4294967296", None),
            ("0x", None),
            ("1016h", None),
            ("é", None),
        ] {
            assert_eq!(number(word), expected, "{word}");
        }
    }
}
