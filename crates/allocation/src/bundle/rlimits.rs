//! `process.rlimits`: how much memory a process may lock.

use super::entries;
use crate::{
    Error,
    object::{ARRAY, Object},
    splice::Splices,
};

const MEMLOCK: &str = "RLIMIT_MEMLOCK";

/// Raises the limits on locked memory that are lower than this many bytes. Returned is the whole list if the
/// process has none.
pub(super) fn extend(
    text: &str,
    process: &Object<'_>,
    memlock_bytes: u64,
    splices: &mut Splices<'_>,
    prefix: &str,
) -> Result<Option<String>, Error> {
    let key = [prefix, "rlimits"].concat();
    let list = process.container("rlimits", ARRAY).map_err(|error| entries::unreadable(&key, &error))?;
    let present = entries::read(text, list, &key, |entry| {
        let limit = |name| {
            let number: u64 = entry.needed(name, entry.number(name)?)?;
            Ok::<_, Error>((number, entry.needed(name, entry.one(name)?)?))
        };
        Ok((entry.needed("type", entry.text("type")?)?, [limit("hard")?, limit("soft")?]))
    })?;
    let bytes = memlock_bytes.to_string();
    let mut missing = ["{\"type\":\"", MEMLOCK, "\",\"hard\":", &bytes, ",\"soft\":", &bytes, "}"].concat();
    for (_, limits) in present.iter().filter(|(kind, _)| &**kind == MEMLOCK) {
        missing.clear();
        for (_, value) in limits.iter().filter(|(limit, _)| *limit < memlock_bytes) {
            splices.replace(value, bytes.clone());
        }
    }
    Ok(splices.extend(list, ARRAY, missing))
}
