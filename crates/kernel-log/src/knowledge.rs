//! The messages that are known, as knowledge/messages.toml says them.

use amdgpu::Address;
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;

/// knowledge/messages.toml.
pub const BUILT_IN: &str = include_str!("../knowledge/messages.toml");

/// What a message is about.
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warning,
    Critical,
}

/// Who causes such a message, as far as the message alone tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    Application,
    Driver,
    Hardware,
    Unknown,
}

/// How sure it is that the message means what [`Message::means`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// One thing that the kernel says, in all the words that its versions have for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// `ring-timeout`: unique, lower case, with hyphens.
    pub id: String,
    pub class: Class,
    pub severity: Severity,
    pub blame: Blame,
    pub confidence: Confidence,
    /// Whether no new work should come to this GPU.
    pub drain: bool,
    /// Whether a reset of the GPU follows, or is what helps: then who explains says what it takes down.
    pub reset: bool,
    /// One or two sentences.
    pub means: String,
    /// What to do at once.
    pub now: Vec<String>,
    /// What to do afterwards.
    pub later: Vec<String>,
    /// Commands with `{pci}`, `{render}`, `{index}` in them, each a word of an argv that a person can paste.
    pub commands: Vec<String>,
    /// Where that is known from: a file of the kernel, a page of AMD's.
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
    /// Releases whose amdgpu.ko has a format string with these words in this order: `6.1`, `6.12`, `sid`.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// Where the words are, if not in amdgpu.ko: `drivers/pci/pcie/aer.c`.
    #[serde(default)]
    pub file: Option<String>,
    /// A line that a machine has logged.
    pub sample: String,
    /// Where the sample is from: an address, or a capture's name.
    pub sample_from: String,
    /// A line that resembles it and must not match.
    pub not: String,
}

/// All messages, ready to be searched for.
#[derive(Debug)]
pub struct Knowledge {
    messages: Vec<Message>,
}

/// A message that a line has.
#[derive(Debug)]
pub struct Found<'k> {
    pub message: &'k Message,
    pub pattern: &'k MessagePattern,
    /// As the line says it.
    pub device: Option<Address>,
    /// What stands in the pattern's holes, in their order: `("ring", "gfx_0.0.0")`.
    pub values: Vec<(&'k str, String)>,
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
    /// The built-in one.
    ///
    /// # Errors
    /// None that can be met: a test reads the same text.
    pub fn built_in() -> Result<Self, Error> {
        Self::parse("messages.toml", BUILT_IN)
    }

    /// `name`: what an error calls the text.
    ///
    /// # Errors
    /// The text is no TOML, or has unknown keys, two messages of one id, or a pattern that is none.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(rename = "message", default)]
            messages: Vec<Message>,
        }
        let File { messages } = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
            Error { name: name.to_owned(), line, problem: error.message().to_owned() }
        })?;
        Ok(Self { messages })
    }

    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The message that a line has: of several, the first in the file.
    #[must_use]
    pub fn find<'k>(&'k self, line: &[u8]) -> Option<Found<'k>> {
        self.messages.iter().find_map(|message| {
            message.patterns.iter().find_map(|pattern| {
                let values = pattern.text.find(line)?;
                Some(Found { message, pattern, device: device(line), values })
            })
        })
    }
}

/// The first PCI address of a line.
fn device(line: &[u8]) -> Option<Address> {
    let text = std::str::from_utf8(line).ok()?;
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '[' | ']' | '(' | ')' | ',' | '='));
    words.filter_map(|word| word.trim_end_matches(':').parse().ok()).next()
}
