//! Fetches apt's lists of a repository when its source is new or has changed, and removes them with the
//! source.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use root::{Root, if_there};
use tempfile::NamedTempFile;

use super::PackageManager;
use super::sources::{Known, in_file, known};

/// The folder in which apt keeps what repositories offer.
pub(crate) const FOLDER: &str = "/var/lib/apt/lists";

/// The start of the names that apt gives a repository's lists: `repo.radeon.com_rocm_apt_6.3.2_dists_noble_`. `None` where
/// the address names no repository.
fn file_name_prefix(manager: &PackageManager, uri: &str, suite: &str) -> Result<Option<String>, String> {
    // A repository without suites: "an exact path, which has to end with a slash" (sources.list(5)).
    let component = if suite.ends_with('/') { "" } else { "main" };
    let line = format!("deb {uri} {suite} {component}\n");
    let list = NamedTempFile::new().and_then(|mut list| list.write_all(line.as_bytes()).map(|()| list));
    let list = list.map_err(|error| format!("no list of sources can be written for apt: {error}"))?;
    // `'http://a/dists/b/InRelease' a_dists_b_InRelease 0`
    let printed = manager.update(list.path(), &["--print-uris"])?;
    let names = printed.lines().filter_map(|line| line.split(' ').nth(1)?.strip_suffix("InRelease"));
    Ok(names.map(str::to_owned).find(|prefix| !prefix.is_empty()))
}

/// The pause between two tries while another apt reads its lists.
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
    let names = |known: &Known| known.url == uri.trim_end_matches('/') && known.suite == suite;
    if !in_file(root, source).iter().any(names) {
        return match remove(root, manager, uri, suite) {
            Ok(()) => Ok(format!("what apt had fetched of {uri} went")),
            Err(error) => Err(format!("what apt had fetched of {uri} stays: {error}")),
        };
    }
    fetch(manager, source).map_err(|error| {
        let remedy = if error.contains("EXPKEYSIG") {
            // The owner of an expired key publishes it again with a later date and an equal fingerprint, so
            // the configured fingerprint is right.
            "the key that is here has expired: remove the file that Signed-By names in that source".to_owned()
        } else {
            format!("see that {uri} can be reached and that its key is the right one")
        };
        format!("what {shown} offers could not be read: {error}; {remedy}, then apply again")
    })?;
    Ok(format!("apt has read what {shown} offers"))
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

/// Removes a repository's lists, also partial ones, unless another source names the repository.
fn remove(root: &Root, manager: &PackageManager, uri: &str, suite: &str) -> Result<(), String> {
    let uri = uri.trim_end_matches('/');
    if known(root).iter().any(|known| known.url == uri) {
        return Ok(());
    }
    let text = |error: root::Error| error.to_string();
    let Some(prefix) = file_name_prefix(manager, uri, suite)? else { return Ok(()) };
    // A repository without suites may have others in its folders, whose names go on with the folder's and `_`.
    let is_its = |name: &&str| {
        name.strip_prefix(&*prefix).is_some_and(|rest| !suite.ends_with('/') || !rest.contains('_'))
    };
    for folder in [FOLDER.to_owned(), format!("{FOLDER}/partial"), format!("{FOLDER}/auxfiles")] {
        let names = if_there(root.list(&folder)).map_err(text)?.unwrap_or_default();
        for name in names.iter().filter_map(|name| name.to_str()).filter(is_its) {
            root.remove(format!("{folder}/{name}")).map_err(text)?;
        }
    }
    Ok(())
}
