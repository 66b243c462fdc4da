//! A format string of the kernel's, with `{name}` where it has a conversion.

use memchr::memmem;
use serde::Deserialize;

/// TASK_COMM_LEN - 1 of include/linux/sched.h. The kernel writes names of processes into its messages as they are.
const LONGEST_PROCESS_NAME: usize = 15;

/// Fixed words with holes between them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    /// The name of the hole in front of the first words.
    leading: Option<String>,
    /// At least one.
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

    /// What stands in the holes of a line that has the fixed words in this order.
    ///
    /// A hole between words takes the shortest text that is not empty. The first and the last hole take the bytes up to
    /// the next blank. A line in which a process and its thread are named like two parts of it is none. Bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn find<'p>(&'p self, line: &[u8]) -> Option<Vec<(&'p str, String)>> {
        let mut values = Vec::new();
        let mut end = 0;
        let mut hole = self.leading.as_ref();
        for (nth, part) in self.parts.iter().enumerate() {
            let is_last = nth + 1 == self.parts.len();
            // The earliest place that fits leaves the most room to the words behind it: no other one needs a try.
            let from = if nth == 0 { 0 } else { end + 1 };
            let places = places(line, from, &part.words);
            let mut fitting = places.filter(|(start, end)| {
                let has_leading = nth > 0 || self.leading.is_none() || !word_before(line, *start).is_empty();
                let has_trailing = !is_last || part.hole.is_none() || !word_after(line, *end).is_empty();
                has_leading && has_trailing
            });
            let (start, next) = fitting.next()?;
            if let Some(name) = hole {
                let value = if nth == 0 { word_before(line, start) } else { line.get(end..start)? };
                if has_two_names_around(value) {
                    return None;
                }
                values.push((name.as_str(), shown(value)));
            }
            (hole, end) = (part.hole.as_ref(), next);
        }
        values.extend(hole.map(|name| (name.as_str(), shown(word_after(line, end)))));
        Some(values)
    }
}

/// Where the words start and end, from a byte of the line on, overlapping places too.
fn places<'l>(
    line: &'l [u8],
    mut from: usize,
    words: &'l str,
) -> impl Iterator<Item = (usize, usize)> + use<'l> {
    let finder = memmem::Finder::new(words.as_bytes());
    std::iter::from_fn(move || {
        let start = from + finder.find(line.get(from..)?)?;
        from = start + 1;
        Some((start, start + words.len()))
    })
}

/// `in process NAME pid 7 thread NAME pid 8` (`amdgpu_vm_print_task_info` in amdgpu_vm.c): what begins in one name and ends
/// in the other was put together by the process.
fn has_two_names_around(value: &[u8]) -> bool {
    memmem::find(value, b" pid ").is_some_and(|at| memmem::find(&value[at..], b" thread ").is_some())
}

fn word_before(line: &[u8], end: usize) -> &[u8] {
    let line = line.get(..end).unwrap_or_default();
    let start = line.iter().rposition(u8::is_ascii_whitespace).map_or(0, |blank| blank + 1);
    line.get(start..).unwrap_or_default()
}

fn word_after(line: &[u8], start: usize) -> &[u8] {
    let line = line.get(start..).unwrap_or_default();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    line.get(..end).unwrap_or_default()
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
        let values = pattern.find(line)?;
        Some(values.iter().map(|(name, value)| format!("{name}={value};")).collect())
    }

    #[test]
    fn holes_take_what_stands_between_the_words() {
        let timeout = "ring {ring} timeout, signaled seq={signaled}, emitted seq={emitted}";
        let errors = "{count} uncorrectable hardware errors detected in {block} block";
        for (text, line, expected) in [
            (
                timeout,
                "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=2219, emitted seq=2221",
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
            (
                errors,
                "amdgpu: 12 uncorrectable hardware errors detected in umc block",
                Some("count=12;block=umc;"),
            ),
            (errors, "12 uncorrectable hardware errors detected in umc block", Some("count=12;block=umc;")),
            (errors, " uncorrectable hardware errors detected in umc block", None),
            // Between words a hole takes blanks too, and what is behind the last words does not matter.
            (
                errors,
                "1 uncorrectable hardware errors detected in the umc block\r",
                Some("count=1;block=the umc;"),
            ),
            ("Poison is created", "amdgpu 0000:01:00.0: {15}Poison is created", Some("")),
            ("Poison is created", "amdgpu 0000:01:00.0: {15}poison is created", None),
        ] {
            assert_eq!(found(text, line.as_bytes()).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_first_place_that_leads_nowhere_is_passed_over() {
        for (text, line, expected) in [
            // Nothing before the first place, nothing behind the first place of the last words.
            ("{n}abcabcabcabcabcabc", "abcabcabcabcabcabc 1abcabcabcabcabcabc", "n=1;"),
            ("{n}abcabcabcabcabcabc", "abcabcabcabcabcabcabc", "n=abc;"),
            ("status of the memory={n}", "status of the memory= status of the memory=7", "n=7;"),
            (
                "status {a} of a memory={n}",
                "status 1 of a memory= 2 of a memory=7",
                "a=1 of a memory= 2;n=7;",
            ),
            (
                "{a}the only words here{b}",
                "the only words here 1the only words here 1the only words here2",
                "a=1;b=2;",
            ),
            // An empty hole is made longer.
            ("memory error{n}error memory", "memory errorerror memoryerror memory", "n=error memory;"),
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

    #[test]
    fn no_name_of_a_process_is_a_message() {
        // What TASK_COMM_LEN leaves of a name that was chosen with care.
        let name = "Poison is created".get(..LONGEST_PROCESS_NAME).unwrap();
        let line = format!("amdgpu: in process {name} pid 4711 thread {name} pid 4712");
        assert_eq!(found("Poison is created", line.as_bytes()), None);
        let line = "amdgpu: in process GPU reset( pid 4711 thread ) failed pid 4712";
        assert_eq!(found("GPU reset({count}) failed", line.as_bytes()), None);
        let named = "in process {process} pid {pid} thread {thread} pid {thread_pid}";
        let expected = "process=GPU reset(;pid=4711;thread=) failed;thread_pid=4712;";
        assert_eq!(found(named, line.as_bytes()).as_deref(), Some(expected));
    }
}
