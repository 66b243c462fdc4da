//! Whether NFD gets the labels of the GPUs from the daemon's feature file.

use std::path::Path;

use check::{About, Check};

use super::NAME;
use crate::daemon::features::{HEADER as FEATURE_FILE_HEADER, PATH as FEATURE_FILE};
use crate::doctor::machine::Subject;

/// More than NFD reads of a file.
const LIMIT: usize = 64 << 10;

/// The directive behind which the file says until when it counts.
const EXPIRES: &str = "# +expiry-time=";

const START: &str = "systemctl restart rocworker";

/// No check where a node has no folder of NFD's.
pub(super) fn check(subject: &Subject<'_>) -> Option<Check> {
    let root = subject.root;
    let folder = Path::new(FEATURE_FILE).parent()?;
    if !root.exists(folder) {
        return None;
    }
    let about = About::one(NAME, "labels");
    Some(match root.read_text(FEATURE_FILE, LIMIT) {
        Err(error) if error.is_not_found() => match subject.config.daemon.unit.off() {
            Some(why) => about.skipped(format!("{FEATURE_FILE} is not there: {why}")),
            None => about.warning(
                format!("{FEATURE_FILE} is not there: NFD does not label the node by its GPUs"),
                format!("{START}: the daemon writes it"),
            ),
        },
        Err(error) => about.skipped(error.to_string()),
        Ok(text) if !text.starts_with(FEATURE_FILE_HEADER) => about.warning(
            format!("{FEATURE_FILE} is another program's: the daemon leaves it, and NFD has no label of rocworker's"),
            format!("move it to another name, then {START}"),
        ),
        Ok(text) => match text.lines().find_map(|line| line.strip_prefix(EXPIRES)) {
            // Both are in UTC, in one form.
            Some(until) if until < &*subject.now.to_string() => about.warning(
                format!("{FEATURE_FILE} has counted until {until}: the daemon renews it no more"),
                format!("{START}; journalctl --unit rocworker says why it has ended"),
            ),
            Some(until) => about.ok(format!("{FEATURE_FILE} counts until {until}")),
            None => about.ok(format!("{FEATURE_FILE} is there")),
        },
    })
}
