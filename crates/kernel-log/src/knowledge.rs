//! The messages that are known, as knowledge/messages.toml says them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use inventory::PciAddress;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::origin::{self, Origin, Speaker};
use crate::pattern::Pattern;

/// knowledge/messages.toml.
pub const BUILT_IN: &str = include_str!("../knowledge/messages.toml");

/// How many bytes of a line with an unknown front are searched: a record is shorter, even with what a program
/// adds to it.
const MOST_SEARCHED: usize = 4096;

/// At how many places of a line with an unknown front a pattern is tried, so that no line costs more.
const MOST_TRIED: usize = 16;

/// The subject of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    MemoryUncorrectable,
    MemoryCorrectable,
    BadPages,
    Hang,
    ResetFailed,
    ResetRecovered,
    IllegalOpcode,
    PageFault,
    Pcie,
    Thermal,
    Power,
    Xgmi,
    Firmware,
    InitFailed,
    HardwareEvent,
    AccessDenied,
    /// KFD leaves a GPU out, or does not start: it is not sick, and no program computes on it.
    Kfd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warning,
    Critical,
}

/// The culprit of such a message, as far as the message alone shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    Application,
    Driver,
    Hardware,
    Unknown,
}

/// How certain the meaning in [`Message::means`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// Messages that another one ends.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Ended {
    Class(Class),
    /// The message with this id.
    Message(String),
}

/// A message of the kernel, in all the words that the kernel's versions have for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// `ring-timeout`: unique, lower case, with hyphens.
    pub id: String,
    pub class: Class,
    pub severity: Severity,
    pub blame: Blame,
    pub confidence: Confidence,
    /// Whether the GPU should get no new work.
    pub drain: bool,
    /// Whether a reset of the GPU follows or helps: an explanation then says what a reset takes down.
    pub reset: bool,
    /// The earlier messages about this GPU that this message ends.
    #[serde(default)]
    pub ends: Vec<Ended>,
    /// Whether only health reads the message, because a healthy machine logs it too.
    #[serde(default)]
    pub silent: bool,
    /// One or two sentences on what the message means.
    pub means: String,
    /// Actions for a person to take at once.
    pub now: Vec<String>,
    /// Actions for a person to take afterwards.
    pub later: Vec<String>,
    /// Commands with `{pci}`, `{render}`, `{index}` in them, each a word of an argv that a person can paste.
    pub commands: Vec<String>,
    /// The source of this knowledge: a file of the kernel, a page of AMD's.
    pub source: String,
    #[serde(rename = "pattern")]
    pub patterns: Vec<MessagePattern>,
}

/// A pattern with what shows that it is right. Only [`Self::text`] matters at run time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessagePattern {
    /// `ring {ring} timeout, signaled seq={signaled}, emitted seq={emitted}`
    pub text: Pattern,
    /// The values that some of the holes may have; a line with another value does not match.
    #[serde(default)]
    pub values: BTreeMap<String, Vec<String>>,
    /// Releases whose amdgpu.ko has a format string with these words in this order: `6.1`, `6.12`, `sid`.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// The file with the words, if they are not in amdgpu.ko: `drivers/pci/pcie/aer.c`.
    #[serde(default)]
    pub file: Option<String>,
    /// Whether only the sample shows the words: an older Linux or another program writes them, or several
    /// strings make the line.
    #[serde(default)]
    pub only_logged: bool,
    /// A line that a machine has logged.
    pub sample: String,
    /// The sample's source: an address, or a capture's name.
    pub sample_from: String,
    /// A line that resembles it and must not match.
    pub not: String,
}

/// Every message, ready for a search.
#[derive(Debug)]
pub struct Knowledge {
    messages: Vec<Message>,
    /// The patterns' anchors, each once.
    anchors: AhoCorasick,
    /// For each anchor the patterns that have it, in the file's order.
    patterns_of: Vec<Vec<Place>>,
}

/// A pattern's message, and which of its patterns: in the file's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    message: usize,
    pattern: usize,
}

/// A message that a line has.
#[derive(Debug)]
pub struct Found<'k> {
    pub message: &'k Message,
    pub pattern: &'k MessagePattern,
    /// The device that the message is about, as far as the driver's own words name it.
    pub device: Option<PciAddress>,
    /// The values in the pattern's holes, in their order: `("ring", "gfx_0.0.0")`.
    pub values: Vec<(&'k str, String)>,
}

impl Found<'_> {
    /// Vendor and device, where the line has them in place of an address: `1002:67df`. Several cards may have them.
    #[must_use]
    pub fn pci_ids(&self) -> Option<(u16, u16)> {
        let number = |wanted: &str| {
            let (_, value) = self.values.iter().find(|(name, _)| *name == wanted)?;
            u16::from_str_radix(value, 16).ok()
        };
        Some((number("vendor")?, number("device")?))
    }
}

