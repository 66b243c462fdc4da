use std::io::stdin;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use root::Root;

use super::Outcome;
use crate::reader;

/// Reads what the program at the other end of stdin, a socket, asks for.
pub(crate) fn run(root: &Path) -> anyhow::Result<Outcome> {
    let mut stream = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
    reader::serve(&Root::open(root)?, &mut stream)?;
    Ok(Outcome::Done)
}
