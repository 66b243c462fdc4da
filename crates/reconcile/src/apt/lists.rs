//! Fetches apt's lists of a repository when its source is new or has changed, and removes them with the
//! source.

use std::path::Path;
use std::time::{Duration, Instant};

use root::{Root, if_there};

use super::PackageManager;
use super::sources::{Known, in_file, known};

/// The folder in which apt keeps what repositories offer.
pub(crate) const FOLDER: &str = "/var/lib/apt/lists";

/// Characters that apt escapes in the name of a list, besides those that cannot be printed (apt's
/// apt-pkg/contrib/strutl.cc, `URItoFileName`).
const ESCAPED: &[u8] = b"\\|{}[]<>\"^~_=!@#$%^&*";

/// The prefix of the names of a repository's lists: `repo.radeon.com_rocm_apt_6.3.2_dists_noble_`.
fn file_name_prefix(uri: &str, suite: &str) -> String {
    let uri = uri.trim_end_matches('/');
    let whole = match suite.strip_suffix('/') {
        // A repository without suites: "an exact path, which has to end with a slash" (sources.list(5)).
        Some(path) => format!("{uri}/{path}/"),
        None => format!("{uri}/dists/{suite}/"),
    };
    let behind = whole.split_once("://").map_or(whole.as_str(), |(_, rest)| rest);
    let host = behind.split('/').next().unwrap_or_default();
    // Name and password of a user are not written into a name.
    let skipped = host.rfind('@').map_or(0, |at| at + 1);
    let mut name = String::new();
    for byte in behind[skipped..].bytes() {
        match byte {
            b'/' => name.push('_'),
            byte if ESCAPED.contains(&byte) || !byte.is_ascii_graphic() => {
                name.push_str(&format!("%{byte:02x}"))
            }
            byte => name.push(char::from(byte)),
        }
    }
    name
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
        return match remove(root, uri, suite) {
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
fn remove(root: &Root, uri: &str, suite: &str) -> Result<(), root::Error> {
    let uri = uri.trim_end_matches('/');
    let prefix = file_name_prefix(uri, suite);
    // An address that names nothing would be every list.
    if prefix.is_empty() || known(root).iter().any(|known| known.url == uri) {
        return Ok(());
    }
    for folder in [FOLDER.to_owned(), format!("{FOLDER}/partial"), format!("{FOLDER}/auxfiles")] {
        let names = if_there(root.list(&folder))?.unwrap_or_default();
        for name in names.iter().filter_map(|name| name.to_str()).filter(|name| name.starts_with(&prefix)) {
            root.remove(format!("{folder}/{name}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_repository_takes_no_list_away() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let how = root::Attributes { mode: 0o644, owner: None };
        let list = format!("{FOLDER}/a_dists_b_InRelease");
        root.write(&list, b"", how).unwrap();
        remove(&root, "http://", "/").unwrap();
        assert!(root.exists(&list));
        remove(&root, "http://a", "b").unwrap();
        assert!(!root.exists(&list));
    }

    #[test]
    fn a_repositorys_lists_have_the_names_that_apt_gives_them() {
        for (uri, suite, expected) in [
            (
                "https://repo.radeon.com/rocm/apt/6.3.2",
                "noble",
                "repo.radeon.com_rocm_apt_6.3.2_dists_noble_",
            ),
            ("http://127.0.0.1:8080/a_b/", "stable", "127.0.0.1:8080_a%5fb_dists_stable_"),
            ("http://me:secret@host/~x", "a/b", "host_%7ex_dists_a_b_"),
            ("file:///srv/repo", "./", "_srv_repo_._"),
            ("http://", "/", ""),
        ] {
            assert_eq!(file_name_prefix(uri, suite), expected);
        }
    }
}
