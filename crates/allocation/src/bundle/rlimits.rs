//! `process.rlimits`: how much memory a process may lock.

use std::borrow::Cow;

use super::{
    Doubt, Error,
    entries::{self, spelt},
    places::Key,
};
use crate::{
    json::{Container, Fault, Scanner, Span, keyed},
    splice::{Brackets, Place, Splices},
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
    let (mut list, mut doubt) = (Place::Absent, Doubt::default());
    let key = Key(prefix, "rlimits");
    Scanner::at(text, process.span.start).object(|scanner, name| {
        if name.names("rlimits") {
            doubt.whole(scanner, key, Brackets::Array, &mut list)
        } else {
            scanner.pass().map(drop)
        }
    })?;
    if let Some(error) = doubt.0 {
        return Err(error);
    }
    let present: Vec<Rlimit<'_>> = entries::read(text, list, &key.to_string())?;
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
    Ok(splices.extend(list, Brackets::Array, missing))
}
