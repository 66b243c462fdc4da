//! A format string of the kernel's, with `{name}` where it has a conversion.

use memchr::memmem;
use serde::Deserialize;

/// TASK_COMM_LEN - 1 of include/linux/sched.h. The kernel writes names of processes into its messages as they are.
pub(crate) const LONGEST_PROCESS_NAME: usize = 15;

/// A record can begin with a process's name and what the kernel writes behind it, as `NAME: page allocation failure`
/// (mm/page_alloc.c): so far its beginning proves no driver.
const PROVES_NOTHING: usize = LONGEST_PROCESS_NAME + ": ".len();

/// Fixed words with holes between them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    /// The name of the hole in front of the first words.
    leading: Option<String>,
    /// The fixed words with their holes; at least one part.
    parts: Vec<Part>,
}

/// Words, and the name of the hole behind them. Only behind the last words there may be none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    words: String,
    hole: Option<String>,
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).map_err(|problem| format!("the pattern {text:?} {problem}"))
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        if text.contains('\n') {
            return Err("has more than one line".to_owned());
        }
        let (mut leading, mut parts) = (None, Vec::<Part>::new());
        let (words, mut rest) = text.split_at(text.find(['{', '}']).unwrap_or(text.len()));
        if !words.is_empty() {
            parts.push(Part { words: words.to_owned(), hole: None });
        }
        let mut names: Vec<&str> = Vec::new();
        while !rest.is_empty() {
            let hole = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let (name, behind) = hole.ok_or("has a brace without its other one")?;
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
                return Err(format!("has the hole {{{name}}}: name it with a to z and _"));
            }
            if names.contains(&name) {
                return Err(format!("has the hole {{{name}}} twice"));
            }
            let (words, next) = behind.split_at(behind.find(['{', '}']).unwrap_or(behind.len()));
            if words.is_empty() && next.starts_with('{') {
                return Err(format!("has no words behind the hole {{{name}}}, and another hole there"));
            }
            match parts.last_mut() {
                None => leading = Some(name.to_owned()),
                Some(part) => part.hole = Some(name.to_owned()),
            }
            if !words.is_empty() {
                parts.push(Part { words: words.to_owned(), hole: None });
            }
            names.push(name);
            rest = next;
        }
        let fixed: usize = parts.iter().map(|part| part.words.len()).sum();
        // A hole between words takes a byte or more.
        let least = fixed + parts.len().saturating_sub(1);
        if least <= LONGEST_PROCESS_NAME {
            return Err(format!(
                "can match {least} bytes: give {} or more, or a process could be named like it",
                LONGEST_PROCESS_NAME + 1
            ));
        }
        Ok(Self { leading, parts })
    }

    /// The fixed words, in their order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.words.as_str())
    }

    /// The longest of the fixed words: a line without them does not match.
    #[must_use]
    pub fn anchor(&self) -> &str {
        self.words().max_by_key(|words| words.len()).unwrap_or_default()
    }

    /// The values of the holes, if the pattern matches from byte `start` of a record.
    ///
    /// A hole takes the shortest text that is not empty. A hole before the first words takes no blank, nor
    /// does one that begins where a process's name could still be: behind such a name the kernel writes other
    /// names that a user chooses, as in `NAME[7]: segfault at 0 ip … in FILE`. The last hole takes the bytes
    /// up to the next blank. Bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn find<'p>(&'p self, record: &[u8], start: usize) -> Option<Vec<(&'p str, String)>> {
        let mut values = Vec::new();
        let mut end = start;
        let mut hole = self.leading.as_ref();
        for (nth, part) in self.parts.iter().enumerate() {
            let is_last = nth + 1 == self.parts.len();
            let has_end =
                |next: &usize| !is_last || part.hole.is_none() || !word_after(record, *next).is_empty();
            end = if let Some(name) = hole {
                // The earliest place that fits leaves the most room to the words behind it. A later one could only let the
                // next hole begin where a blank proves a driver, and a hole takes the shortest text.
                let mut fitting = places(record, end + 1, &part.words).filter(|(_, next)| has_end(next));
                let (words, next) = fitting.next()?;
                let value = record.get(end..words)?;
                if (nth == 0 || end <= PROVES_NOTHING) && value.iter().any(u8::is_ascii_whitespace) {
                    return None;
                }
                values.push((name.as_str(), shown(value)));
                next
            } else {
                let next = end + part.words.len();
                record.get(end..)?.starts_with(part.words.as_bytes()).then_some(next).filter(has_end)?
            };
            hole = part.hole.as_ref();
        }
        values.extend(hole.map(|name| (name.as_str(), shown(word_after(record, end)))));
        Some(values)
    }

    /// The places in a text where the pattern may begin, whatever stands in front.
    pub(crate) fn may_begin<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = usize> + 't {
        let first = self.words().next().unwrap_or_default();
        places(text, 0, first).map(move |(start, _)| {
            let before = text.get(..start).unwrap_or_default();
            // A hole in front of the words takes no blank.
            let blank = before.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
            if self.leading.is_some() { blank } else { start }
        })
    }

    /// The words, with what `value` makes of each hole.
    pub fn filled(&self, value: impl Fn(&str) -> String) -> String {
        let of = |hole: &Option<String>| hole.as_deref().map(&value).unwrap_or_default();
        let parts = self.parts.iter().map(|part| part.words.clone() + &of(&part.hole));
        of(&self.leading) + &parts.collect::<String>()
    }
}

