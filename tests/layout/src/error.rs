use std::io;
use std::path::PathBuf;

/// Why a machine could not be laid out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A PCI address is not of the form DDDD:BB:DD.F in hexadecimal digits.
    #[error("{given:?} is no PCI address: write it as 0000:64:00.0")]
    Address {
        /// The refused value.
        given: String,
    },
    /// Two parts of the machine claim one PCI address, one minor or one file.
    #[error("{path} is laid out twice: two GPUs of the machine claim it")]
    Twice {
        /// The path inside the machine.
        path: String,
    },
    /// A path that leaves the machine, or that goes through more links than a kernel would follow.
    #[error("{path:?} does not lead to a place inside the machine")]
    Path {
        /// The path as given.
        path: String,
    },
    /// Minors are made by a driver.
    #[error("the GPU at {address} has a DRM minor and no driver: bind one, or leave the minor out")]
    MinorWithoutDriver {
        /// The PCI address.
        address: String,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {cause}", path.display())]
    Io {
        /// What was attempted, as a verb: "write", "make the device node".
        action: &'static str,
        /// The path on this machine, not inside the one laid out.
        path: PathBuf,
        /// The kernel's answer.
        cause: io::Error,
    },
}
