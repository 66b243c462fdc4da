//! The lines of `ls -ldn` (POSIX, ls): mode, links, owner, group, size or device number, three words of a time, a name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use root::{Kind, Meta};

/// What `ls` printed about a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Link(PathBuf, Meta),
    Other(Meta),
    Nothing,
    /// A link whose target has a line break can write a line on another path.
    Twice,
}

/// What `ls -l` printed for each path, in the order of `asked`. `prefix` precedes each path in the output.
pub(super) fn found(asked: &[&[u8]], prefix: &[u8], output: &[u8]) -> Vec<Found> {
    let mut by_path = std::collections::HashMap::<&[u8], Found>::new();
    let known: std::collections::HashSet<&[u8]> = asked.iter().copied().collect();
    for line in super::lines(output) {
        let Some((meta, rest)) = meta(line) else { continue };
        let Some(name) = rest.strip_prefix(prefix) else { continue };
        let arrow = || memchr::memmem::find(name, b" -> ");
        let (path, target) = match arrow().filter(|_| meta.kind == Kind::Link) {
            // The script asks of no path with an arrow in it.
            Some(at) => (name.get(..at).unwrap_or(name), name.get(at + 4..)),
            None => (name, None),
        };
        let Some(path) = known.get(path) else { continue };
        let found = match target {
            Some(target) => Found::Link(PathBuf::from(OsStr::from_bytes(target)), meta),
            None => Found::Other(meta),
        };
        // The script may ask twice; then the lines are equal.
        let known = by_path.entry(path).or_insert_with(|| found.clone());
        if *known != found {
            *known = Found::Twice;
        }
    }
    asked.iter().map(|path| by_path.get(path).cloned().unwrap_or(Found::Nothing)).collect()
}

/// A line's attributes, and the path with what follows it.
fn meta(line: &[u8]) -> Option<(Meta, &[u8])> {
    // No word before the path has a slash in it.
    let slash = memchr::memmem::find(line, b" /")?;
    let (before, path) = line.split_at_checked(slash + 1)?;
    let before = str::from_utf8(before).ok()?.replace(',', ", ");
    let mut words = before.split_ascii_whitespace();
    let mode = words.next()?;
    let (_links, uid, gid) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let mut len = 0;
    let kind = match mode.bytes().next()? {
        b'-' => Kind::Regular,
        b'd' => Kind::Directory,
        b'l' => Kind::Link,
        b'c' => {
            let major = words.next()?.strip_suffix(',')?.parse().ok()?;
            Kind::Character { major, minor: words.next()?.parse().ok()? }
        }
        _ => Kind::Other,
    };
    if matches!(kind, Kind::Regular | Kind::Directory | Kind::Link) {
        len = words.next()?.parse().ok()?;
    }
    // ls prints the time of change in words, to the minute at best.
    Some((Meta { kind, mode: bits(mode)?, uid, gid, len, modified_s: 0 }, path))
}

/// `rwsr-xr-t` behind the kind; `+` or `.` may follow.
fn bits(mode: &str) -> Option<u32> {
    let mut bits = 0;
    for (place, letter) in (0..9).zip(mode.bytes().skip(1).chain(std::iter::repeat(b'?'))) {
        let special = [0o4000, 0o2000, 0o1000].get(place / 3).copied()?;
        let own = 0o400 >> place;
        bits |= match letter {
            b'-' => 0,
            b'r' | b'w' | b'x' => own,
            b's' | b't' => own | special,
            b'S' | b'T' => special,
            _ => return None,
        };
    }
    Some(bits)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn one(line: &str) -> Option<(Kind, u32, u32, u32, i64, String)> {
        let (meta, path) = meta(line.as_bytes())?;
        Some((meta.kind, meta.mode, meta.uid, meta.gid, meta.len, String::from_utf8_lossy(path).into_owned()))
    }

    #[test]
    fn lines_of_coreutils_and_busybox_are_read() {
        let kfd = Kind::Character { major: 511, minor: 0 };
        for (line, expected) in [
            ("crw-rw---- 1 0 109 511, 0 Nov 23 22:11 /dev/kfd", (kfd, 0o660, 0, 109, 0, "/dev/kfd")),
            (
                "crw-rw----    1 0        109      511,   0 Nov 23  2025 /dev/kfd",
                (kfd, 0o660, 0, 109, 0, "/dev/kfd"),
            ),
            ("crw-rw----+ 1 0 109 511,0 Nov 23 22:11 /dev/kfd", (kfd, 0o660, 0, 109, 0, "/dev/kfd")),
            ("-rwsr-sr-t 1 1000 5 42 Nov  3 22:11 /a b", (Kind::Regular, 0o7755, 1000, 5, 42, "/a b")),
            ("drwxrwsrwT. 2 0 0 4096 2026-11-23 22:11 /d", (Kind::Directory, 0o3776, 0, 0, 4096, "/d")),
            ("srw-rw---- 1 0 0 0 Nov 23 22:11 /run/x", (Kind::Other, 0o660, 0, 0, 0, "/run/x")),
        ] {
            let (kind, mode, uid, gid, len, path) = expected;
            assert_eq!(one(line), Some((kind, mode, uid, gid, len, path.to_owned())), "{line}");
        }
        for line in [
            "",
            "total 0",
            "crw 1 0 0 1 Nov 3 1:1 /x",
            "-rw-r--r-- 1 root root 1 Nov 3 1:1 /x",
            "?--------- /",
        ] {
            assert_eq!(one(line), None, "{line}");
        }
    }

    #[test]
    fn a_link_whose_target_has_a_line_break_forges_no_owner() {
        let output = "lrwxrwxrwx 1 9 9 3 Nov 23 22:11 /r/etc/evil -> x\n\
                    -rw-r--r-- 1 0 0 5 Nov 23 22:11 /r/etc/policy\n\
                    -rw-rw-rw- 1 9 9 5 Nov 23 22:11 /r/etc/policy\n\
                    lrwxrwxrwx 1 0 0 3 Nov 23 22:11 /r/etc/l -> ../a -> b\n\
                    -rw-rw-rw- 1 9 9 5 Nov 23 22:11 /r/etc/unasked\n";
        let asked: [&[u8]; 4] = [b"/etc/evil", b"/etc/policy", b"/etc/l", b"/etc/gone"];
        let found = found(&asked, b"/r", output.as_bytes());
        assert!(matches!(&found[0], Found::Link(target, _) if target.as_os_str() == "x"));
        assert_eq!(found[1], Found::Twice);
        assert!(matches!(&found[2], Found::Link(target, _) if target.as_os_str() == "../a -> b"));
        assert_eq!(found[3], Found::Nothing);
    }
}
