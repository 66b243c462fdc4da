//! Why a connection ended.

use std::fmt::{Display, Formatter};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The peer closed the connection between two messages.
    Ended { peer: String },
    /// The peer sent nothing for this long.
    Silent { peer: String, time: Duration },
    /// Memory that was to be sent or filled is not the process's. The connection goes on: the peer got zeroes, or its bytes are
    /// left out.
    Fault,
    /// Anything else, as a sentence that names the peer or the file.
    Failed(String),
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended { peer } => write!(f, "{peer} closed the connection"),
            Self::Silent { peer, time } => write!(f, "{peer} sent nothing for {} s", time.as_secs_f32()),
            Self::Fault => f.write_str("a copy's memory is not the program's"),
            Self::Failed(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for Error {}
