//! Connections between a program's HIP library and a worker, over TCP or a unix socket, plain or by TLS.
//!
//! [`connect`] and [`accept`] give a [`Reader`] and a [`Writer`], which two threads may use at once.

mod address;
mod ask;
mod connect;
mod crypt;
mod error;
mod key;
#[cfg(feature = "make-key")]
mod make_key;
mod reader;
mod refuse;
mod sha256;
mod socket;
mod text;
mod tls;
mod writer;

pub use address::{Address, PORT};
pub use ask::{Unanswered, ask};
pub use connect::{accept, connect};
pub use error::Error;
pub use key::{ClientKey, WorkerKey};
pub use reader::{Message, Reader};
pub use refuse::refuse;
pub use sha256::sha256;
pub use socket::Shutdown;
pub use text::printable;
pub use writer::Writer;

pub type Result<T> = std::result::Result<T, Error>;
