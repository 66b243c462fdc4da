//! `process.rlimits`: how much memory a process may lock.

use std::borrow::Cow;

use super::{entries, places::find};
use crate::{
    Error,
    json::{Container, Fault, Scanner, Span, keyed, spelt},
    splice::{ARRAY, Splices},
};

const MEMLOCK: &str = "RLIMIT_MEMLOCK";

#[derive(Debug, Default)]
struct Rlimit<'a> {
    kind: Cow<'a, str>,
    /// Hard and soft, each with its place.
    limits: [Option<(u64, Span)>; 2],
}

keyed!(Rlimit<'a>, required ["type", "hard", "soft"], |rlimit, scanner| {
    "type" => rlimit.kind = scanner.text()?,
    "hard" => rlimit.limits[0] = Some(limit(scanner)?),
    "soft" => rlimit.limits[1] = Some(limit(scanner)?),
}, |_rlimit, key| spelt::<Self>(key));

fn limit(scanner: &mut Scanner<'_>) -> Result<(u64, Span), Fault> {
    scanner.peek()?;
    let start = scanner.offset();
    let limit = scanner.integer()?;
    Ok((limit, Span { start, end: scanner.offset() }))
}

/// Raises the limits on locked memory that are lower than this many bytes. Returned is the whole list if the
/// process has none.
pub(super) fn extend(
    text: &str,
    process: Container,
    memlock_bytes: u64,
    splices: &mut Splices,
    prefix: &'static str,
) -> Result<Option<String>, Error> {
    let list = find(text, process, prefix, "rlimits")?;
    let present: Vec<Rlimit<'_>> = entries::read(text, list, &[prefix, "rlimits"].concat())?;
    let bytes = memlock_bytes.to_string();
    let mut missing = ["{\"type\":\"", MEMLOCK, "\",\"hard\":", &bytes, ",\"soft\":", &bytes, "}"].concat();
    for rlimit in present.iter().filter(|rlimit| rlimit.kind == MEMLOCK) {
        missing.clear();
        for (limit, span) in rlimit.limits.iter().flatten() {
            if *limit < memlock_bytes {
                splices.replace(*span, bytes.clone());
            }
        }
    }
    Ok(splices.extend(list, ARRAY, missing))
}