/// A text that is no such file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}, line {line}: {problem}")]
pub struct Error {
    pub name: String,
    pub line: usize,
    pub problem: String,
}

impl Knowledge {
    /// The knowledge of messages.toml, which a program parses once: that takes megabytes for a moment.
    ///
    /// # Errors
    /// None in practice: a test parses that text, too.
    pub fn built_in() -> Result<&'static Self, &'static Error> {
        static PARSED: LazyLock<Result<Knowledge, Error>> =
            LazyLock::new(|| Knowledge::parse("messages.toml", BUILT_IN));
        PARSED.as_ref()
    }

    /// `name`: what an error calls the text.
    ///
    /// # Errors
    /// The text is no TOML, or has unknown keys, an id that is none or stands twice, or a pattern that is none.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(rename = "message", default)]
            messages: Vec<Spanned<Message>>,
        }
        let failed = |at: usize, problem: String| {
            let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
            Error { name: name.to_owned(), line, problem }
        };
        let mut messages = Vec::new();
        // Messages are parsed one at a time: the daemon would keep the megabytes that a table of the whole
        // file takes.
        for (begins, text) in tables(text) {
            let File { messages: found } = toml::from_str(text).map_err(|error| {
                let at = error.span().map_or(0, |span| span.start);
                failed(begins + at, error.message().replace('\n', " "))
            })?;
            messages.extend(found.into_iter().map(|it| (begins + it.span().start, it.into_inner())));
        }
        let mut ids = BTreeSet::new();
        for (at, Message { id, patterns, .. }) in &messages {
            let at = *at;
            if !is_kebab_case(id) {
                return Err(failed(at, format!("the id {id:?} is not like ring-timeout")));
            }
            if !ids.insert(id) {
                return Err(failed(at, format!("the id {id} stands twice")));
            }
            if patterns.is_empty() {
                return Err(failed(at, format!("{id} has no pattern")));
            }
        }
        for (at, message) in &messages {
            let unknown = message.ends.iter().find_map(|ended| match ended {
                Ended::Message(id) if !ids.contains(id) => Some(id),
                _ => None,
            });
            if let Some(id) = unknown {
                let problem = format!("{} ends {id:?}, which is no class and no id", message.id);
                return Err(failed(*at, problem));
            }
        }
        let messages = messages.into_iter().map(|(_, message)| message).collect();
        Self::new(messages).map_err(|error| failed(0, error.to_string()))
    }

    fn new(messages: Vec<Message>) -> Result<Self, aho_corasick::BuildError> {
        let mut by_anchor: BTreeMap<&str, Vec<Place>> = BTreeMap::new();
        for (message, Message { patterns, .. }) in messages.iter().enumerate() {
            for (pattern, MessagePattern { text, .. }) in patterns.iter().enumerate() {
                by_anchor.entry(text.anchor()).or_default().push(Place { message, pattern });
            }
        }
        // The daemon keeps it: a DFA is a third quicker and takes 2.5 MB more.
        let anchors =
            AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(by_anchor.keys())?;
        let patterns_of = by_anchor.into_values().collect();
        Ok(Self { messages, anchors, patterns_of })
    }

    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The message that a line of a text has: of several, the first in the file. Without those that only health reads.
    #[must_use]
    pub fn find<'k>(&'k self, line: &[u8]) -> Option<Found<'k>> {
        self.find_any(line).filter(|found| !found.message.silent)
    }

    /// Finds a message as [`Self::find`] does, including those that only health reads.
    #[must_use]
    pub fn find_any<'k>(&'k self, line: &[u8]) -> Option<Found<'k>> {
        self.find_from(&Origin::of_line(line))
    }

    /// The message that a record has, as [`Self::find_any`]: of several, the first in the file.
    #[must_use]
    pub fn find_from<'k>(&'k self, origin: &Origin<'_>) -> Option<Found<'k>> {
        let mut found: Option<(Place, Found<'k>)> = None;
        let mut tried = BTreeSet::new();
        for anchor in self.anchors.find_overlapping_iter(origin.text).map(|hit| hit.pattern().as_usize()) {
            if !tried.insert(anchor) {
                continue;
            }
            for place in self.patterns_of.get(anchor)? {
                if found.as_ref().is_none_or(|(first, _)| place < first)
                    && let Some(it) = self.find_at(*place, origin)
                {
                    found = Some((*place, it));
                }
            }
        }
        found.map(|(_, found)| found)
    }

    /// The first place of words that every line with a message must have.
    pub(crate) fn next_anchor(&self, text: &[u8]) -> Option<Range<usize>> {
        self.anchors.find(text).map(|hit| hit.range())
    }

    /// Whether a line has a message's words in their order, whatever stands in front of them.
    pub(crate) fn has_words(&self, line: &[u8]) -> bool {
        let line = line.get(..MOST_SEARCHED).unwrap_or(line);
        let mut tried = BTreeSet::new();
        let anchors = self.anchors.find_overlapping_iter(line).map(|hit| hit.pattern().as_usize());
        let places = anchors
            .filter(|anchor| tried.insert(*anchor))
            .filter_map(|anchor| self.patterns_of.get(anchor))
            .flatten();
        places
            .filter_map(|place| {
                let message = self.messages.get(place.message).filter(|message| !message.silent)?;
                message.patterns.get(place.pattern)
            })
            .any(|pattern| {
                let values = |start| pattern.text.find(line, start);
                let mut found = pattern.text.may_begin(line).take(MOST_TRIED).filter_map(values);
                found.any(|values| pattern.is_asked(&values))
            })
    }

    fn find_at(&self, place: Place, origin: &Origin<'_>) -> Option<Found<'_>> {
        let message = self.messages.get(place.message)?;
        let pattern = message.patterns.get(place.pattern)?;
        if !pattern.is_of(origin.speaker, &message.source) {
            return None;
        }
        let values = origin.starts.iter().find_map(|start| pattern.text.find(origin.text, *start))?;
        if !pattern.is_asked(&values) {
            return None;
        }
        let device = pattern.device(origin, &values);
        let found = Found { message, pattern, device, values };
        // PCI ids in place of a name that a user chose.
        let has_ids = found.values.iter().any(|(name, _)| *name == "vendor");
        (!has_ids || found.pci_ids().is_some()).then_some(found)
    }
}

impl MessagePattern {
    /// Whether the values are ones that the pattern allows in its holes.
    fn is_asked(&self, values: &[(&str, String)]) -> bool {
        values.iter().all(|(name, value)| self.values.get(*name).is_none_or(|wanted| wanted.contains(value)))
    }

    /// Whether the speaker can be the source of such a message: another vendor's driver says none of
    /// amdgpu's, and only the firmware says what drivers/firmware prints.
    fn is_of(&self, speaker: Speaker, source: &str) -> bool {
        let file = self.file.as_deref().unwrap_or(source);
        let is_in = |places: &[&str]| places.iter().any(|place| file.starts_with(place));
        match speaker {
            Speaker::Amdgpu | Speaker::Copied => true,
            Speaker::OtherDevice => is_in(&["drivers/pci/"]) || self.kernels.is_empty() && file.is_empty(),
            Speaker::Firmware => is_in(&["drivers/firmware/"]),
            Speaker::Other => {
                self.kernels.is_empty()
                    && !is_in(&["drivers/gpu/", "drivers/pci/", "drivers/firmware/", "drivers/base/"])
            }
            Speaker::OtherVendor | Speaker::User => false,
        }
    }

    /// The device from which a port says that an error came, else that of the prefix, else the one that the message names.
    fn device(&self, origin: &Origin<'_>, values: &[(&str, String)]) -> Option<PciAddress> {
        let is_of_bus = self.file.as_deref().is_some_and(|file| file.starts_with("drivers/pci/"));
        let sent_by = if is_of_bus && origin.device.is_some() { origin.sent_by() } else { None };
        let value = |hole| values.iter().find(|(name, _)| *name == hole).map(|(_, value)| value.as_str());
        // drivers/firmware/efi/cper.c
        let whole = || {
            Some(format!(
                "{}:{}:{}.{}",
                value("domain")?,
                value("bus")?,
                value("device")?,
                value("function")?
            ))
        };
        let named = || origin::parsed(whole().as_deref().or(value("device"))?.as_bytes());
        sent_by.or(origin.device).or_else(named)
    }
}

/// The text from one `[[message]]` to the next, and where it begins.
fn tables(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let heads = || text.match_indices("\n[[message]]\n").map(|(at, _)| at + 1);
    let ends = heads().chain([text.len()]);
    [0].into_iter()
        .chain(heads())
        .zip(ends)
        .filter_map(|(begins, end)| Some((begins, text.get(begins..end)?)))
}

fn is_kebab_case(id: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    id.split('-').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, patterns: &[&str]) -> String {
        let patterns = patterns.iter().map(|text| {
            format!("[[message.pattern]]\ntext = {text:?}\nsample = ''\nsample_from = ''\nnot = ''\n")
        });
        format!(
            "[[message]]\nid = {id:?}\nclass = 'hang'\nseverity = 'critical'\nblame = 'unknown'\n\
             confidence = 'high'\ndrain = true\nreset = true\nmeans = ''\nnow = []\nlater = []\ncommands = []\n\
             source = ''\n{}",
            patterns.collect::<String>()
        )
    }

    fn knowledge(messages: &[(&str, &[&str])]) -> Knowledge {
        let text: String = messages.iter().map(|(id, patterns)| message(id, patterns)).collect();
        Knowledge::parse("test.toml", &text).unwrap()
    }

    #[test]
    fn the_first_message_of_the_file_that_a_line_has_is_found() {
        let knowledge = knowledge(&[
            ("soft-recovered", &["ring {ring} timeout, but soft recovered"]),
            ("timeout", &["another ring is in a timeout", "ring {ring} timeout, {rest}"]),
            ("begin", &["GPU reset begin!", "GPU reset begin! of {what}", "reset begin of some GPUs"]),
            ("also-timeout", &["ring {ring} timeout, but soft recovered"]),
        ]);
        for (line, expected) in [
            ("ring gfx timeout, but soft recovered", Some(("soft-recovered", "ring gfx"))),
            ("[drm] *ERROR* ring gfx timeout, but soft recovered", Some(("soft-recovered", "ring gfx"))),
            ("amdgpu: ring gfx timeout, signaled", Some(("timeout", "ring gfx rest signaled"))),
            ("ring gfx timeout, GPU reset begin! of it", Some(("timeout", "ring gfx rest GPU"))),
            ("GPU reset begin! of it; ring gfx timeout, but soft recovered", Some(("begin", ""))),
            ("the ring gfx timeout, but soft recovered", None),
            ("GPU reset began", None),
            ("", None),
        ] {
            let found = knowledge.find(line.as_bytes()).map(|found| {
                let values: Vec<_> =
                    found.values.iter().flat_map(|(name, value)| [*name, value.as_str()]).collect();
                (found.message.id.as_str(), values.join(" "))
            });
            let expected = expected.map(|(id, values)| (id, values.to_owned()));
            assert_eq!(found, expected, "{line}");
        }
        assert!(super::Knowledge::parse("", "").unwrap().find(b"GPU reset begin!").is_none());
    }

    #[test]
    fn what_is_built_in_is_read() {
        let knowledge = Knowledge::built_in().unwrap();
        assert!(!knowledge.messages().is_empty());
        for message in knowledge.messages() {
            for pattern in &message.patterns {
                assert!(knowledge.find_any(pattern.sample.as_bytes()).is_some(), "{}", pattern.sample);
            }
        }
    }

    #[test]
    fn a_fault_is_named_with_its_line() {
        let good = message("one", &["GPU reset begin!"]);
        let lines = good.lines().count();
        let words = "GPU reset begin!";
        for (text, line, problem) in [
            ("[[message]".to_owned(), 1, "unclosed array table, expected `]`"),
            ("\n\nfacts = 1\n".to_owned(), 3, "unknown field `facts`, expected `message`"),
            (format!("{good}{good}"), lines + 1, "the id one stands twice"),
            (message("One", &[words]), 1, r#"the id "One" is not like ring-timeout"#),
            (message("one-", &[words]), 1, r#"the id "one-" is not like ring-timeout"#),
            (message("", &[words]), 1, r#"the id "" is not like ring-timeout"#),
            (message("one", &[]), 1, "missing field `pattern`"),
            (message("one", &[]) + "pattern = []\n", 1, "one has no pattern"),
            (good.replace("'hang'", "'tired'"), 3, "unknown variant `tired`, expected one of `memory-uncorr"),
            (good.replace("drain = true", "drain = 1"), 7, "invalid type: integer `1`, expected a boolean"),
            (good.replace("drain = true\n", ""), 1, "missing field `drain`"),
            (good.replace("drain", "drian"), 7, "unknown field `drian`, expected one of `id`, "),
            (good.replace("not = ''", "no = ''"), lines, "unknown field `no`, expected one of `text`, "),
            (
                message("one", &[words, "GPU reset {begin"]),
                20,
                r#"the pattern "GPU reset {begin" has a brace without its other one"#,
            ),
        ] {
            let error = Knowledge::parse("test.toml", &text).unwrap_err();
            let shown = error.to_string();
            assert_eq!(error.line, line, "{shown}\n{text}");
            assert!(shown.starts_with(&format!("test.toml, line {line}: {problem}")), "{shown}");
            assert!(!shown.contains('\n'), "{shown:?}");
        }
    }
}
