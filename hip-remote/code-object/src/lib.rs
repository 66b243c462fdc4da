//! What a program's fat binaries hold: the code object for a GPU, its kernels and their arguments. No I/O.
//!
//! An [`image`] is what a program gives to `__hipRegisterFatBinary` or `hipModuleLoadData`: a code object, a
//! bundle of them, or a compressed bundle. Sources: LLVM's AMDGPUUsage and ClangOffloadBundler.

use std::fmt::Write as _;

use foreign_text::is_unsafe_to_show;

mod bundle;
mod bytes;
mod compressed;
pub mod data;
mod elf;
pub mod image;
pub mod kernel;
mod target;

/// An image that no kernel can be had from, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// `hipErrorInvalidImage`.
    Malformed(String),
    /// `hipErrorNoBinaryForGpu`.
    NoCodeFor { target: String, offered: Vec<String> },
}

/// The longest sentence in bytes: names in it are the image's.
const SENTENCE: usize = 900;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sentence = match self {
            Self::Malformed(why) => why.clone(),
            Self::NoCodeFor { target, offered } if offered.is_empty() => {
                format!("the program has no code for any AMD GPU: build it with --offload-arch={target}")
            }
            Self::NoCodeFor { target, offered } => {
                format!(
                    "build the program with --offload-arch={target}: it has code for {}",
                    offered.join(", ")
                )
            }
        };
        // A terminal would execute what stands in an image's names.
        let fit = sentence.chars().map(|c| if is_unsafe_to_show(c) { '\u{fffd}' } else { c });
        let mut length = 0;
        fit.take_while(|c| {
            length += c.len_utf8();
            length <= SENTENCE
        })
        .try_for_each(|c| f.write_char(c))
    }
}

impl std::error::Error for Refused {}

fn malformed(why: impl Into<String>) -> Refused {
    Refused::Malformed(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_fit_for_a_terminal_whatever_an_image_calls_itself() {
        let offered = vec!["gfx90a\x1b[2J\u{202e}".to_owned(), "é".repeat(5000)];
        let sentence = Refused::NoCodeFor { target: "gfx906".to_owned(), offered }.to_string();
        assert!(sentence.starts_with(
            "build the program with --offload-arch=gfx906: it has code for gfx90a\u{fffd}[2J\u{fffd}"
        ));
        assert!(sentence.len() <= SENTENCE && !sentence.chars().any(is_unsafe_to_show), "{sentence:?}");
    }
}
