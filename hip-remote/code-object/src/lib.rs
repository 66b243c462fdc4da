//! What a program's fat binaries hold: the code object for a GPU, its kernels and their arguments. No I/O.
//!
//! An [`image`] is what a program gives to `__hipRegisterFatBinary` or `hipModuleLoadData`: a code object, a
//! bundle of them, or a compressed bundle. Sources: LLVM's AMDGPUUsage and ClangOffloadBundler.

mod bundle;
mod bytes;
mod compressed;
mod elf;
pub mod image;
pub mod kernel;
mod msgpack;
mod target;

/// An image that no kernel can be had from, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// `hipErrorInvalidImage`.
    Malformed(String),
    /// `hipErrorNoBinaryForGpu`.
    NoCodeFor { target: String, offered: Vec<String> },
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(why) => f.write_str(why),
            Self::NoCodeFor { target, offered } if offered.is_empty() => {
                write!(f, "the program has no code for any AMD GPU: build it with --offload-arch={target}")
            }
            Self::NoCodeFor { target, offered } => {
                let offered = offered.join(", ");
                write!(f, "the program has code for {offered}: build it with --offload-arch={target}")
            }
        }
    }
}

impl std::error::Error for Refused {}

fn malformed(why: impl Into<String>) -> Refused {
    Refused::Malformed(why.into())
}
