//! The calls that need nothing of the wrapper but the name of the runtime: nearly all.
//!
//! A container that asks for nothing pays for the wrapper all the same, at its create, start, kill and delete.
//! [`glance`] looks at no more than tells that such a call is one, with the kernel's calls alone, so that it
//! works before the C library has started. It never writes, never warns, never fails: where anything at all
//! is out of the ordinary it gives no answer, and [`crate::wrap::wrap`] begins from the beginning. What it
//! does answer is what `wrap` would have; the tests of `wrap` ask it first and compare.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use allocation::policy::{Default, Policy};

use crate::args::{self, Call, Command, Reading};
use crate::environment::Environment;
use crate::paths::Paths;
use crate::store::{Key, valid_id};
use crate::sys::{self, Errno, Fd, Stat, flag};
use crate::wrap::Verdict;
use crate::{policy_file, runtime, scan};

/// Read at once. A bundle is looked through piece by piece: each further page of memory that a process
/// touches costs more than another call.
const PIECE: usize = 8 * 1024;

/// What [`glance`] has read that [`crate::wrap::wrap`] would read again.
#[derive(Debug, Default)]
pub struct Seen<'a> {
    /// What the command line means, where that is certain.
    pub call: Option<Call<'a>>,
    /// A policy of root's that can be kept.
    pub policy: Option<Policy>,
    /// Of a create or run: its bundle, a regular file, in which a request may stand.
    pub bundle: Option<(Fd, Stat)>,
}

/// What `wrap` will answer, if it will neither write nor say anything; `None` where that is not certain. Then `seen` is
/// for `wrap`.
///
/// The environment's `effective_user` does not matter. `paths.own` is the name under which this program was
/// executed. Where it does not stand there any more there is no answer, or, behind an update at this very
/// moment, one more round through a wrapper, which counts the rounds.
pub fn glance<'a>(
    arguments: &[&'a [u8]],
    environment: &Environment<'_>,
    paths: &Paths,
    seen: &mut Seen<'a>,
) -> Option<Verdict> {
    let depth = runtime::next_depth(environment.get(runtime::DEPTH)).ok()?;
    let Reading::Certain(call) = args::read(arguments) else { return None };
    seen.call = Some(call);
    let policy = policy(&paths.policy, paths.owner)?;
    let policys_runtime = match (policy, call.command) {
        (None, Command::Create { .. } | Command::Run { .. }) => None,
        (Some(text), Command::Create { bundle, id } | Command::Run { bundle, id }) => {
            let policy = seen.policy.insert(Policy::parse(&text).ok()?);
            let starts_plain = policy.folders.is_empty()
                && (policy.says_nothing()
                    || policy.default == Default::None
                        && asks_for_nothing(bundle, &mut seen.bundle)?
                        && has_no_record(call.global.root, id, paths)?);
            if !starts_plain {
                return None;
            }
            seen.policy.take().and_then(|policy| policy.runtime).map(PathBuf::from)
        }
        (policy, command) => {
            // What a container was given stays its own, also once the policy is gone.
            if let Command::Exec { process: Some(_), id } | Command::Delete { id, .. } = command
                && !has_no_record(call.global.root, id, paths)?
            {
                return None;
            }
            let named = match &policy {
                Some(text) => allocation::glance::runtime(text)?,
                None => None,
            };
            // A relative one makes the whole policy unusable, and with that it names none.
            named.filter(|path| path.starts_with('/')).map(PathBuf::from)
        }
    };
    let own = runtime::stat(&paths.own)?;
    let runtime = match policys_runtime {
        Some(path) => runtime::named(&path, Some(own)),
        None => runtime::on_path(environment.get("PATH"), Some(own)),
    };
    Some(Verdict::Run { runtime: runtime.ok()?, depth })
}

/// The policy's text: inner `None` where there is no policy.
fn policy(path: &Path, owner: u32) -> Option<Option<String>> {
    let file = match sys::open(&c_string(path)?, flag::NOFOLLOW | flag::NONBLOCK, 0) {
        Ok(file) => file,
        Err(Errno::NOT_FOUND) => return Some(None),
        Err(_) => return None,
    };
    let found = sys::stat_of(&file).ok()?;
    let roots_alone = found.is_regular() && found.uid == owner && found.mode & 0o022 == 0;
    if !roots_alone || found.size > policy_file::LIMIT {
        return None;
    }
    let size = usize::try_from(found.size).ok()?;
    let mut text = Vec::with_capacity(size + 1);
    // Shorter or longer than it was a moment ago: somebody writes it just now.
    let whole = sys::read(&file, &mut text, size + 1).ok()? == size;
    if whole { String::from_utf8(text).ok().map(Some) } else { None }
}

