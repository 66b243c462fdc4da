//! A repository's lists: fetched when its source is new or has changed, and gone when the source is gone.

use std::path::Path;
use std::time::{Duration, Instant};

use root::Root;

use super::{PackageManager, lists};

/// More than a list of sources has.
const LIMIT: usize = 1 << 20;

/// Between two tries while another reads its lists.
const PAUSE: Duration = Duration::from_millis(500);

/// Fetches the lists of one source and of no other; where the source does not name the repository any more, its lists
/// go. What was done, or why not, in a sentence.
pub(crate) fn update(
    root: &Root,
    manager: &PackageManager,
    source: &Path,
    uri: &str,
    suite: &str,
) -> Result<String, String> {
    let shown = root.shown(source);
    let shown = shown.display();
    let names = |text: String| text.contains(uri.trim_end_matches('/')) && text.contains(suite);
    if !root.read_text(source, LIMIT).is_ok_and(names) {
        return match remove(root, uri, suite) {
            Ok(()) => Ok(format!("what apt had fetched of {uri} went")),
            Err(error) => Err(format!("what apt had fetched of {uri} stays: {error}")),
        };
    }
    match fetch(manager, source) {
        Ok(()) => Ok(format!("apt has read what {shown} offers")),
        Err(error) => Err(format!(
            "what {shown} offers could not be read: {error}; {}, then apply again",
            remedy(&error, uri)
        )),
    }
}

fn remedy(error: &str, uri: &str) -> String {
    if error.contains("EXPKEYSIG") {
        // Its owner gives out the same key with a later date: by its fingerprint the one that is here is right.
        return "the key that is here has expired: take the file away that Signed-By names in that source"
            .to_owned();
    }
    format!("see that {uri} can be reached and that its key is the right one")
}

fn fetch(manager: &PackageManager, source: &Path) -> Result<(), String> {
    let until = Instant::now() + manager.lock;
    loop {
        let Err(error) = manager.update(source, &[]) else { return Ok(()) };
        // apt itself waits for dpkg's lock only.
        if !error.contains("/lists/lock") || Instant::now() >= until {
            return Err(error);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Where another source names the same, its lists are no longer ours alone.
fn remove(root: &Root, uri: &str, suite: &str) -> Result<(), root::Error> {
    let mut sources = vec!["/etc/apt/sources.list".to_owned()];
    for name in root.list("/etc/apt/sources.list.d").unwrap_or_default() {
        sources.extend(name.to_str().map(|name| format!("/etc/apt/sources.list.d/{name}")));
    }
    let names = |path: &String| {
        root.read_text(path, LIMIT).is_ok_and(|text| text.contains(uri.trim_end_matches('/')))
    };
    if !sources.iter().any(names) {
        lists::remove(root, &lists::file_name_prefix(uri, suite))?;
    }
    Ok(())
}
