//! What `cat`, `ls` and `dd` say of a path that they cannot read, in the C locale: `cat: /x: Invalid argument`,
//! busybox's `cat: can't open '/x': Permission denied`, and of uutils `cat: /x: Invalid argument (os error 22)`.

use std::collections::BTreeMap;

use nix::errno::Errno;
use printable::printable;
use root::files::Content;

/// strerror(3) of glibc and, where it is another, of musl, whose words busybox has on Alpine.
const WORDS: [(&str, Errno); 35] = [
    ("Invalid argument", Errno::EINVAL),
    ("Input/output error", Errno::EIO),
    ("I/O error", Errno::EIO),
    ("No data available", Errno::ENODATA),
    ("Operation not permitted", Errno::EPERM),
    ("Permission denied", Errno::EACCES),
    ("Device or resource busy", Errno::EBUSY),
    ("Resource busy", Errno::EBUSY),
    ("No such device", Errno::ENODEV),
    ("No such device or address", Errno::ENXIO),
    ("Operation not supported", Errno::EOPNOTSUPP),
    ("Not supported", Errno::EOPNOTSUPP),
    ("Connection timed out", Errno::ETIMEDOUT),
    ("Operation timed out", Errno::ETIMEDOUT),
    ("No such file or directory", Errno::ENOENT),
    ("Resource temporarily unavailable", Errno::EAGAIN),
    ("Not a directory", Errno::ENOTDIR),
    ("Is a directory", Errno::EISDIR),
    ("Cannot allocate memory", Errno::ENOMEM),
    ("Out of memory", Errno::ENOMEM),
    ("Too many levels of symbolic links", Errno::ELOOP),
    ("Symbolic link loop", Errno::ELOOP),
    ("File name too long", Errno::ENAMETOOLONG),
    ("Filename too long", Errno::ENAMETOOLONG),
    ("No such process", Errno::ESRCH),
    ("Broken pipe", Errno::EPIPE),
    ("Interrupted system call", Errno::EINTR),
    ("Function not implemented", Errno::ENOSYS),
    ("Stale file handle", Errno::ESTALE),
    ("Numerical result out of range", Errno::ERANGE),
    ("Result not representable", Errno::ERANGE),
    // amdgpu answers so where the card's SMU does not.
    ("Timer expired", Errno::ETIME),
    ("Device timeout", Errno::ETIME),
    ("Remote I/O error", Errno::EREMOTEIO),
    ("Transport endpoint is not connected", Errno::ENOTCONN),
];

/// What programs such as `ls` and `cat` printed on stderr about the paths that they were asked for.
#[derive(Debug, Default)]
pub(super) struct Messages<'s> {
    /// Each asked path that a line names, and the error words behind it.
    pub(super) by_path: Vec<(&'s [u8], &'s [u8])>,
    /// The last line that names no asked path.
    pub(super) others: &'s [u8],
}

/// Assigns error lines to the paths that the program was asked for. `prefix` precedes each path in `stderr`.
pub(super) fn by_path<'s>(asked: &[&'s [u8]], prefix: &[u8], stderr: &'s [u8]) -> Messages<'s> {
    let known: BTreeMap<&[u8], &'s [u8]> = asked.iter().map(|path| (*path, *path)).collect();
    let mut all = Messages::default();
    for line in super::lines(stderr) {
        match named(line, prefix).and_then(|(path, words)| Some((*known.get(path)?, words))) {
            Some(found) => all.by_path.push(found),
            None => all.others = line,
        }
    }
    all
}

/// The path that a line is about, and the words behind it.
fn named<'s>(line: &'s [u8], prefix: &[u8]) -> Option<(&'s [u8], &'s [u8])> {
    // A program may name itself by its path.
    let line = line.get(memchr::memmem::find(line, b": ")? + 2..)?;
    let colon = memchr::memmem::rfind(line, b": ")?;
    let (before, words) = (line.get(..colon)?, line.get(colon + 2..)?);
    // From the first slash on it is the path, in quotes perhaps.
    let slash = before.iter().position(|byte| *byte == b'/')?;
    let path = before.get(slash..)?;
    let quote = slash.checked_sub(1).and_then(|at| before.get(at)).filter(|it| matches!(it, b'\'' | b'"'));
    let path = match quote {
        Some(quote) => path.strip_suffix(&[*quote])?,
        None => path,
    };
    Some((path.strip_prefix(prefix)?, words))
}

/// The errno that the words of a message mean, or the words themselves where no table knows them.
pub(super) fn content(message: &[u8]) -> Content {
    let message = String::from_utf8_lossy(message);
    let words = message.rsplit(": ").next().unwrap_or_default().trim();
    // uutils prints the number behind its words.
    let number = words.strip_suffix(')').and_then(|it| it.rsplit_once(" (os error ")?.1.parse().ok());
    let known = WORDS.iter().find(|(known, _)| *known == words).map(|(_, errno)| *errno);
    let known = known.or(number.map(Errno::from_raw).filter(|errno| *errno != Errno::UnknownErrno));
    known.map_or_else(|| Content::Unread(printable(words)), Content::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_programs_words_name_the_path_and_the_error() {
        let asked: [&[u8]; 2] = [b"/sys/0000:05:00.0/x", b"/a: b"];
        for (line, path, errno) in [
            ("cat: '/r/sys/0000:05:00.0/x': Invalid argument", asked[0], Errno::EINVAL),
            ("/usr/bin/cat: /r/sys/0000:05:00.0/x: Invalid argument (os error 22)", asked[0], Errno::EINVAL),
            ("cat: can't open '/r/sys/0000:05:00.0/x': Permission denied", asked[0], Errno::EACCES),
            ("ls: cannot open directory '/r/a: b': I/O error", asked[1], Errno::EIO),
            ("ls: reading directory '/r/a: b': Odd (os error 61)", asked[1], Errno::ENODATA),
            ("cat: '/r/a: b': Timer expired", asked[1], Errno::ETIME),
            ("cat: read error: /r/a: b: Device timeout", asked[1], Errno::ETIME),
            ("cat: '/r/a: b': Remote I/O error", asked[1], Errno::EREMOTEIO),
        ] {
            let messages = by_path(&asked, b"/r", line.as_bytes());
            let (found, words) = messages.by_path.first().copied().unwrap_or_default();
            assert_eq!((found, content(words)), (path, Content::Failed(errno)), "{line}");
        }
        let messages =
            by_path(&asked, b"/r", b"cat: read error: Invalid argument\ncat: /r/b: No such device");
        assert!(messages.by_path.is_empty() && !messages.others.is_empty());
        assert_eq!(content(b"cat: /x: What\x1b?"), Content::Unread("What\\u{1b}?".to_owned()));
    }
}