/// The start and end of each occurrence of the words behind byte `from`, overlapping ones too.
fn places<'t>(
    text: &'t [u8],
    mut from: usize,
    words: &'t str,
) -> impl Iterator<Item = (usize, usize)> + use<'t> {
    let finder = memmem::Finder::new(words.as_bytes());
    std::iter::from_fn(move || {
        let start = from + finder.find(text.get(from..)?)?;
        from = start + 1;
        Some((start, start + words.len()))
    })
}

fn word_after(text: &[u8], start: usize) -> &[u8] {
    let text = text.get(start..).unwrap_or_default();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::try_from(text.to_owned()).unwrap()
    }

    fn found(text: &str, line: &[u8]) -> Option<String> {
        let pattern = pattern(text);
        let values = pattern.find(line, 0)?;
        Some(values.iter().map(|(name, value)| format!("{name}={value};")).collect())
    }

    #[test]
    fn holes_take_what_stands_between_the_words() {
        let timeout = "ring {ring} timeout, signaled seq={signaled}, emitted seq={emitted}";
        let errors = "{count} uncorrectable hardware errors detected in {block} block";
        for (text, line, expected) in [
            (
                timeout,
                "ring gfx_0.0.0 timeout, signaled seq=2219, emitted seq=2221",
                Some("ring=gfx_0.0.0;signaled=2219;emitted=2221;"),
            ),
            (
                timeout,
                "ring gfx timeout, signaled seq=1, emitted seq=2 and more",
                Some("ring=gfx;signaled=1;emitted=2;"),
            ),
            (timeout, "ring gfx timeout, emitted seq=2, signaled seq=1", None),
            (timeout, "ring gfx timeout, but soft recovered", None),
            // Empty holes.
            (timeout, "ring  timeout, signaled seq=1, emitted seq=2", None),
            (timeout, "ring gfx timeout, signaled seq=, emitted seq=2", None),
            (timeout, "ring gfx timeout, signaled seq=1, emitted seq= 2", None),
            (timeout, "ring gfx timeout, signaled seq=1, emitted seq=", None),
            (errors, "12 uncorrectable hardware errors detected in umc block", Some("count=12;block=umc;")),
            // A pattern matches nowhere but at the beginning of a message.
            (errors, "die: 0, 12 uncorrectable hardware errors detected in umc block", None),
            (timeout, " ring gfx timeout, signaled seq=1, emitted seq=2", None),
            (timeout, "x ring gfx timeout, signaled seq=1, emitted seq=2", None),
            (errors, " uncorrectable hardware errors detected in umc block", None),
            // Between words a hole takes blanks too, and what is behind the last words does not matter.
            (
                errors,
                "1 uncorrectable hardware errors detected in the umc block\r",
                Some("count=1;block=the umc;"),
            ),
            ("Poison is created", "Poison is created", Some("")),
            ("Poison is created", "poison is created", None),
        ] {
            assert_eq!(found(text, line.as_bytes()).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_first_place_that_leads_nowhere_is_passed_over() {
        for (text, line, expected) in [
            ("{n}abcabcabcabcabcabc", "abcabcabcabcabcabcabc", "n=abc;"),
            ("{n}abcabcabcabcabcabc", "1abcabcabcabcabcabc", "n=1;"),
            (
                "a long enough status {a} is of a memory={n}",
                "a long enough status 1 is of a memory= 2 is of a memory=7",
                "a=1 is of a memory= 2;n=7;",
            ),
            // An empty hole is made longer.
            ("memory error{n}error memory", "memory errorerrorerror memory", "n=error;"),
        ] {
            assert_eq!(found(text, line.as_bytes()).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown() {
        let line = b"ring \xff\x00x timeout, signaled seq=\xfe";
        let expected = "ring=\u{fffd}\0x;n=\u{fffd};";
        assert_eq!(found("ring {ring} timeout, signaled seq={n}", line).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_no_pattern_is_refused_in_a_sentence() {
        let words = "words of enough bytes";
        for (text, problem) in [
            (String::new(), "can match 0 bytes: give 16 or more"),
            ("{a}".to_owned(), "can match 0 bytes"),
            ("fifteen bytes..".to_owned(), "can match 15 bytes"),
            ("fourteen {a}byte{b}".to_owned(), "can match 14 bytes"),
            (format!("{words} {{a"), "has a brace without its other one"),
            (format!("{words} a}}"), "has a brace without its other one"),
            (format!("{words} }}a{{"), "has a brace without its other one"),
            (format!("{words} {{a{{b}}}}"), "has the hole {a{b}: name it with a to z and _"),
            (format!("{words} {{}}"), "has the hole {}: name it with a to z and _"),
            (format!("{words} {{A1}}"), "has the hole {A1}: name it with a to z and _"),
            (format!("{words} {{a}}{{b}}"), "has no words behind the hole {a}, and another hole there"),
            (format!("{{a}} {words} {{a}}"), "has the hole {a} twice"),
            (format!("{words}\n{words}"), "has more than one line"),
        ] {
            let error = Pattern::try_from(text.clone()).unwrap_err();
            assert!(error.starts_with(&format!("the pattern {text:?} {problem}")), "{error}");
        }
        // Each hole between words takes a byte: 16.
        assert_eq!(found("sixteen at {a}last", b"sixteen at 1last").as_deref(), Some("a=1;"));
        assert_eq!(pattern("sixteen bytes...").words().collect::<Vec<_>>(), ["sixteen bytes..."]);
        let of_some = pattern("{a} long words here {b} short {c}");
        assert_eq!(of_some.words().collect::<Vec<_>>(), [" long words here ", " short "]);
        assert_eq!(of_some.anchor(), " long words here ");
    }

    /// `NAME[7]: segfault at 0 ip … in FILE[…]` (show_signal_msg in arch/x86/mm/fault.c): a user chooses the beginning,
    /// of 15 bytes at most, and what follows `in `.
    #[test]
    fn no_hole_reaches_over_what_the_kernel_writes_between_two_names() {
        let between = "[7]: segfault at 0 ip 0 sp 0 error 4 in ";
        for (text, name, file) in [
            ("ring {ring} timeout, signaled seq={n}", "ring g", " timeout, signaled seq=1"),
            ("{count} errors detected in {block} block", "7", " errors detected in umc block"),
            ("PCS {error} was detected in it", "PCS a", " was detected in it"),
        ] {
            assert!(found(text, format!("{name}1{file}").as_bytes()).is_some());
            assert_eq!(found(text, format!("{name}{between}{file}").as_bytes()), None);
        }
        // Behind the longest name there is none.
        let long = "the sixteen bytes {a} and some more";
        let expected = Some("a=1 [7]: segfault;");
        assert_eq!(found(long, b"the sixteen bytes 1 [7]: segfault and some more").as_deref(), expected);
        // A hole takes the shortest text, though after a longer one the next hole could have a blank.
        let twice = "{n}abc{a}abcabcabcabcabc";
        assert_eq!(found(twice, b"xabcxabcxabcxabcxabc 1abcabcabcabcabc"), None);
        assert_eq!(
            found(twice, b"xabcxabcxabcxabcxabc1abcabcabcabcabc").as_deref(),
            Some("n=x;a=xabcxabcxabcxabc1;")
        );
    }

    #[test]
    fn holes_are_filled_in_their_places() {
        for text in ["{a} long words here {b} short {c}", "the only words here", "first words here {a}"] {
            assert_eq!(pattern(text).filled(|name| format!("{{{name}}}")), text);
        }
    }
}
