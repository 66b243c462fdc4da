//! What the program and its reading process write to each other. Both are of one build, so that no version is needed.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use root::{Amount, Error, Failure};

/// The most bytes in a frame: more than any path, or any file that is read this way, has.
const LONGEST: u32 = 1 << 30;

/// The actions that an error of [`root::Root::read`] may name.
const ACTIONS: [&str; 2] = ["read", "open"];

/// Tells the program that asks, before the first request, that the reading process has started.
pub(super) fn say_ready(to: &mut UnixStream) -> io::Result<()> {
    to.write_all(&[0])
}

/// Waits for the byte of [`say_ready`]. The error is `WouldBlock` where it has not come within `patience`.
pub(super) fn wait_until_ready(from: &mut UnixStream, patience: Duration) -> io::Result<()> {
    from.set_read_timeout(Some(patience))?;
    from.read_exact(&mut [0])
}

pub(super) fn ask(to: &mut impl Write, path: &Path, amount: Amount) -> io::Result<()> {
    let (kind, count) = match amount {
        Amount::Whole(limit) => (0, limit),
        Amount::Start(count) => (1, count),
    };
    let mut frame = vec![kind];
    frame.extend(u64::try_from(count).unwrap_or(u64::MAX).to_le_bytes());
    bytes(&mut frame, path.as_os_str().as_bytes())?;
    to.write_all(&frame)
}

/// `None`: the program that asks has closed its socket.
pub(super) fn asked(from: &mut impl Read) -> io::Result<Option<(PathBuf, Amount)>> {
    let mut kind = [0];
    if from.read(&mut kind)? == 0 {
        return Ok(None);
    }
    let mut count = [0; 8];
    from.read_exact(&mut count)?;
    let count = usize::try_from(u64::from_le_bytes(count)).unwrap_or(usize::MAX);
    let path = PathBuf::from(OsString::from_vec(read_bytes(from)?));
    Ok(Some((path, if kind == [0] { Amount::Whole(count) } else { Amount::Start(count) })))
}

pub(super) fn answer(to: &mut impl Write, read: Result<Vec<u8>, Error>) -> io::Result<()> {
    let mut frame = Vec::new();
    match read {
        Ok(read) => {
            frame.push(0);
            bytes(&mut frame, &read)?;
        }
        Err(Error::Io { action, errno, .. }) => {
            match ACTIONS.iter().zip(0..).find(|(it, _)| **it == action) {
                Some((_, number)) => {
                    frame.extend([1, number]);
                    frame.extend((errno as i32).to_le_bytes());
                }
                // The caller meets the error by itself, and knows its sentence.
                None => frame.push(3),
            }
        }
        Err(Error::TooLarge { .. }) => frame.push(2),
        Err(_) => frame.push(3),
    }
    to.write_all(&frame)
}

pub(super) fn answered(from: &mut impl Read) -> io::Result<Result<Vec<u8>, Failure>> {
    let mut kind = [0];
    from.read_exact(&mut kind)?;
    Ok(match kind {
        [0] => Ok(read_bytes(from)?),
        [1] => {
            let (mut action, mut errno) = ([0], [0; 4]);
            from.read_exact(&mut action)?;
            from.read_exact(&mut errno)?;
            let errno = Errno::from_raw(i32::from_le_bytes(errno));
            let action = ACTIONS.get(usize::from(action[0]));
            Err(action.map_or(Failure::Unavailable, |action| Failure::Io(action, errno)))
        }
        [2] => Err(Failure::TooLarge),
        _ => Err(Failure::Unavailable),
    })
}

fn bytes(frame: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= LONGEST);
    frame.extend(length.ok_or(io::ErrorKind::FileTooLarge)?.to_le_bytes());
    frame.extend(bytes);
    Ok(())
}

fn read_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if u32::try_from(bytes.len()) != Ok(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ready_once_it_says_so() {
        let (mut at_program, mut at_process) = UnixStream::pair().unwrap();
        let late = wait_until_ready(&mut at_program, Duration::from_millis(1)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::WouldBlock);
        say_ready(&mut at_process).unwrap();
        wait_until_ready(&mut at_program, Duration::from_secs(60)).unwrap();
        drop(at_process);
        let ended = wait_until_ready(&mut at_program, Duration::from_secs(60)).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_asked_and_answered_arrives() {
        for (path, amount) in [("/sys/a", Amount::Whole(7)), ("/sys/\u{fc}\n", Amount::Start(usize::MAX))] {
            let mut sent = Vec::new();
            ask(&mut sent, Path::new(path), amount).unwrap();
            assert_eq!(asked(&mut &*sent).unwrap(), Some((PathBuf::from(path), amount)));
        }
        assert_eq!(asked(&mut &[][..]).unwrap(), None);
        assert!(asked(&mut &[0, 1][..]).is_err());
        let path = PathBuf::from("/sys/a");
        let io = |action, errno| Error::Io { action, path: path.clone(), errno };
        for (read, expected) in [
            (Ok(Vec::new()), Ok(Vec::new())),
            (Ok(b"1\n".to_vec()), Ok(b"1\n".to_vec())),
            (Err(io("open", Errno::ENOENT)), Err(Failure::Io("open", Errno::ENOENT))),
            (Err(io("read", Errno::EPERM)), Err(Failure::Io("read", Errno::EPERM))),
            (Err(Error::TooLarge { path: path.clone(), limit: 7 }), Err(Failure::TooLarge)),
            (Err(Error::NotText { path: path.clone() }), Err(Failure::Unavailable)),
            (Err(io("list", Errno::EIO)), Err(Failure::Unavailable)),
        ] {
            let mut sent = Vec::new();
            answer(&mut sent, read).unwrap();
            assert_eq!(answered(&mut &*sent).unwrap(), expected);
            assert!(answered(&mut &sent[..sent.len() - 1]).is_err());
        }
        let unknown_action = [1, 9, 5, 0, 0, 0];
        assert_eq!(answered(&mut &unknown_action[..]).unwrap(), Err(Failure::Unavailable));
    }
}