/// Whether the bundle is a regular file in which no request can stand. One in which one can is `seen`.
fn asks_for_nothing(bundle: Option<&[u8]>, seen: &mut Option<(Fd, Stat)>) -> Option<bool> {
    // Behind a piece's end the begin of a variable's name may go on.
    const OVERLAP: usize = 3;
    // `Path::join` is on a page that nothing else here needs.
    let path = match bundle {
        None | Some(b"") => c_path(&[b"config.json"])?,
        Some(bundle) => c_path(&[bundle, b"/config.json"])?,
    };
    let file = sys::open(&path, flag::NOFOLLOW | flag::NONBLOCK, 0).ok()?;
    let found = sys::stat_of(&file).ok()?;
    if !found.is_regular() || found.size > crate::config::LIMIT {
        return None;
    }
    let mut piece = Vec::with_capacity(PIECE + OVERLAP);
    let mut left = found.size;
    while left > 0 {
        let read = sys::read(&file, &mut piece, PIECE).ok()?;
        left = left.checked_sub(u64::try_from(read).ok()?)?;
        if scan::mentions(&piece) {
            *seen = Some((file, found));
            return Some(false);
        }
        if read == 0 {
            return Some(false);
        }
        piece.drain(..piece.len().saturating_sub(OVERLAP));
    }
    Some(true)
}

/// Whether nothing is kept of what this container was given. `None` where its key is not plain to see.
fn has_no_record(root: Option<&[u8]>, id: &[u8], paths: &Paths) -> Option<bool> {
    let root = root.filter(|root| is_clean(root))?;
    let root = Path::new(std::ffi::OsStr::from_bytes(root));
    let name = Key { root, id: valid_id(id)? }.file_name();
    let path = c_path(&[paths.run.as_os_str().as_bytes(), b"/records/", name.as_bytes()])?;
    Some(sys::stat_no_follow(&path).err() == Some(Errno::NOT_FOUND))
}

/// Whether a path is absolute and says what it means: no `.`, no `..`, no doubled slash.
pub(crate) fn is_clean(path: &[u8]) -> bool {
    let (Some(b'/'), false) = (path.first(), path.ends_with(b"/")) else { return false };
    !path.windows(2).any(|pair| matches!(pair, [b'/', b'/' | b'.']))
}

fn c_string(path: &Path) -> Option<CString> {
    c_path(&[path.as_os_str().as_bytes()])
}

fn c_path(pieces: &[&[u8]]) -> Option<CString> {
    let mut path = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum::<usize>() + 1);
    pieces.iter().for_each(|piece| path.extend_from_slice(piece));
    CString::new(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_seen_wherever_the_pieces_of_a_bundle_end() {
        let place = tempfile::tempdir().unwrap();
        let bundle = Some(place.path().as_os_str().as_bytes());
        for request in ["AMD_GPU_COUNT=1", r"\u0041MD_"] {
            for before in (PIECE - 20..PIECE + 20).chain([0, 2 * PIECE, 5 * PIECE - 2]) {
                let mut text = "x".repeat(before);
                std::fs::write(place.path().join("config.json"), &text).unwrap();
                let mut seen = None;
                assert_eq!(asks_for_nothing(bundle, &mut seen), Some(true), "{before}");
                assert!(seen.is_none());
                text.push_str(request);
                text.push_str(&"y".repeat(3 * PIECE));
                std::fs::write(place.path().join("config.json"), &text).unwrap();
                assert_eq!(asks_for_nothing(bundle, &mut seen), Some(false), "{request} behind {before}");
                assert!(seen.is_some());
            }
        }
    }

    #[test]
    fn only_a_path_that_runc_would_not_change_names_a_record() {
        for (path, expected) in [
            ("/run/runc", true),
            ("/", false),
            ("/run/runc/", false),
            ("/run//runc", false),
            ("/run/./runc", false),
            ("/run/../runc", false),
            ("run/runc", false),
            ("", false),
        ] {
            assert_eq!(is_clean(path.as_bytes()), expected, "{path}");
        }
    }
}
