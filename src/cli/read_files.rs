use std::io::stdin;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use root::Root;

use super::Outcome;
use crate::reader;

/// Reads what the program at the other end of stdin, a socket, asks for.
pub(crate) fn run(root: &Path) -> anyhow::Result<Outcome> {
    close_inherited()?;
    let mut stream = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
    reader::serve(&Root::open(root)?, &mut stream)?;
    Ok(Outcome::Done)
}

/// A read that hangs must not hold open what the caller of the program waits for: a pipe, a lock.
fn close_inherited() -> anyhow::Result<()> {
    let names = Root::open(Path::new("/"))?.list(Path::new("/proc/self/fd"))?;
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok());
    // The listing's own descriptor is closed by now.
    for number in numbers.filter(|number| *number > 2) {
        nix::unistd::close(number).ok();
    }
    Ok(())
}
